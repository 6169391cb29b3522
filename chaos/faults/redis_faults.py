"""What can be done to a Redis under a fleet. Each method is one episode and returns how often it struck."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import redis
from redis.exceptions import RedisError

from oarlock.broker.connection.client import connect
from oarlock.chaos.faults.process_faults import ProcessFaults
from oarlock.chaos.faults.redis_view import RedisView
from oarlock.chaos.faults.schedule import Planned
from oarlock.chaos.judge.evidence.evidence import Blow
from oarlock.chaos.rig.redis_program import CUT_FILE
from oarlock.chaos.rig.two_hosts import TwoHosts
from oarlock.chaos.stage import Stage

SLOW_STOPS_S, SLOW_RUNS_S = (0.05, 0.4), 0.02
FULL_LOOK_S = 0.1
JUMPS_S = (20, -20, 3_600, -3_600, 7, -7, 300, -86_400, 86_400)
CLOCK_FOLLOWS_S = 4.0
TAIL_S = 1.0
TAIL_LOOK_S = 0.05
BACK_LIMIT_S = 15.0


class RedisFaults:
    """On the Redis, or the pair of them, of a stage."""

    def __init__(self, stage: Stage, redis_view: RedisView, faults: ProcessFaults, chance: random.Random) -> None:
        self._stage, self._redis_view, self._faults, self._chance = stage, redis_view, faults, chance

    def _redis_pid(self) -> int:
        servers = self._stage.rig.targets("redis")
        return servers[0].pid if servers else 0

    async def slow(self, planned: Planned) -> int:
        stops, lasting = 0, _for(planned.lasts_s)
        while lasting() and (pid := self._redis_pid()):
            try:
                stops += self._faults.signal(pid, signal.SIGSTOP)
                await asyncio.sleep(self._chance.uniform(*SLOW_STOPS_S))
            finally:
                self._faults.signal(pid, signal.SIGCONT)
            await asyncio.sleep(SLOW_RUNS_S)
        return stops

    async def blocked(self, planned: Planned) -> int:
        """A script without an end, until it is killed: Redis hears that after five seconds at the earliest.

        ``struck``: looks that were answered BUSY or not at all.
        """
        lasting = _for(planned.lasts_s)
        block = asyncio.create_task(asyncio.to_thread(self._asked, 60.0, "EVAL", "while true do end", 0))
        struck = 0
        try:
            while lasting():
                await asyncio.sleep(0.2)
                struck += not await asyncio.to_thread(self._asked, 0.5, "PING")
        finally:
            while not block.done():
                await asyncio.to_thread(self._asked, 1.0, "SCRIPT", "KILL")
        return struck

    def _asked(self, timeout_s: float, *words: str | int) -> bool:
        """Whether it was answered, and not with an error."""
        with self._client(timeout_s) as client:
            try:
                client.execute_command(*words)
            except RedisError:
                return False
        return True

    @contextlib.contextmanager
    def _client(self, timeout_s: float) -> Iterator[Any]:
        client = connect(self._stage.rig.redis_url(), timeout_s=timeout_s)
        try:
            yield client
        finally:
            client.close()

    async def full(self, planned: Planned) -> int:
        """Every other time nothing at all may be added; else there is room as long as nothing grows.

        ``struck``: commands that the server refused for want of memory.
        """
        lasting = _for(planned.lasts_s)
        with self._client(2.0) as client:
            before = _refused_for_memory(client)
            limit = _used(client) // (1 + int(planned.detail) % 2)
            try:
                while lasting():
                    limit = min(limit, _used(client))
                    client.config_set("maxmemory", limit)
                    await asyncio.sleep(FULL_LOOK_S)
            finally:
                struck = _refused_for_memory(client) - before
                client.config_set("maxmemory", 0)
        return struck

    async def jump(self, planned: Planned) -> int:
        """``struck``: 1 where the server's clock was seen to have jumped."""
        assert self._stage.clock is not None
        file, known = self._stage.clock
        now = int(known.offset_s)
        choices = [each for each in JUMPS_S if each != now]
        target = choices[(int(planned.detail) + self._chance.randrange(2)) % len(choices)]
        known.expect(target)
        file.set(target)
        seen, in_time = False, _for(CLOCK_FOLLOWS_S)
        while not seen and in_time():
            await asyncio.sleep(0.1)
            seen = abs(await asyncio.to_thread(self._clock_of_redis) - time.time() - target) < 2.0
        await asyncio.sleep(planned.lasts_s)
        return int(seen)

    def _clock_of_redis(self) -> float:
        try:
            with self._client(1.0) as client:
                seconds, micro = client.time()
        except RedisError:
            return 0.0
        return int(seconds) + int(micro) / 1e6

    async def lose_tail(self, planned: Planned) -> int:
        """``struck``: bytes of the log that were lost."""
        pid, seen = self._redis_pid(), []
        (log,) = self._stage.rig.state.redis.glob("appendonlydir/*.incr.aof")
        lasting = _for(TAIL_S * self._chance.uniform(1.0, 3.0))
        while lasting():
            seen.append(log.stat().st_size)
            await asyncio.sleep(TAIL_LOOK_S)
        (self._stage.programs / CUT_FILE).write_text(f"{seen[0]} {log}\n")
        at_s = time.time()
        if not self._faults.signal(pid, signal.SIGKILL):
            return 0
        size = log.stat().st_size
        self._faults.blows.append(Blow(at_s, "redis", pid))
        in_time = _for(BACK_LIMIT_S)
        while not self._redis_view.phase() and in_time():
            await asyncio.sleep(0.05)
        return size - seen[0]

    # -- a pair of them

    async def leave_old_master(self, planned: Planned) -> int:
        """``struck``: looks at which the old master went on to answer."""
        rig, pair = self._two_hosts(), self._two_hosts().pair
        old, new = pair.master, pair.other(pair.master)
        host = int(planned.detail) % 2
        pair.follow(new, None)
        await rig.lay(host, new)
        struck, lasting = 0, _for(planned.lasts_s)
        while lasting():
            struck += bool(await asyncio.to_thread(pair.ask, old, "PING"))
            await asyncio.sleep(0.2)
        pair.master = new
        pair.follow(old, new)
        await rig.lay(1 - host, new)
        self._redis_view.close()
        await pair.replicated(old)
        return struck

    async def fail_over(self, planned: Planned) -> int:
        """``struck``: 1 once the Sentinels have made the other one the master."""
        pair = self._two_hosts().pair
        old, new = pair.master, pair.other(pair.master)
        how = ("killed", "ordered", "hanging")[int(planned.detail) % 3]
        if how == "killed":
            old.kill()
        elif how == "ordered":
            pair.order_failover()
        else:
            old.signal(signal.SIGSTOP)
        await pair.named(new)
        self._redis_view.close()
        if how == "killed":
            old.start()
        await asyncio.sleep(planned.lasts_s)
        old.signal(signal.SIGCONT)
        await pair.rejoined()
        return 1

    def _two_hosts(self) -> TwoHosts:
        assert isinstance(self._stage.rig, TwoHosts)
        return self._stage.rig


def _for(seconds: float) -> Callable[[], bool]:
    """Whether so much time is not over yet, from now on."""
    until_s = time.monotonic() + seconds
    return lambda: time.monotonic() < until_s


def _used(client: redis.Redis) -> int:
    return int(client.info("memory")["used_memory"])


def _refused_for_memory(client: redis.Redis) -> int:
    told = client.info("errorstats")
    return int(told.get("errorstat_OOM", {}).get("count", 0))
