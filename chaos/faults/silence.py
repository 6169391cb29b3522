"""What a fleet can do without says nothing for a while: Sentinels, or the Redis where RQ keeps its keys.

Workers are killed meanwhile, and connections closed: what begins then has to begin without them.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence

from oarlock.chaos.faults.process_faults import ProcessFaults
from oarlock.chaos.faults.schedule import Planned
from oarlock.chaos.rig.redis_pair import Server
from oarlock.chaos.rig.rig import Rig
from oarlock.chaos.rig.rq_apart import RqApart
from oarlock.chaos.rig.two_hosts import TwoHosts

KILLS_S = (1.0, 2.5)


class Silence:
    """On the servers of a rig. Each method is one episode and returns how often it struck."""

    def __init__(self, rig: Rig, faults: ProcessFaults, chance: random.Random) -> None:
        self._rig, self._faults, self._chance = rig, faults, chance

    async def of_sentinels(self, planned: Planned) -> int:
        """Of one, of two, then of all. ``struck``: connections to the master that were closed meanwhile."""
        assert isinstance(self._rig, TwoHosts)
        pair = self._rig.pair
        with _silenced(pair.sentinels[: 1 + int(planned.detail) % len(pair.sentinels)]):
            closed = 0
            async for _ in self._kills(planned):
                closed += await asyncio.to_thread(pair.ask, pair.master, "CLIENT", "KILL", "TYPE", "normal") or 0
        return closed

    async def of_rq(self, planned: Planned) -> int:
        """It stands still; every other time it is gone, with what it held. ``struck``: workers killed meanwhile."""
        assert isinstance(self._rig, RqApart)
        gone, killed = bool(int(planned.detail) % 2), 0
        with _silenced([self._rig.rq]):
            if gone:
                self._rig.rq.kill()
            async for hit in self._kills(planned):
                killed += hit
        if gone:
            self._rig.rq.start()
        return killed

    async def _kills(self, planned: Planned) -> AsyncIterator[bool]:
        """As long as the episode lasts, whether a worker was killed."""
        until_s = time.monotonic() + planned.lasts_s
        while (left_s := until_s - time.monotonic()) > 0:
            await asyncio.sleep(min(left_s, self._chance.uniform(*KILLS_S)))
            yield self._faults.kill_any("worker")


@contextlib.contextmanager
def _silenced(servers: Sequence[Server]) -> Iterator[None]:
    for each in servers:
        each.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for each in servers:
            each.signal(signal.SIGCONT)
