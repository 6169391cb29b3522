"""Which environment asks for traces, and what is said of one that cannot be done."""

from __future__ import annotations

import builtins
import logging
from typing import Any

import pytest

from oarlock.workers.process.settings import Settings
from oarlock.workers.tracing.choice import open_tracer
from oarlock.workers.tracing.otel import OtelTracer

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("given", "on"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "none"}, False),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "true"}, False),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, True),
    ],
)
def test_what_asks_for_traces(given: dict[str, str], on: bool) -> None:
    tracer = open_tracer("worker", Settings(), given)
    assert (tracer.on, isinstance(tracer, OtelTracer)) == (on, on)
    tracer.close()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER='zipkin': there are otlp, console and none"),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL='grpc': traces go out by"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_fleet_works_on(
    given: dict[str, str], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert not open_tracer("worker", Settings(), given).on
    assert told in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "abc", "must be a non-negative integer but got abc"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "max_queue_size must be a positive integer"),
    ],
)
def test_what_opentelemetry_refuses_ends_no_process(
    name: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING):
        assert not open_tracer("worker", Settings(), ENDPOINT).on
    assert told in caplog.text


def test_without_the_extra_it_says_which(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    real = builtins.__import__

    def absent(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith(("opentelemetry", "oarlock.workers.tracing.otel")):
            raise ModuleNotFoundError(f"No module named {name!r}", name="opentelemetry")
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with caplog.at_level(logging.WARNING):
        assert not open_tracer("worker", Settings(), ENDPOINT).on
    assert "pip install 'oarlock[otel]'" in caplog.text
