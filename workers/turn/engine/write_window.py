"""Limits the bulk writes that the turns of one worker have under way together: to as many as one turn may have alone.

They share the same few connections, and a write that waits there uses up the time in which it may be sent. So a burst
waits here: before it is announced, or between two waves of a slow start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from oarlock.workers.turn.engine.running_turn import RunningTurn
from oarlock.workers.turn.steps import Grant

LEFT_OUT = Grant(0, 1)
"""For a turn that has used up its share of time: it ends with what it has done, and the next turn does the rest."""


class WriteWindow:
    """One batch's. ``most``: writes under way. ``reserve``: takes tokens of the rate limit when a turn is let in.
    ``late``: whether a turn has been under way for so long that it should end.

    Main thread only. First come, first served. If nothing is under way, a turn is let in however much it wants.
    """

    def __init__(self, most: int, reserve: Callable[[int, int], Grant], late: Callable[[RunningTurn], bool]) -> None:
        self._most, self._reserve, self._late = most, reserve, late
        self._under_way: dict[RunningTurn, int] = {}
        self._queue: deque[tuple[RunningTurn, int, int, Future[Grant]]] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether no turn has writes under way, or waits for room."""
        return not self._under_way and not self._queue

    def reserve(self, turn: RunningTurn, wanted: int, behind: int = 0) -> Grant | Future[Grant]:
        """Room and tokens for ``wanted`` writes of a turn, or a Future of them, which a turn that is to end cancels.
        ``behind``: how many the turn will want after these.

        A turn that asks again has nothing under way: it may not have sent what it was let in for.
        """
        self.leave(turn)
        if self._late(turn):
            return LEFT_OUT
        if self._queue or not self._fits(wanted):
            later: Future[Grant] = Future()
            self._queue.append((turn, wanted, behind, later))
            return later
        return self._let_in(turn, wanted, behind)

    def leave(self, turn: RunningTurn) -> None:
        """The turn has its answers, or goes on no more."""
        self._under_way.pop(turn, None)
        for waits, _, _, later in self._queue:
            if not later.done() and self._late(waits):
                later.set_result(LEFT_OUT)
        while self._queue:
            first, wanted, behind, later = self._queue[0]
            if not later.done():
                if not self._fits(wanted):
                    return
                later.set_result(self._let_in(first, wanted, behind))
            self._queue.popleft()  # last: a signal's exception in between must not lose it

    def _fits(self, wanted: int) -> bool:
        return not self._under_way or sum(self._under_way.values()) + wanted <= self._most

    def _let_in(self, turn: RunningTurn, wanted: int, behind: int) -> Grant:
        grant = self._reserve(wanted, behind)
        if grant.granted:
            self._under_way[turn] = grant.granted
        return grant
