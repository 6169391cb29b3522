"""One look a second for all who watch, however many they are; none while nobody watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cli.board.lanes import Lanes
from oarlock.cli.board.past import Past
from oarlock.cli.board.shown import Shown
from oarlock.cli.watch.fleet_look import FleetLook
from oarlock.cli.watch.rates import Rates, rates

RATES_OVER_S = 5.0
"""Looks farther apart than this and the interval give no rates: a mean over a long time would look like the present."""

FRESH_FOR = 2
"""A look of so many intervals ago is still of now."""
PRICE = 45
"""A second of this process's processor time is followed by so many without a look: all of the board takes 2 % of a core
or a little more, also on a slow machine and with many keys. There it looks less often.
"""
APART_MAX_S = 4.0


class Hub:
    """``look``: blocks, and raises BrokerUnreachable; it is called in a thread, one call at a time. ``spent_s``: the
    processor time of this process.
    """

    def __init__(
        self,
        look: Callable[[], FleetLook],
        queues: Sequence[str],
        interval_s: float,
        spent_s: Callable[[], float] = time.process_time,
    ) -> None:
        self._look, self._interval_s, self._spent_s = look, interval_s, spent_s
        self.past, self._lanes = Past(queues, interval_s), Lanes()
        self.shown: Shown | None = None
        self._seen: FleetLook | None = None
        self._looked_s = 0.0
        self._watching, self._watched, self._looked = 0, asyncio.Event(), asyncio.Condition()

    @property
    def watching(self) -> int:
        """How many watch now."""
        return self._watching

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Somebody watches meanwhile."""
        self._watching += 1
        self._watched.set()
        try:
            yield
        finally:
            self._watching -= 1
            if not self._watching:
                self._watched.clear()

    async def after(self, number: int) -> Shown:
        """The newest look, once it is newer than this one. For those who watch."""
        async with self._looked:
            await self._looked.wait_for(lambda: self.shown is not None and self.shown.number > number)
            assert self.shown is not None
            return self.shown

    async def first(self) -> Shown:
        """The newest look if it is of now, else the next one. For those who begin to watch."""
        shown = self.shown
        if shown is not None and time.monotonic() - self._looked_s < FRESH_FOR * self._interval_s:
            return shown
        return await self.after(shown.number if shown is not None else 0)

    async def run(self) -> None:
        """Look again and again, while somebody watches."""
        spent_s = self._spent_s()
        while True:
            await self._watched.wait()
            begun_s = time.monotonic()
            await self.look_now()
            before_s, spent_s = spent_s, self._spent_s()
            apart_s = max(self._interval_s, min(APART_MAX_S, PRICE * (spent_s - before_s)))
            await asyncio.sleep(max(0.0, apart_s - (time.monotonic() - begun_s)))

    async def look_now(self) -> None:
        """Look once, and wake those who wait for it."""
        look, lost = None, ""
        try:
            look = await asyncio.to_thread(self._look)
        except BrokerUnreachable as error:
            lost = str(error)
        async with self._looked:
            self.shown, self._looked_s = self._put(look, lost), time.monotonic()
            self._looked.notify_all()

    def _put(self, look: FleetLook | None, lost: str) -> Shown:
        now_s, before = time.time(), self._seen
        if look is not None:
            if before is not None and look.at_s - before.at_s > RATES_OVER_S + self._interval_s:
                before = None
            self._seen = look
            self._lanes.see(look, int(now_s * 1_000))
        found = rates(before, look) if look is not None else Rates()
        point = self.past.add(round(now_s, 3), look, found)
        number = 1 if self.shown is None else self.shown.number + 1
        return Shown(number, look or self._seen, found, point, self._lanes.rows(), lost, self.shown)
