"""Kills of workers at named points: a trap is set, and the worker that comes to it for the n-th time kills itself."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict

from oarlock.chaos.faults.traps import Traps
from oarlock.chaos.judge.evidence.evidence import Blow

VISITS_MAX = 3
LIMIT_S = 8.0
"""How long a trap is left where nobody comes by."""
LOOK_S = 0.005


class PointKills:
    """``kill`` at a point, then ``blows``: what the judge is told of the deaths since the last time."""

    def __init__(self, traps: Traps, seed: int) -> None:
        self._traps, self._chance = traps, random.Random(f"visits {seed}")
        self._one_each: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def kill(self, point: str) -> bool:
        """Whether a worker came by and died."""
        loop = asyncio.get_running_loop()
        async with self._one_each[point]:
            self._traps.set(point, self._chance.randint(1, VISITS_MAX))
            until_s = loop.time() + LIMIT_S
            try:
                while self._traps.is_set(point) and loop.time() < until_s:
                    await asyncio.sleep(LOOK_S)
            finally:
                missed = self._traps.clear(point)
        return not missed

    def blows(self) -> list[Blow]:
        """Each is a death of a worker, as by any other kill, with the point for a reason."""
        return [
            Blow(each.at_s, "worker", each.pid, (each.holder,), 0.0, each.point) for each in self._traps.new_deaths()
        ]
