"""The limiter of a worker under a fleet's API budget: a ``cluster.http.throttle.Limiter`` for its turns and events.

The lane of a request is the queue of the turn that makes it, or ``events``.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from oarlock.broker.budget import EVENTS, BudgetLimits
from oarlock.cluster.answer import Answer
from oarlock.workers.budget.buckets import Buckets
from oarlock.workers.budget.flights import Flights
from oarlock.workers.counters.table import Row

SLICE = 8
"""So many tokens go to one turn before it is the next one's turn."""
PAUSE_S = 0.02
"""Between two looks for a token, while there is none."""

current_lane: ContextVar[str] = ContextVar("current_lane", default=EVENTS)
"""The queue of the turn that asks."""

Sleep = Callable[[float], Awaitable[None]]


class FleetLimiter:
    """Its coroutines are the I/O loop's. ``lane``: of all its requests; "" for that of the turn that asks."""

    def __init__(self, buckets: Buckets, flights: Flights, lane: str = "", sleep: Sleep = asyncio.sleep) -> None:
        self._buckets, self._flights, self._of, self._sleep = buckets, flights, lane, sleep
        self._order: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def for_events(self) -> FleetLimiter:
        """The same budget, in the lane of events."""
        return FleetLimiter(self._buckets, self._flights, EVENTS, self._sleep)

    def try_take(self, n: int = 1) -> int:
        return self._buckets.take(self._lane(), n)

    def give_back(self, n: int) -> None:
        self._buckets.give_back(self._lane(), n)

    def wait_s(self, n: int = 1) -> float:
        return self._buckets.wait_s(self._lane(), n)

    async def take(self) -> None:
        lane = self._lane()
        async with self._order[f"{lane} now"]:  # not behind turns that gather: these requests have a deadline already
            await self._wait_for(lane)

    async def carry(self, send: Callable[[], Awaitable[Answer]]) -> Answer:
        return await self._flights.carry(send)

    async def gather(self, wanted: int, wait_s: float) -> int:
        """Tokens for the writes of a turn. Returns how many there were within the time: all that are wanted, if it is
        long enough. So a turn over a large owner stays with a worker, and the shares follow it there.
        """
        lane, got = self._lane(), 0
        wanted = self._flights.announced(wanted)
        try:
            async with asyncio.timeout(wait_s):
                while got < wanted:
                    async with self._order[lane]:  # first come, first served; then those that want more again
                        for _ in range(min(SLICE, wanted - got)):
                            await self._wait_for(lane)
                            got += 1
        except TimeoutError:
            pass
        except BaseException:
            self._buckets.give_back(lane, got)
            raise
        return got

    async def _wait_for(self, lane: str) -> None:
        """One token."""
        if self._buckets.take(lane, 1):
            return
        self._buckets.waits(lane, 1)
        try:
            while not self._buckets.take(lane, 1):
                await self._sleep(PAUSE_S)
        finally:
            self._buckets.waits(lane, -1)

    def _lane(self) -> str:
        lane = self._of or current_lane.get()
        return lane if lane in self._buckets.cells.lanes else EVENTS


def fleet_limiter(row: Row, limits: BudgetLimits, now_ms: Callable[[], int]) -> FleetLimiter:
    """Of the process that counts in this row. Make it on the I/O loop."""
    buckets = Buckets(row, limits.most, now_ms)
    return FleetLimiter(buckets, Flights(buckets, limits.flights > 0))
