"""The life of a key as spans of OpenTelemetry. Importing it needs the extra `oarlock[otel]`.

The trace of a turn: a root span from the first event that queued the key to the end of the turn, and below it a span
for each event (of the ingestor that published it), the wait in the queue, and the turn with its writes and functions of
the user. Times of Redis's clock are told in the worker's. Why so: docs/design/tracing.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.util.types import Attributes, AttributeValue

from oarlock.broker.looks.history import Queued, Triggers
from oarlock.broker.values.claims import Claim
from oarlock.workers.process.log_line import discreet
from oarlock.workers.tracing.trace_ids import TraceIds, ids_of
from oarlock.workers.tracing.tracer import UNTRACED, TurnTrace, Woken, current_turn

CLOSE_S = 1.0
"""How long the end of a process waits for its last spans. The lease of a key is five times as long."""
SAID_MAX = 200
NS_PER_MS = 1_000_000
_NO_PARENT = Context()


class GivenIds(RandomIdGenerator):
    """Random ids, but for a root span those that all processes compute."""

    def __init__(self) -> None:
        self._of_thread = threading.local()  # the I/O thread begins spans meanwhile

    @contextmanager
    def giving(self, ids: TraceIds) -> Iterator[None]:
        """The span that begins inside has these."""
        self._of_thread.ids = ids
        try:
            yield
        finally:
            self._of_thread.ids = None

    def generate_trace_id(self) -> int:
        given: TraceIds | None = getattr(self._of_thread, "ids", None)
        return super().generate_trace_id() if given is None else given.trace

    def generate_span_id(self) -> int:
        given: TraceIds | None = getattr(self._of_thread, "ids", None)
        return super().generate_span_id() if given is None else given.root


class OtelWrite:
    """A client span."""

    def __init__(self, span: Span) -> None:
        self._span, spoken = span, span.get_span_context()
        self.traceparent = f"00-{spoken.trace_id:032x}-{spoken.span_id:016x}-{spoken.trace_flags:02x}"

    def answered(self, code: int, message: str) -> None:
        if code > 0:
            self._span.set_attribute("http.response.status_code", code)
        if not 200 <= code < 400:
            self._span.set_status(Status(StatusCode.ERROR, f"{code} {discreet(message)}"[:SAID_MAX]))
        self._span.end()


class OtelTurn:
    """The spans of one sampled turn. ``root`` is over when the turn is."""

    def __init__(self, tracer: OtelTracer, root: Span, turn: Span) -> None:
        self._tracer, self._root, self._turn = tracer, root, turn
        self._context, self._over = set_span_in_context(turn, _NO_PARENT), False
        self.trace_id = f"{root.get_span_context().trace_id:032x}"

    @contextmanager
    def current(self) -> Iterator[None]:
        mine, token = current_turn.set(self), otel_context.attach(self._context)
        try:
            yield
        finally:
            otel_context.detach(token)
            current_turn.reset(mine)

    @contextmanager
    def function(self) -> Iterator[None]:
        with self._tracer.spans.start_as_current_span(
            "function", self._context, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except Exception as error:
                if getattr(error, "after_ms", None) is None:  # else it only waits
                    said = discreet(f"{type(error).__name__}: {error}")[:SAID_MAX]
                    span.set_status(Status(StatusCode.ERROR, said))
                raise

    def write(self, verb: str, resource: str, namespace: str, name: str) -> OtelWrite:
        about: Attributes = {"oarlock.verb": verb, "oarlock.resource": resource, "k8s.namespace.name": namespace}
        span = self._tracer.spans.start_span(f"{verb} {resource}", self._context, SpanKind.CLIENT, about)
        if name:
            span.set_attribute("oarlock.name", name)
        return OtelWrite(span)

    def ended(self, verdict: str, did: str, error: str) -> None:
        if self._over:
            return
        self._over = True
        for span in (self._turn, self._root):
            span.set_attribute("oarlock.verdict", verdict)
            if did:
                span.set_attribute("oarlock.did", did)
            if error:
                span.set_status(Status(StatusCode.ERROR, discreet(error)[:SAID_MAX]))
            span.end()


class OtelTracer:
    """``fleet``: its id and shard. ``service``: the service's name, unless the environment says another.

    Make it after the last fork: processors have threads. ``sampler`` None: the one that the environment names.
    """

    on = True

    def __init__(
        self, fleet: str, service: str, processors: Sequence[SpanProcessor], sampler: Sampler | None = None
    ) -> None:
        self._fleet, self._ids = fleet, GivenIds()
        found = Resource.create()
        if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
            found = found.merge(Resource({SERVICE_NAME: service}))
        self._provider = TracerProvider(sampler, found, shutdown_on_exit=False, id_generator=self._ids)
        for processor in processors:
            self._provider.add_span_processor(processor)
        self.spans = self._provider.get_tracer("oarlock")
        self._nonce, self._ahead_ms = "", 0

    def begun(self, epoch: int, claim: Claim) -> TurnTrace:
        queued = Queued.parse(claim.why) or Queued(claim.now_ms, Triggers(0, "unknown", "unknown"))
        ids, now_ns = ids_of(self._fleet, epoch, claim.queue, claim.key, queued.since_ms), time.time_ns()
        if not self._is_sampled(ids, claim.queue):
            return UNTRACED
        if claim.nonce != self._nonce:  # the first of a batch: by how much our clock is ahead of Redis's
            self._nonce, self._ahead_ms = claim.nonce, now_ns // NS_PER_MS - claim.now_ms
        since_ns = min(now_ns, (min(queued.since_ms, claim.now_ms) + self._ahead_ms) * NS_PER_MS)
        claimed_ns = min(now_ns, (claim.now_ms + self._ahead_ms) * NS_PER_MS)
        about: dict[str, AttributeValue] = {
            "oarlock.queue": claim.queue,
            "oarlock.key": claim.key,
            "oarlock.epoch": epoch,
        }
        with self._ids.giving(ids):
            root = self.spans.start_span(f"{claim.queue} key", _NO_PARENT, attributes=about, start_time=since_ns)
        below = set_span_in_context(root, _NO_PARENT)
        why: dict[str, AttributeValue] = {
            f"oarlock.trigger.{name}": value for name, value in queued.triggers._asdict().items()
        }
        self.spans.start_span("queue", below, attributes=why, start_time=since_ns).end(claimed_ns)
        turn = self.spans.start_span(f"{claim.queue} turn", below, SpanKind.CONSUMER, {**about, **why}, None, now_ns)
        for trigger in (queued.triggers.first, queued.triggers.last):
            word, _, holder = trigger.partition(" ")
            if word == "lost":  # the worker of the turn before this one died, and its spans with it
                turn.set_attribute("oarlock.lost", holder.partition(" ")[0])
        if claim.crashes:
            turn.set_attribute("oarlock.crashes", claim.crashes)
        return OtelTurn(self, root, turn)

    def now_ns(self) -> int:
        return time.time_ns()

    def published(self, epoch: int, woken: Sequence[Woken], taken_ns: int) -> None:
        now_ns = time.time_ns()
        for each in woken:
            ids = ids_of(self._fleet, epoch, each.queue, each.key, each.since_ms)
            if not self._is_sampled(ids, each.queue):
                continue
            root = SpanContext(ids.trace, ids.root, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
            below = set_span_in_context(NonRecordingSpan(root), _NO_PARENT)
            about = {"oarlock.queue": each.queue, "oarlock.key": each.key, "oarlock.trigger": each.trigger}
            name = "event " + each.trigger.partition("/")[0]
            self.spans.start_span(name, below, SpanKind.PRODUCER, about, None, taken_ns).end(now_ns)

    def _is_sampled(self, ids: TraceIds, queue: str) -> bool:
        """What the sampler says of the root span: the same in each process, if it goes by the trace's id."""
        decision = self._provider.sampler.should_sample(_NO_PARENT, ids.trace, f"{queue} key").decision
        return decision is Decision.RECORD_AND_SAMPLE

    def close(self) -> None:
        closing = threading.Thread(target=self._provider.shutdown, name="oarlock traces", daemon=True)
        closing.start()
        closing.join(CLOSE_S)
