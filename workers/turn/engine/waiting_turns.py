"""The turns that wait for the API while the worker's only thread goes on with others."""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from oarlock.broker.values.claims import Claim
from oarlock.workers.tracing.tracer import UNTRACED, TurnTrace

if TYPE_CHECKING:
    from oarlock.workers.turn.engine.running_turn import RunningTurn

SLOW_MS = 100
"""A turn that waits for so long keeps its worker from nothing else. A usual answer takes a tenth of it."""
LONG_MS = 250
"""Nor does one that began so long ago, however short each of its waits is: it may have many waves to send."""
PLACES = 48
"""So many turns may wait beside each other, and no more than three for four requests that their worker may have on the
wire: a turn that waits may hold one.
"""
OBJECTS_MAX = 10_000
"""So many objects the waiting turns may hold in memory before others are claimed beside them: of pods 5 MB."""
LOOK_UP_S = 0.1
"""As ``io_loop.LOOK_UP_S``: a signal that comes just before the thread blocks does not wake it."""


@dataclass(slots=True, eq=False)
class UnderWay:
    """A turn that has begun. ``failure``: why it is to go on no more, if somebody says so while it waits. ``objects``:
    how many children it was handed.
    """

    claim: Claim
    begun_ms: int
    begun_ns: int
    turn: RunningTurn | None = None
    failure: Exception | None = None
    trace: TurnTrace = UNTRACED
    objects: int = field(init=False)

    def __post_init__(self) -> None:
        self.objects = len(self.claim.children)


class WaitingTurns:
    """Main thread only, except that the I/O thread reports answers and signal handlers report ends."""

    def __init__(self, writes_in_flight: int) -> None:
        self.places_max = min(PLACES, writes_in_flight * 3 // 4)
        self._waiting: dict[UnderWay, int] = {}
        """With the ms since when it waits."""
        self._not_slow_yet: deque[tuple[UnderWay, int, int]] = deque()
        """With the ms at which they began to wait for the API, and from which on others need not wait with them; in the
        order of the former. Some of them wait no more.
        """
        self._ready: SimpleQueue[UnderWay] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, each: UnderWay, waits_for: Future[Any], now_ms: int) -> None:
        """It cannot go on before ``waits_for`` is done, however that ends."""
        self._waiting[each] = now_ms
        if not _in_function(each):
            self._not_slow_yet.append((each, now_ms, min(now_ms + SLOW_MS, each.begun_ms + LONG_MS)))
        waits_for.add_done_callback(lambda _: self._ready.put(each))
        if each.failure is not None:
            self._ready.put(each)

    def fail(self, each: UnderWay, why: Exception) -> None:
        """It is to end, for this reason. Signal handlers may call it."""
        each.failure = why
        self._ready.put(each)

    def next(self, timeout_s: float) -> UnderWay | None:
        """A turn that can go on, or is to end; it waits no more. None: no such turn within the time."""
        while self._waiting:
            try:
                each = self._ready.get(timeout=max(0.0, min(timeout_s, LOOK_UP_S)))
            except Empty:
                return None
            if each in self._waiting:  # a turn that failed meanwhile may be reported twice
                del self._waiting[each]
                if not self._waiting:
                    self._not_slow_yet.clear()
                return each
        return None

    def of(self, queue: str) -> int:
        """How many of a queue."""
        return sum(each.claim.queue == queue for each in self._waiting)

    def quick_until_ms(self, now_ms: int) -> int:
        """Until then the worker waits for one of them alone; 0: each waits for a function of a user, or for long."""
        while self._not_slow_yet:
            each, since_ms, slow_ms = self._not_slow_yet[0]
            if self._waiting.get(each) == since_ms and now_ms < slow_ms:
                return slow_ms
            self._not_slow_yet.popleft()
        return 0

    def places(self, functions_max: int) -> int:
        """How many more turns may begin beside these, of which at most so many wait for functions of users."""
        if sum(each.objects for each in self._waiting) >= OBJECTS_MAX:
            return 0
        return min(functions_max - sum(map(_in_function, self._waiting)), self.places_max - len(self._waiting))

    def crowded(self) -> set[str]:
        """The namespaces that have as many waiting turns as there are places left. So one namespace has half of the
        places at most, two have a third each, and there is always room for another one.
        """
        counts = Counter(each.claim.key.rpartition("/")[0] for each in self._waiting)
        return {namespace for namespace, count in counts.items() if count >= self.places_max - len(self._waiting)}

    def begun_before(self, ms: int) -> list[UnderWay]:
        """Those that began before a moment of the worker's clock."""
        return [each for each in self._waiting if each.begun_ms < ms]

    def abandon(self) -> None:
        """End all of them: nothing more is sent for them."""
        for each in self._waiting:
            assert each.turn is not None
            each.turn.abandon()
        self._waiting.clear()
        self._not_slow_yet.clear()


def _in_function(each: UnderWay) -> bool:
    return each.turn is not None and each.turn.in_function
