"""Applies watch events to the broker in contiguous batches. The position moves when the broker accepts a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from oarlock.broker.protocol import Broker
from oarlock.broker.values.events import Event, Ingested
from oarlock.broker.versions import latest, newer
from oarlock.cluster.http.frames import WatchEvent
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.lister_watcher import WatchStream
from oarlock.workers.ingest.projection import EventBatch, Projector
from oarlock.workers.tracing.tracer import NoTracer, Tracer, Woken

BATCH_EVENTS = 100
BATCH_BYTES = 1 << 20
SKIPS_BEFORE_REST = 2
"""So many batches in a row, of which another ingestor had applied half or more."""


class Applied(StrEnum):
    """What came of a step."""

    NOTHING = "nothing"  # no event is there
    DONE = "done"
    REST = "rest"  # look at the watermark first, a little later: another ingestor is ahead
    GAP = "gap"  # the cache is behind the position: watch again from ``gap_at``
    NEEDLIST = "needlist"


NOTHING, DONE = Applied.NOTHING, Applied.DONE
"""For what every step passes: Python 3.11 takes eight times as long to find a member of an enum as a name."""


@dataclass(slots=True)
class Counts:
    """Events this process applied, and those another one had applied before."""

    applied: int = 0
    skipped: int = 0


class Applier:
    """Applies the events of one resource. Redis holds everything up to ``position``; the stream goes on after it.

    ``mark`` is the last known watermark: events up to it are not sent.
    """

    def __init__(self, projector: Projector, owners: KnownOwners, tracer: Tracer | None = None) -> None:
        self._projector, self._owners, self._tracer = projector, owners, tracer or NoTracer()
        self._name = projector.resource.resource
        self.counts = Counts()
        self._raw: deque[WatchEvent] = deque()
        self._batch: EventBatch | None = None
        self._skips = 0
        self._taken_ns = 0
        """When the oldest event that is not applied was taken from the watch, for traces."""
        self._rested = False
        """Whether the events in ``_raw`` came before the last rest: no more are taken until they are applied."""
        self.position = self.mark = self.gap_at = ""
        self.emptied = False
        """Whether the last step took all that was there, and applied it."""

    def start(self, rv: str, behind: bool = False) -> None:
        """Go on from a watermark. ``behind``: another ingestor is ahead, so rest first."""
        self.drop()
        self.position = self.mark = rv
        self._skips = SKIPS_BEFORE_REST if behind else 0

    def drop(self) -> None:
        """Forget the events that were not applied: they come again."""
        if self._batch is not None:  # its owners are known already, so they will not count as news again
            self._owners.doubtful.update(owner for _, owner in self._batch.owners)
        self._raw.clear()
        self._batch, self._rested = None, False

    def step(self, broker: Broker, stream: WatchStream) -> Applied:
        """Apply one batch. A step that raised is repeated with the same batch.

        Raises EpochOver, BrokerUnreachable and OutOfOrder.
        """
        self.emptied = False
        if self._batch is None:
            if not self._rested:
                if not self._raw:
                    self._taken_ns = self._tracer.now_ns()
                room = BATCH_EVENTS - len(self._raw)
                taken = stream.take(room)
                self.emptied = len(taken) < room
                if not taken and not self._raw:
                    return NOTHING
                self._raw.extend(taken)
                # Rest before decoding: what the other ingestor applies meanwhile need not be decoded here.
                if self._raw and self._skips >= SKIPS_BEFORE_REST:
                    self._rested = True
                    return Applied.REST
            self._batch = self._next_batch()
        return NOTHING if self._batch is None else self._apply(broker, self._batch, stream)

    def _next_batch(self) -> EventBatch | None:
        if not self._raw:
            return None
        batch, taken = self._projector.batch(self._raw, self.position, self.mark, BATCH_BYTES)
        for _ in range(taken):
            self._raw.popleft()
        self.emptied = self.emptied and not self._raw
        return batch

    def _apply(self, broker: Broker, batch: EventBatch, stream: WatchStream) -> Applied:
        fresh = [event for event in batch.events if newer(event.rv, self.mark)]
        applied, skipped_to = 0, self.mark
        # A lone bookmark at the watermark is sent, too: nothing happens, but it says that the cache is not stale.
        if fresh or newer(batch.to, self.mark) or (not batch.count and batch.to == self.mark):
            result = broker.ingest(self._name, self.position, batch.to, fresh, told=self._tracer.on)
            if result.verdict != "OK":
                self.gap_at = result.watermark
                return Applied(result.verdict.lower())
            if result.woken:
                self._tracer.published(broker.epoch, _woken(self._name, fresh, result), self._taken_ns)
            stream.pace(awaited=result.added > 0)
            applied = len(fresh) - result.skipped
            if fresh:
                self._skips = 0 if applied > result.skipped else self._skips + 1
            if result.skipped:
                skipped_to = fresh[result.skipped - 1].rv
        self._see_to_pairs(broker, batch, skipped_to)
        if self._projector.resource.adoptable:
            self._owners.doubt_since(batch.news)  # learned since it was prepared: it rested, or was sent again
        self.counts.applied += applied
        self.counts.skipped += batch.count - applied
        self.position, self.mark = batch.to, latest(self.mark, batch.to)
        self._batch, self._rested = None, self._rested and bool(self._raw)
        return DONE

    def _see_to_pairs(self, broker: Broker, batch: EventBatch, skipped_to: str) -> None:
        """Look after pairs whose events another ingestor applied without knowing both (see known_owners)."""
        for rv, wakes in batch.orphans:
            if not newer(rv, skipped_to):
                for queue, key in wakes:
                    broker.add(queue, [key], why="orphans")
        for rv, owner in batch.owners:
            if not newer(rv, skipped_to):
                self._owners.doubtful.add(owner)


def _woken(resource: str, events: Sequence[Event], result: Ingested) -> list[Woken]:
    """The keys that the events woke, each with the trigger that it remembers."""
    found = []
    for task, since_ms, at in result.woken:
        queue, _, key = task.partition(":")
        found.append(Woken(queue, key, since_ms, events[at].trigger(resource, task)))
    return found
