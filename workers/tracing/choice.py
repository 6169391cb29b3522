"""Whether a process tells traces, and to whom: as the standard environment variables of OpenTelemetry say."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings
from oarlock.workers.tracing.tracer import NoTracer, Tracer

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

log = logging.getLogger("oarlock.fleet")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
EXPORTERS = ("otlp", "console")


class Unusable(Exception):
    """What is asked for cannot be done; one line with the remedy."""


def open_tracer(role: str, settings: Settings, environ: Mapping[str, str] | None = None) -> Tracer:
    """The tracer of this process: call it after the last fork. ``role``: worker or ingestor.

    What cannot be done is logged, and the fleet works without traces: an operator may put these variables into every
    pod of a cluster.
    """
    given = os.environ if environ is None else environ
    try:
        exporters = asked_for(given)
        if not exporters:
            return NoTracer()
        check_protocol(exporters, given)
        return _open(role, settings, exporters)
    except Unusable as problem:
        log.warning(line("tracing is off", why=problem))
        return NoTracer()


def asked_for(given: Mapping[str, str]) -> list[str]:
    """The exporters that the environment asks for. Raises Unusable."""
    if given.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    named = [word.strip() for word in given.get("OTEL_TRACES_EXPORTER", "").split(",") if word.strip()]
    if not named and any(given.get(name) for name in ENDPOINTS):
        return ["otlp"]
    exporters = [word for word in dict.fromkeys(named) if word != "none"]
    if unknown := [word for word in exporters if word not in EXPORTERS]:
        raise Unusable(f"OTEL_TRACES_EXPORTER={unknown[0]!r}: there are {', '.join(EXPORTERS)} and none")
    return exporters


def check_protocol(exporters: list[str], given: Mapping[str, str]) -> None:
    """Raises Unusable for another protocol than ours."""
    name = next((each for each in PROTOCOLS if given.get(each)), "")
    if "otlp" in exporters and name and given[name] != "http/protobuf":
        raise Unusable(f"{name}={given[name]!r}: traces go out by http/protobuf alone, mostly to port 4318")


def _open(role: str, settings: Settings, exporters: list[str]) -> Tracer:
    try:
        from oarlock.workers.tracing.otel import OtelTracer  # noqa: PLC0415

        processors = [_processor(each) for each in exporters]
        return OtelTracer(f"{settings.fleet_id} {settings.tag}", f"oarlock-{role}", processors)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise Unusable("OpenTelemetry is not installed: pip install 'oarlock[otel]'") from None
    except ValueError as error:
        raise Unusable(f"OpenTelemetry cannot use one of its variables: {error}") from None


def _processor(exporter: str) -> SpanProcessor:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import (  # noqa: PLC0415
        BatchSpanProcessor,
        ConsoleSpanExporter,
        SimpleSpanProcessor,
    )

    if exporter == "console":
        return SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr))
    return BatchSpanProcessor(OTLPSpanExporter())
