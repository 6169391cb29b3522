"""The episodes of one sort, carried out one after the other, each with a count of how often it really struck."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from oarlock.chaos.faults.api_faults import ApiFaults
from oarlock.chaos.faults.episodes import EPISODES
from oarlock.chaos.faults.process_faults import ProcessFaults
from oarlock.chaos.faults.redis_faults import RedisFaults
from oarlock.chaos.faults.redis_view import RedisView
from oarlock.chaos.faults.schedule import Planned
from oarlock.chaos.faults.silence import Silence
from oarlock.chaos.judge.evidence.evidence import Blow
from oarlock.chaos.stage import Stage


class EpisodeRunner:
    """``run`` a plan of ``episodes``. ``struck``: sort -> how often; ``idle``: episodes that never struck."""

    def __init__(self, stage: Stage, redis_view: RedisView, faults: ProcessFaults, api: ApiFaults, seed: int) -> None:
        self._rig, self._network, self._redis_view = stage.rig, stage.network, redis_view
        self._faults, self._api = faults, api
        self._chance = random.Random(f"strikes {seed}")
        self._redis = RedisFaults(stage, redis_view, faults, self._chance)
        self._silence = Silence(stage.rig, faults, self._chance)
        self.struck: Counter[str] = Counter()
        self.idle = 0

    async def run(self, plan: Sequence[Planned], begin_s: float, end_s: float) -> None:
        """As ``ProcessFaults.run``."""
        loop = asyncio.get_running_loop()
        async for planned in self._faults.due(plan, begin_s, end_s):
            while self._redis_view.phase() != "OPEN" and loop.time() < end_s:
                await asyncio.sleep(0.05)
            at_s = time.time()
            struck = await self._strike(planned)
            self.struck[planned.kind] += struck
            self.idle += not struck
            told = Blow(at_s, planned.kind, 0, (), time.time(), f"struck {struck} times", EPISODES[planned.kind].whole)
            self._faults.blows.append(told)

    def _strike(self, planned: Planned) -> Awaitable[int]:
        wire, _, mode = planned.kind.partition("-")
        if self._network is not None and wire in self._network.wires:
            return self._bad_wire(wire, mode, planned)
        played: dict[str, Callable[[Planned], Awaitable[int]]] = {
            "refused-names": self._refused_names,
            "host-death": self._host_death,
            "host-freeze": self._host_freeze,
            "slow-redis": self._redis.slow,
            "blocked-redis": self._redis.blocked,
            "full-redis": self._redis.full,
            "clock-jump": self._redis.jump,
            "lost-tail": self._redis.lose_tail,
            "old-master": self._redis.leave_old_master,
            "sentinel": self._redis.fail_over,
            "silent-sentinels": self._silence.of_sentinels,
            "silent-rq": self._silence.of_rq,
        }
        return played[planned.kind](planned)

    # -- the network of host 2, and the API

    async def _bad_wire(self, name: str, mode: str, planned: Planned) -> int:
        assert self._network is not None
        wire = self._network.wires[name]
        if mode == "one-way":
            mode = ("no-answers", "no-requests")[int(planned.detail) % 2]
        await wire.turn(mode)
        try:
            await asyncio.sleep(planned.lasts_s)
        finally:
            struck = await wire.turn("pass")
        return struck

    async def _refused_names(self, planned: Planned) -> int:
        before = self._api.refused
        await self._api.refuse_names(self._chance.randrange(1 << 30))
        try:
            await asyncio.sleep(planned.lasts_s)
        finally:
            await self._api.refuse_no_names()
        return self._api.refused - before

    # -- a host

    async def _host_death(self, planned: Planned) -> int:
        fleet = self._chance.choice((0, 1))
        supervisors = [each for each in self._rig.targets("supervisor") if each.fleet == fleet]
        workers = [each for each in self._rig.targets("worker") if each.fleet == fleet]
        names = tuple(each.name for each in workers)
        held = sum(lock.holder in names for lock in self._redis_view.locks())
        for victim in supervisors:
            self._faults.kill_one(victim, names, "with its host")
            for each in workers:
                self._faults.signal(each.pid, signal.SIGKILL)
        return held + len(workers)

    async def _host_freeze(self, planned: Planned) -> int:
        before = len(self._faults.blows)
        await self._faults.pause(planned._replace(kind="pause", detail="host"))
        return sum(len(blow.holders) for blow in self._faults.blows[before:])
