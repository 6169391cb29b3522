"""A worker counts its turns: one addition for each thing that happens, in memory that outlives it."""

from __future__ import annotations

import gc
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from oarlock.broker.looks.history import lost_ms
from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.turns import OK, RETRY, Finish, Verdict
from oarlock.workers.counters.layout import GC_FACTS, OUTCOMES, RANKS
from oarlock.workers.counters.table import Row

GC_EVERY_S = 1.0
_DONE, _AGAIN, _FAILED, _GONE, _LOST = range(len(OUTCOMES))
_OUTCOME = {Verdict.OK: _DONE, Verdict.RETRY: _AGAIN, Verdict.GONE: _GONE}
_clock_s, _clock_ns = time.perf_counter, time.perf_counter_ns


class TurnCounts:
    """Main thread only. A queue that the layout does not know is not counted."""

    def __init__(self, row: Row) -> None:
        self._row, self._ints, self._sums, self._queues = row, row.ints, row.sums, row.layout.queues
        self._skips, self._ratio = row.layout.skips, row.layout.age_ratio
        self._gc_at, self._gc_due_s = row.layout.gc, 0.0
        self._gc_seen = _gc_facts()
        self._since_at, self._queue_at = row.layout.turn_since_ns, row.layout.turn_queue
        self._places = {queue: place for place, queue in enumerate(row.layout.queues)}
        self._under_way_at, self._under_way = row.layout.turns_under_way, 0
        row.ints[self._since_at] = row.ints[self._under_way_at] = 0

    def claimed(self, batch: Batch) -> None:
        """Keys were taken: how long each had been queued, and whether the cache is behind what they have written."""
        cells = self._queues.get(batch.queue)
        if cells is not None:
            self._ints[self._queue_at] = self._places[batch.queue]
            ints, first, bounds = self._ints, cells.wait.counts, cells.wait.bounds
            for waited_ms in batch.waited_ms:
                ints[first + bisect_left(bounds, waited_ms / 1_000)] += 1
            self._sums[cells.wait.sum] += sum(batch.waited_ms) / 1_000
            for claim in batch.claims:
                if "lost " in claim.why and (since_ms := lost_ms(claim.why)) is not None:
                    self._row.observe(cells.failover, max(0, claim.now_ms - since_ms) / 1_000)
            skips = self._skips.get(batch.queue)
            if skips is not None:
                for claim in batch.claims:
                    if claim.min_rv:
                        self._skipped(skips, claim.min_rv)
        now_s = _clock_s()
        if now_s >= self._gc_due_s:
            self._gc_due_s = now_s + GC_EVERY_S
            self._count_gc()

    def _skipped(self, skips: Mapping[str, int], min_rv: str) -> None:
        """``min_rv``: words such as ``pods=7``. A turn counts once, whatever it waits for, as upstream."""
        for word in min_rv.split():
            at = skips.get(word.partition("=")[0])
            if at is not None:
                self._ints[at] += 1
                return

    def begun(self) -> int:
        """A turn over a key of the last batch begins. Returns when, for ``worked``."""
        now_ns = _clock_ns()
        if not self._ints[self._since_at]:
            self._ints[self._since_at] = now_ns
        self._under_way += (now_ns // 1_000 << 8) + 1
        self._ints[self._under_way_at] = self._under_way
        return now_ns

    def traced(self, batch: Batch, claim: Claim, trace_id: str) -> None:
        """The turn of a claim is traced: an exemplar of how long keys wait."""
        cells = self._queues.get(batch.queue)
        if cells is not None and batch.waited_ms:
            waited_s = batch.waited_ms[batch.claims.index(claim)] / 1_000
            self._row.exemplify(cells.wait, waited_s, trace_id, time.time())

    def worked(self, queue: str, begun_ns: int, since_ns: int, trace_id: str = "") -> None:
        """A turn has ended, however; its finish is not sent yet. ``since_ns``: when the oldest turn still under way
        began, 0 where there is none. ``trace_id``: of a turn that is traced.
        """
        cells = self._queues.get(queue)
        self._ints[self._since_at] = since_ns
        self._under_way -= (begun_ns // 1_000 << 8) + 1
        self._ints[self._under_way_at] = self._under_way
        if cells is not None:
            took_s = (_clock_ns() - begun_ns) / 1e9
            self._row.observe(cells.work, took_s)
            if trace_id:
                self._row.exemplify(cells.work, took_s, trace_id, time.time())

    def ranked(self, queue: str, ratios: Iterable[int]) -> None:
        """Pods were chosen for deletion: the age of each as a multiple of the youngest's."""
        if queue != RANKS:
            return
        for ratio in ratios:
            self._row.observe(self._ratio, ratio)

    def lost(self, queue: str) -> None:
        """The key was claimed by another worker by then."""
        cells = self._queues.get(queue)
        if cells is not None:
            self._ints[cells.outcomes + _LOST] += 1

    def finished(self, finish: Finish, failed: bool, in_a_row: int) -> None:
        """A turn was ended in Redis. ``in_a_row``: as ``Broker.finish`` answered."""
        cells = self._queues.get(finish.queue)
        if cells is None:
            return
        if in_a_row < 0:
            outcome = _LOST
        else:
            outcome = _FAILED if failed else _DONE if finish.verdict is OK else _OUTCOME[finish.verdict]
            waits = finish.verdict is RETRY or finish.delay_ms is not None
            if waits or (finish.changes and any(change.op == "again" for change in finish.changes)):
                self._ints[cells.retries] += 1
        self._ints[cells.outcomes + outcome] += 1

    def _count_gc(self) -> None:
        """The collector's own figures begin anew with each process, so their increase is added."""
        now = _gc_facts()
        for at, (new, old) in enumerate(zip(now, self._gc_seen, strict=True)):
            self._ints[self._gc_at + at] += new - old
        self._gc_seen = now


def _gc_facts() -> Sequence[int]:
    return [generation[fact] for generation in gc.get_stats() for fact in GC_FACTS]
