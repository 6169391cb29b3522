"""Spans as they are made, without a network: ids that processes agree on, samplers, contexts, and an end in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler, TraceIdRatioBased

from oarlock.broker.values.claims import Claim
from oarlock.cluster.answer import NO_ANSWER
from oarlock.controllers.requests import Ended
from oarlock.controllers.wanted import UserError
from oarlock.workers.tracing import otel
from oarlock.workers.tracing.otel import OtelTracer
from oarlock.workers.tracing.trace_ids import ids_of
from oarlock.workers.tracing.tracer import UNTRACED, Woken, current_turn
from oarlock.workers.turn.engine.user_code import Run, UserCode

SINCE_MS, NOW_MS = 1_700_000_000_000, 1_700_000_000_250


def claim(key: str = "a/web", why: str = f"{SINCE_MS} 2 set pods/a/p, del pods/a/q", **more: Any) -> Claim:
    made = Claim("replicaset", key, "n", None, [], None, "", False, 0, now_ms=NOW_MS, why=why)
    return made._replace(**more)


class Traced:
    """A tracer whose spans are kept here."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = OtelTracer("oarlock 0", "oarlock-test", [SimpleSpanProcessor(self._exporter)], sampler)

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


def context_of(span: ReadableSpan) -> trace.SpanContext:
    assert span.context is not None
    return span.context


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


def test_an_ingestor_and_a_worker_agree_without_a_word() -> None:
    ingestor, worker = Traced(), Traced()
    ingestor.tracer.published(3, [Woken("replicaset", "a/web", SINCE_MS, "set pods/a/p")], time.time_ns())
    worker.tracer.begun(3, claim()).ended("ok", "", "")
    (event,), root = ingestor.spans().values(), worker.spans()["replicaset key"]
    assert (event.name, context_of(event).trace_id) == ("event set pods", context_of(root).trace_id)
    assert parent_of(event) == context_of(root).span_id
    assert root.parent is None


@pytest.mark.parametrize(
    ("fleet", "epoch", "queue", "key", "since_ms"),
    [
        ("f 1", 3, "q", "a/b", 7),
        ("f 0", 4, "q", "a/b", 7),
        ("f 0", 3, "p", "a/b", 7),
        ("f 0", 3, "q", "a/c", 7),
        ("f 0", 3, "q", "a/b", 8),
    ],
)
def test_ids_of_other_turns_differ(fleet: str, epoch: int, queue: str, key: str, since_ms: int) -> None:
    one, other = ids_of("f 0", 3, "q", "a/b", 7), ids_of(fleet, epoch, queue, key, since_ms)
    assert one.trace != other.trace
    assert one.root != other.root


def test_of_a_sampled_part_all_processes_sample_the_same() -> None:
    ingestor, worker = (Traced(TraceIdRatioBased(0.3)) for _ in range(2))
    for number in range(200):
        key = f"a/web-{number}"
        ingestor.tracer.published(3, [Woken("replicaset", key, SINCE_MS, "set pods/a/p")], 1)
        worker.tracer.begun(3, claim(key)).ended("ok", "", "")
    told = [{context_of(span).trace_id for span in each._exporter.get_finished_spans()} for each in (ingestor, worker)]
    assert told[0] == told[1]
    assert 20 < len(told[0]) < 120


def test_what_is_not_sampled_costs_no_span_and_no_header() -> None:
    traced = Traced(ALWAYS_OFF)
    assert traced.tracer.begun(3, claim()) is UNTRACED
    assert UNTRACED.write("create", "pods", "a", "p").traceparent == ""
    assert traced.spans() == {}


def test_times_of_redis_are_told_in_the_workers_clock() -> None:
    traced, before_ns = Traced(), time.time_ns()
    traced.tracer.begun(3, claim()).ended("ok", "", "")
    spans = traced.spans()
    queue, turn = spans["queue"], spans["replicaset turn"]
    assert queue.start_time is not None
    assert queue.end_time is not None
    assert queue.end_time - queue.start_time == (NOW_MS - SINCE_MS) * 1_000_000
    assert abs(queue.end_time - before_ns) < 5_000_000_000, "Redis's clock is years behind"
    assert turn.start_time is not None
    assert queue.end_time <= turn.start_time
    assert dict(queue.attributes or {})["oarlock.trigger.events"] == 2


@pytest.mark.parametrize("why", ["", "x", f"{NOW_MS + 9_000_000} 1 asked"])
def test_a_trigger_that_says_nothing_useful(why: str) -> None:
    traced = Traced()
    traced.tracer.begun(3, claim(why=why)).ended("ok", "", "")
    root = traced.spans()["replicaset key"]
    assert root.start_time is not None
    assert root.end_time is not None
    assert root.start_time <= root.end_time


def test_a_lost_turn_is_named_by_the_next() -> None:
    traced = Traced()
    traced.tracer.begun(3, claim(why=f"{SINCE_MS} 2 set pods/a/p, lost w-1 {SINCE_MS}", crashes=1)).ended("ok", "", "")
    facts = dict(traced.spans()["replicaset turn"].attributes or {})
    assert (facts["oarlock.lost"], facts["oarlock.crashes"]) == ("w-1", 1)


@pytest.mark.parametrize(("code", "failed"), [(201, False), (409, True), (500, True), (NO_ANSWER, True)])
def test_a_write(code: int, failed: bool) -> None:
    traced = Traced()
    turn = traced.tracer.begun(3, claim())
    write = turn.write("create", "pods", "a", "p")
    write.answered(code, 'spec.x: Invalid value: "hunter2": no')
    turn.ended("ok", "create pods", "")
    spans = traced.spans()
    span = spans["create pods"]
    own = context_of(span)
    assert write.traceparent == f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"
    assert own.trace_flags.sampled
    assert parent_of(span) == context_of(spans["replicaset turn"]).span_id
    assert (span.status.status_code is trace.StatusCode.ERROR) == failed
    assert "hunter2" not in str(span.status.description)


def test_only_the_first_end_counts() -> None:
    traced = Traced()
    turn = traced.tracer.begun(3, claim())
    turn.ended("retry", "create pods", "quota")
    turn.ended("lost", "", "late")
    span = traced.spans()["replicaset turn"]
    assert dict(span.attributes or {})["oarlock.verdict"] == "retry"
    assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, "quota")


@pytest.mark.parametrize("is_async", [False, True])
def test_spans_of_a_users_function_are_below_it(is_async: bool) -> None:
    """In its thread or task the current span is that of the function."""
    traced, code = Traced(), UserCode(1)
    turn = traced.tracer.begun(3, claim())

    def body() -> None:
        with traced.tracer.spans.start_as_current_span("mine"):
            assert current_turn.get() is turn

    async def async_body() -> None:
        body()

    def call(run: Run) -> Any:
        return async_body() if is_async else body()

    with turn.current():
        ended = code.run(call, is_async=is_async).resume()
    assert ended.result(10) == Ended(None)
    assert current_turn.get() is UNTRACED
    code.close()
    turn.ended("ok", "", "")
    spans = traced.spans()
    assert parent_of(spans["mine"]) == context_of(spans["function"]).span_id
    assert parent_of(spans["function"]) == context_of(spans["replicaset turn"]).span_id


@pytest.mark.parametrize(("error", "failed"), [(ValueError("no"), True), (UserError("later", after_ms=5), False)])
def test_a_function_that_raises(error: Exception, failed: bool) -> None:
    traced = Traced()
    turn = traced.tracer.begun(3, claim())
    with pytest.raises(type(error)), turn.function():
        raise error
    span = traced.spans()["function"]
    assert (span.status.status_code is trace.StatusCode.ERROR) == failed
    assert not span.events, "a traceback may hold anything"


class Hangs(SpanExporter):
    """A collector that never answers."""

    def __init__(self) -> None:
        self.called, self.over = threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.called.set()
        self.over.wait(30)
        return SpanExportResult.FAILURE


def test_a_collector_that_hangs_delays_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel, "CLOSE_S", 0.1)
    hanging = Hangs()
    tracer = OtelTracer("oarlock 0", "oarlock-test", [BatchSpanProcessor(hanging)], ALWAYS_ON)
    tracer.begun(3, claim()).ended("ok", "", "")
    begun_s = time.monotonic()
    tracer.close()
    assert time.monotonic() - begun_s < 5
    assert hanging.called.wait(10)
    hanging.over.set()
