"""The limiter of a worker under a fleet's API budget: a ``cluster.http.throttle.Limiter`` for its turns and events.

The lane of a request is the queue of the turn that makes it, or ``events``.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from oarlock.broker.budget import EVENTS, BudgetLimits
from oarlock.cluster.answer import Answer
from oarlock.workers.budget.buckets import Buckets
from oarlock.workers.budget.flights import Flights
from oarlock.workers.counters.table import Row

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

    def try_take(self, n: int = 1, wanted: int = 1) -> int:
        return self._buckets.take(self._lane(), n)

    def give_back(self, n: int) -> None:
        self._buckets.give_back(self._lane(), n)

    def wait_s(self, n: int = 1) -> float:
        return self._buckets.wait_s(self._lane(), n)

    async def take(self) -> None:
        lane = self._lane()
        async with self._order[lane]:
            await self._wait_for(lane)

    async def carry(self, send: Callable[[], Awaitable[Answer]]) -> Answer:
        return await self._flights.carry(send)

    async def promise(self, wanted: int, wait_s: float) -> int:
        """How many of the writes that a turn wants to send it is to announce now. Each takes its token when it is sent.

        Where the share is too small for all of them, the turn first waits until its supervisor has told of it: so the
        shares follow a large owner from worker to worker. 0: none within the time.
        """
        lane, wanted = self._lane(), self._flights.announced(wanted)
        ends_s, waits = self._clock_s() + wait_s, False
        try:
            while True:
                promised = self._buckets.promise(lane, wanted)
                if promised == wanted or (promised and self._buckets.is_known(lane)):
                    return promised
                if self._clock_s() >= ends_s:
                    return promised
                self._buckets.redeem(lane, promised)
                if not waits:
                    self._buckets.waits(lane, 1)
                    waits = True
                await self._sleep(PAUSE_S)
        finally:
            if waits:
                self._buckets.waits(lane, -1)

    def redeem(self, n: int) -> None:
        """So many writes were promised tokens and will not take them."""
        self._buckets.redeem(self._lane(), n)

    async def take_until(self, deadline_s: float, promised: bool) -> bool:
        """As ``take``, for a write that may be sent until then. False: there was no token in time."""
        lane = self._lane()
        try:
            async with self._order[lane]:
                return await self._wait_for(lane, deadline_s)
        finally:
            if promised:
                self._buckets.redeem(lane, 1)

    async def _wait_for(self, lane: str, deadline_s: float = math.inf) -> bool:
        """One token. False: the deadline came first."""
        if self._clock_s() >= deadline_s:
            return False
        if self._buckets.take(lane, 1):
            return True
        self._buckets.waits(lane, 1)
        try:
            while self._clock_s() < deadline_s:
                await self._sleep(PAUSE_S)
                if self._buckets.take(lane, 1):
                    return True
            return False
        finally:
            self._buckets.waits(lane, -1)

    def _clock_s(self) -> float:
        """CLOCK_BOOTTIME, as that of deadlines."""
        return self._buckets.now_ms() / 1_000

    def _lane(self) -> str:
        lane = self._of or current_lane.get()
        return lane if lane in self._buckets.cells.lanes else EVENTS


def fleet_limiter(row: Row, limits: BudgetLimits, lease_ms: int, now_ms: Callable[[], int]) -> FleetLimiter:
    """Of the process that counts in this row. Make it on the I/O loop."""
    buckets = Buckets(row, limits.most, lease_ms, now_ms)
    return FleetLimiter(buckets, Flights(buckets, limits.flights > 0))
