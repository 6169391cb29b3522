"""The turns that wait for the API while the worker's only thread goes on with others."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from oarlock.broker.values import Claim
from oarlock.workers.tracing.tracer import UNTRACED, TurnTrace

if TYPE_CHECKING:
    from oarlock.workers.turn.engine.running_turn import RunningTurn

LOOK_UP_S = 0.1
"""As ``io_loop.LOOK_UP_S``: a signal that comes just before the thread blocks does not wake it."""


@dataclass(slots=True, eq=False)
class UnderWay:
    """A turn that has begun. ``failure``: why it is to go on no more, if somebody says so while it waits."""

    claim: Claim
    begun_ms: int
    begun_ns: int
    turn: RunningTurn | None = None
    failure: Exception | None = None
    trace: TurnTrace = UNTRACED


class WaitingTurns:
    """Main thread only, except that the I/O thread reports answers and signal handlers report ends."""

    def __init__(self) -> None:
        self._waiting: dict[UnderWay, None] = {}
        self._ready: SimpleQueue[UnderWay] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, each: UnderWay, waits_for: Future[Any]) -> None:
        """It cannot go on before ``waits_for`` is done, however that ends."""
        self._waiting[each] = None
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
                return each
        return None

    def of(self, queue: str) -> int:
        """How many of a queue."""
        return sum(each.claim.queue == queue for each in self._waiting)

    @property
    def all_in_functions(self) -> bool:
        """Whether each waits for a function of a user. None of them was claimed because of a crash."""
        return all(each.turn is not None and each.turn.in_function and not each.claim.crashes for each in self._waiting)

    def begun_before(self, ms: int) -> list[UnderWay]:
        """Those that began before a moment of the worker's clock."""
        return [each for each in self._waiting if each.begun_ms < ms]

    def abandon(self) -> None:
        """End all of them: nothing more is sent for them."""
        for each in self._waiting:
            assert each.turn is not None
            each.turn.abandon()
        self._waiting.clear()
