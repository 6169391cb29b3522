"""How many bulk writes the turns of one worker have under way together: not more than one of them may have alone.

They share the same few connections, and what waits there uses up the time in which it may be sent. So a burst waits
here, where it is not announced yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from workers.steps import Grant


class WriteWindow:
    """``most``: writes under way. ``reserve``: takes tokens of the rate limit, when a turn's writes are let in.

    Main thread only. First come, first served; whoever finds nothing under way is let in however much it wants.
    """

    def __init__(self, most: int, reserve: Callable[[int], Grant]) -> None:
        self._most, self._reserve = most, reserve
        self._under_way: dict[Hashable, int] = {}
        self._total = 0
        self._queue: deque[tuple[Hashable, int, Future[Grant]]] = deque()

    def reserve(self, turn: Hashable, wanted: int) -> Grant | Future[Grant]:
        """Room and tokens for ``wanted`` writes of a turn, or a Future of them. A turn that is to end cancels that."""
        if self._queue or not self._fits(wanted):
            later: Future[Grant] = Future()
            self._queue.append((turn, wanted, later))
            return later
        return self._let_in(turn, wanted)

    def leave(self, turn: Hashable) -> None:
        """The turn has its answers, or goes on no more."""
        self._total -= self._under_way.pop(turn, 0)
        while self._queue:
            first, wanted, later = self._queue[0]
            if not later.cancelled() and not self._fits(wanted):
                return
            self._queue.popleft()
            if not later.cancelled():
                later.set_result(self._let_in(first, wanted))

    def _fits(self, wanted: int) -> bool:
        return not self._total or self._total + wanted <= self._most

    def _let_in(self, turn: Hashable, wanted: int) -> Grant:
        grant = self._reserve(wanted)
        if grant.granted:
            self._under_way[turn] = self._under_way.get(turn, 0) + grant.granted
            self._total += grant.granted
        return grant
