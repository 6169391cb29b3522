"""What a process counts, and where in its row of the shared table each number stands.

A row is a fixed set of cells of eight bytes: whole numbers, then the sums of the histograms, then the last exemplar of
some of their buckets. Every label value is known beforehand (queues, outcomes, methods, codes), so a cell is found by
arithmetic, nothing is allocated while counting, and no client can make a table grow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from oarlock.broker.budget import EVENTS
from oarlock.controllers.registry import CONTROLLERS, all_queues

WORK_S = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Upstream: staging/src/k8s.io/component-base/metrics/prometheus/workqueue/metrics.go (10 exponential from 10 ns)."""
CLAIM_WAIT_S = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
FAILOVER_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 300.0)
"""Finest where a lease ends: a worker's death is seen at once, a supervisor's after 5 s."""
WAIT_S = tuple(sorted({*WORK_S, *CLAIM_WAIT_S}))
"""One histogram for two families: its bounds are those of both, so both are read from it without loss."""
REQUEST_S = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Upstream: staging/src/k8s.io/component-base/metrics/prometheus/restclient/metrics.go."""
AGE_RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Upstream: pkg/controller/replicaset/metrics/metrics.go (6 exponential from 0.25)."""
RANKS = "replicaset"
"""The queue whose scale-downs are observed, as upstream, where ReplicationControllers register no metrics."""
SKIPS = ("replicaset", "daemonset")
"""The queues whose turns are counted when they found the cache behind, as upstream."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_KNOWN = (200, 201, 202, 204, 301, 302, 304, 307, 400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 429)
CODES = ("<error>", *(str(code) for code in (*_KNOWN, 500, 501, 502, 503, 504)), "1xx", "2xx", "3xx", "4xx", "5xx")
"""Of answers; "<error>" as upstream where none came. Rare codes share one label for each hundred, so that a server
cannot create labels."""
OUTCOMES = ("done", "again", "failed", "gone", "lost")
DEATHS = ("left", "epoch_over", "killed", "crashed")
GC_GENERATIONS = 3
GC_FACTS = ("collections", "collected", "uncollectable")


@dataclass(frozen=True, slots=True)
class Histogram:
    """``counts``: the first of its cells, one for each bound and one above them all; ``sum``: a cell of the sums.

    ``exemplars``: the place of its first bucket's exemplar; None where it keeps none.
    """

    bounds: tuple[float, ...]
    counts: int
    sum: int
    exemplars: int | None = None

    @property
    def cells(self) -> range:
        return range(self.counts, self.counts + len(self.bounds) + 1)


@dataclass(frozen=True, slots=True)
class QueueCells:
    """Of one queue. ``outcomes``: the first of the cells of OUTCOMES."""

    wait: Histogram
    work: Histogram
    failover: Histogram
    outcomes: int
    retries: int


class LaneCells(NamedTuple):
    """Of a lane of the API budget. The worker writes tokens ``taken``, how many of them had to be waited for
    (``waited``), and how many are waited for now (``waiting``); the supervisor the ``rate``.
    """

    taken: int
    waited: int
    waiting: int
    rate: int


@dataclass(frozen=True, slots=True)
class BudgetCells:
    """Of the API budget. Times are CLOCK_BOOTTIME in ms, rates thousandths of a request a second.

    The worker writes: 429s; until when it was told to wait; whether answers are slow, 1 or 0, and when it judged so;
    requests under way, and how many it would have had of late. The supervisor writes: until when the shares are lent; a
    rate for any lane; how many requests may be under way; until when the whole fleet waits.
    """

    lanes: Mapping[str, LaneCells]
    refused: int
    told_until_ms: int
    slow: int
    judged_ms: int
    under_way: int
    wanted: int
    until_ms: int
    spare: int
    flights: int
    wait_until_ms: int


class Layout:
    """Cells of one row, the same in every process of a program."""

    def __init__(self) -> None:
        queues = all_queues()
        self.ints = self.sums = self.exemplars = 0
        self.tick_ms = self._take()
        self.pid = self._take()
        self.turn_since_ns = self._take()
        self.turns_under_way = self._take()
        """Sum of the turns' start times in us, times 256, plus their number. One cell, so that both always agree."""
        self.turn_queue = self._take()
        self.queues = {
            queue: QueueCells(
                self._histogram(WAIT_S, exemplars=True),
                self._histogram(WORK_S, exemplars=True),
                self._histogram(FAILOVER_S),
                self._take(len(OUTCOMES)),
                self._take(),
            )
            for queue in queues
        }
        self.age_ratio = self._histogram(AGE_RATIOS)
        self.skips = {
            queue: {resource: self._take() for resource in _awaited(queue)} for queue in queues if queue in SKIPS
        }
        self.codes = {method: self._take(len(CODES)) for method in METHODS}
        self.requests = {method: self._histogram(REQUEST_S) for method in METHODS}
        self.limits = {method: self._histogram(REQUEST_S) for method in METHODS}
        lanes = {lane: LaneCells(*(self._take() for _ in LaneCells._fields)) for lane in (*queues, EVENTS)}
        self.budget = BudgetCells(lanes, *(self._take() for _ in range(10)))
        self.gc = self._take(GC_GENERATIONS * len(GC_FACTS))
        self.starts = self._take()
        self.deaths = self._take(len(DEATHS))
        self.reclaims = self._take()
        self.releases = self._take()
        self.epochs_lost = self._take()
        self.leaving = self._take()

    def _take(self, count: int = 1) -> int:
        at = self.ints
        self.ints += count
        return at

    def _histogram(self, bounds: tuple[float, ...], *, exemplars: bool = False) -> Histogram:
        self.sums += 1
        first = self.exemplars if exemplars else None
        self.exemplars += (len(bounds) + 1) if exemplars else 0
        return Histogram(bounds, self._take(len(bounds) + 1), self.sums - 1, first)


def _awaited(queue: str) -> Sequence[str]:
    """Resources that a turn of this queue writes, whose events it may have to wait for."""
    controller = CONTROLLERS[queue]
    return sorted({controller.resource, *(resource for resource, *_ in controller.children)})


_CODE_AT = {code: at for at, code in enumerate(CODES)}


def code_at(code: int) -> int:
    """The place of an answer's code in CODES."""
    known = _CODE_AT.get(str(code))
    if known is not None:
        return known
    return _CODE_AT[f"{code // 100}xx"] if 100 <= code < 600 else 0
