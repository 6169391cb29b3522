"""The requests that a worker has under way: no more than its share, and what their answers say of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import delay_s
from oarlock.workers.budget.answers import AnswerTimes
from oarlock.workers.budget.buckets import Buckets

LOOK_S = 0.2
"""How often a request that waits for another's end looks whether its share has grown."""
AHEAD = 4
"""A turn announces at most so many times as many writes as may be under way: others would wait too long to be sent."""
WANTED_MS = 1_000
"""For so long the most requests that were wanted at once count as wanted."""


class Flights:
    """Of one process, on its I/O loop. ``limited``: whether the fleet has a limit of requests under way."""

    def __init__(self, buckets: Buckets, limited: bool) -> None:
        self._buckets, self._cells, self._ints, self._limited = buckets, buckets.cells, buckets.ints, limited
        self._times = AnswerTimes()
        self._order, self._ended = asyncio.Lock(), asyncio.Event()
        self._waiting = 0
        self._wanted_since_ms = 0
        for cell in (self._cells.under_way, self._cells.wanted, self._cells.judged_ms):
            self._ints[cell] = 0

    @property
    def most(self) -> int:
        """How many may be under way. One at least: a worker that may send nothing would not learn that it may again."""
        lent = self._buckets.now_ms() < self._ints[self._cells.until_ms]
        return max(1, self._ints[self._cells.flights] if lent else 1)

    def announced(self, wanted: int) -> int:
        """How many of the writes that a turn wants to send it is to announce now."""
        return min(wanted, AHEAD * self.most) if self._limited else wanted

    async def carry(self, send: Callable[[], Awaitable[Answer]]) -> Answer:
        """Send a request when it may be under way, and learn from its answer."""
        if self._limited:
            await self._enter()
        self._ints[self._cells.under_way] += 1
        self._want()
        begun_ms = self._buckets.now_ms()
        try:
            answer = await send()
        finally:
            self._ints[self._cells.under_way] -= 1
            self._ended.set()
        self._learn(answer, begun_ms)
        return answer

    async def _enter(self) -> None:
        self._waiting += 1
        try:
            self._want()
            async with self._order:
                while self._ints[self._cells.under_way] >= self.most:
                    self._ended.clear()
                    try:
                        await asyncio.wait_for(self._ended.wait(), LOOK_S)
                    except TimeoutError:
                        continue
        finally:
            self._waiting -= 1

    def _want(self) -> None:
        now_ms, wanted = self._buckets.now_ms(), self._ints[self._cells.under_way] + self._waiting
        if wanted >= self._ints[self._cells.wanted] or now_ms - self._wanted_since_ms > WANTED_MS:
            self._ints[self._cells.wanted], self._wanted_since_ms = wanted, now_ms

    def _learn(self, answer: Answer, begun_ms: int) -> None:
        now_ms = self._buckets.now_ms()
        if answer.code == 429:
            self._buckets.told_to_wait(delay_s(answer))
        slow = self._times.add((now_ms - begun_ms) / 1_000, now_ms)
        if slow is not None:
            self._ints[self._cells.slow], self._ints[self._cells.judged_ms] = int(slow), now_ms
