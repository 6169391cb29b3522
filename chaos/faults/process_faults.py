"""The faults, carried out: signals to processes, and the loss of what Redis holds."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path

from oarlock.chaos.faults.point_kills import PointKills
from oarlock.chaos.faults.redis_view import RedisView
from oarlock.chaos.faults.schedule import Planned
from oarlock.chaos.faults.traps import Traps
from oarlock.chaos.judge.evidence.evidence import Blow
from oarlock.chaos.rig.rig import Rig, Target

HUNT_S = 1.5
"""How long to wait until some worker has writes in flight."""
HUNT_STEP_S = 0.002
VICTIM_LIMIT_S = 6.0
"""How long to wait for an open epoch, and then for a victim."""
KEPT_UP_STEP_S = 0.1
LOST_AT_WORK = 0.75
"""How many of the losses of Redis wait for writes in flight; the others come as they come, into a drain, too."""
HEAD_START_S = 0.3
"""Frozen workers go on so much earlier than their supervisor, which would end them at once."""


class ProcessFaults:
    """``run`` a schedule; ``blows`` is what was really done. ``missed``: faults for which no victim was found.

    ``traps``: the folder of the traps at named points, if there are some. ``queued_max``: as of a ``Mix``.
    """

    def __init__(
        self, rig: Rig, redis_view: RedisView, seed: int, traps: Path | None = None, queued_max: int = 0
    ) -> None:
        self._rig, self._redis_view, self._queued_max = rig, redis_view, queued_max
        self._points = PointKills(Traps(traps), seed) if traps is not None else None
        self._chance = random.Random(f"victims {seed}")
        self._frozen: dict[int, Target] = {}
        self._beside: list[asyncio.Task[None]] = []
        """Faults that the next one does not wait for."""
        self.blows: list[Blow] = []
        self.missed: list[str] = []

    async def run(self, plan: Sequence[Planned], begin_s: float, end_s: float) -> None:
        """Times are of the event loop's clock. What is late comes at once, and after ``end_s`` not at all."""
        async for planned in self.due(plan, begin_s, end_s):
            match planned.kind:
                case "worker":
                    await self._kill_worker(planned)
                case "pause":
                    self._beside.append(asyncio.create_task(self.pause(planned)))
                case "point":
                    self._beside.append(asyncio.create_task(self._kill_at(planned.detail)))
                case "redis":
                    if self._chance.random() < LOST_AT_WORK:
                        await self._until_at_work()
                    self._lose_redis(planned)
                case role:
                    self.kill_any(role)
        await asyncio.gather(*self._beside)

    async def due(self, plan: Sequence[Planned], begin_s: float, end_s: float) -> AsyncIterator[Planned]:
        """Each fault of a plan when it is due; those that ``end_s`` comes before are missed. Raises RigFailed."""
        loop = asyncio.get_running_loop()
        for planned in plan:
            await asyncio.sleep(max(0.0, begin_s + planned.at_s - loop.time()))
            while self._queued_max and loop.time() < end_s and self._redis_view.queued() > self._queued_max:
                await asyncio.sleep(KEPT_UP_STEP_S)
            if loop.time() > end_s:
                self.missed.append(planned.kind)
                continue
            self._rig.check()
            yield planned

    def thaw(self) -> None:
        """Let every frozen process go on."""
        for task in self._beside:
            task.cancel()
        for pid in list(self._frozen):
            self.signal(pid, signal.SIGCONT)
        self._frozen.clear()

    # -- kills

    async def _kill_worker(self, planned: Planned) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        while self._redis_view.phase() != "OPEN" and loop.time() - began_s < VICTIM_LIMIT_S:
            await asyncio.sleep(0.05)  # nobody does anything in a drain
        began_s = loop.time()
        while True:
            living = self._free("worker")
            if planned.detail == "busy" and loop.time() - began_s < HUNT_S:
                victim, why = self._busy(living), "writes in flight"
            else:
                victim, why = self._any(living), "any"
            if victim is not None and self.kill_one(victim, (victim.name,), why):
                return
            if loop.time() - began_s > VICTIM_LIMIT_S:
                self.missed.append("worker")
                return
            await asyncio.sleep(HUNT_STEP_S if planned.detail == "busy" else 0.02)

    async def _kill_at(self, point: str) -> None:
        assert self._points is not None
        if not await self._points.kill(point):
            self.missed.append("point")
        self.hear()

    def hear(self) -> None:
        """Take note of the workers that have killed themselves."""
        if self._points is not None:
            self.blows += self._points.blows()

    def kill_any(self, role: str) -> bool:
        """SIGKILL to one of the role. False where there is none, which counts as missed."""
        living, busy = self._free(role), self._busy(self._free("worker")) if role == "supervisor" else None
        victim = self._any([each for each in living if busy and each.fleet == busy.fleet] or living)
        if victim is None:
            self.missed.append(role)
            return False
        beside = [each.name for each in self._rig.targets("worker") if each.fleet == victim.fleet]
        holders = {"supervisor": tuple(beside), "worker": (victim.name,)}.get(role, ())
        return self.kill_one(victim, holders, "")

    def kill_one(self, victim: Target, holders: tuple[str, ...], why: str) -> bool:
        """SIGKILL. ``holders``: the workers that die with it. False where it is gone already."""
        at_s = time.time()
        if not self.signal(victim.pid, signal.SIGKILL):
            return False
        self.blows.append(Blow(at_s, victim.role, victim.pid, holders, 0.0, why))
        return True

    async def _until_at_work(self) -> None:
        """Wait, not for ever, for an open epoch with writes in flight: where nothing is done, little is lost."""
        until_s = time.monotonic() + VICTIM_LIMIT_S
        while time.monotonic() < until_s:
            if self._redis_view.phase() == "OPEN" and self._busy(self._free("worker")) is not None:
                return
            await asyncio.sleep(HUNT_STEP_S)

    def _lose_redis(self, planned: Planned) -> None:
        at_s = time.time()
        if planned.detail == "flushall":
            if self._redis_view.flushall():
                self.blows.append(Blow(at_s, "flushall"))
            else:
                self.missed.append("redis")
            return
        servers = self._rig.targets("redis")
        if servers and self.signal(servers[0].pid, signal.SIGKILL):
            self.blows.append(Blow(at_s, "redis", servers[0].pid))
        else:
            self.missed.append("redis")

    # -- pauses

    async def pause(self, planned: Planned) -> None:
        """A worker stands still, or a whole host: its supervisor with all workers, while the other fleet goes on."""
        targets, until_s = await self._to_freeze(planned.detail), time.monotonic() + VICTIM_LIMIT_S
        while not targets and time.monotonic() < until_s:
            await asyncio.sleep(0.1)  # others are frozen, or only starting
            targets = await self._to_freeze(planned.detail)
        if not targets:
            self.missed.append("pause")
            return
        workers = [each for each in targets if each.role == "worker"]
        at_s = time.time()
        for each in targets:
            if self.signal(each.pid, signal.SIGSTOP):
                self._frozen[each.pid] = each
        names = tuple(each.name for each in workers)
        held = {lock.task for lock in self._redis_view.locks() if lock.holder in names}
        try:
            await asyncio.sleep(planned.lasts_s)
            await self._until_taken_over(held, names)
            self.blows.append(Blow(at_s, "pause", targets[0].pid, names, time.time(), planned.detail))
            self._let_go(workers)
            if len(workers) < len(targets):
                await asyncio.sleep(HEAD_START_S)
        finally:
            self._let_go(targets)

    async def _to_freeze(self, what: str) -> list[Target]:
        """A worker, or a host as long as another one goes on; nobody where there is none."""
        if what == "worker":
            living = self._free("worker")
            victim = self._busy(living) or self._any(living)
            return [victim] if victim is not None else []
        fleet = await self._busy_fleet()
        supervisors = self._free("supervisor")  # after the wait: another one may have been frozen meanwhile
        if len(supervisors) < 2:
            return []
        found = [each for each in supervisors if each.fleet == fleet] or [self._chance.choice(supervisors)]
        return [*found, *(each for each in self._free("worker") if each.fleet == found[0].fleet)]

    async def _busy_fleet(self) -> int | None:
        """The fleet of a worker with writes in flight; None where none has any for a while."""
        until_s = time.monotonic() + HUNT_S
        while time.monotonic() < until_s:
            worker = self._busy(self._free("worker"))
            if worker is not None:
                return worker.fleet
            await asyncio.sleep(HUNT_STEP_S)
        return None

    async def _until_taken_over(self, tasks: Collection[str], holders: Collection[str]) -> None:
        """Wait, not for long, for a moment at which others work on what the frozen held."""
        until_s = time.monotonic() + HUNT_S  # by the clock: on a busy machine a look takes many times a step
        while time.monotonic() < until_s:
            if any(lock.task in tasks and lock.holder not in holders for lock in self._redis_view.locks()):
                return
            await asyncio.sleep(HUNT_STEP_S)

    def _let_go(self, targets: Sequence[Target]) -> None:
        for each in targets:
            if self._frozen.pop(each.pid, None) is not None:
                self.signal(each.pid, signal.SIGCONT)

    # -- with

    def _any(self, living: Sequence[Target]) -> Target | None:
        return self._chance.choice(living) if living else None

    def _busy(self, living: Sequence[Target]) -> Target | None:
        """One with writes in flight."""
        by_name = {each.name: each for each in living}
        name = self._redis_view.busy(by_name) if by_name else None
        return by_name[name] if name is not None else None

    def _free(self, role: str) -> list[Target]:
        """The processes of a role that are not frozen, and not on a frozen host."""
        fleets = {each.fleet for each in self._frozen.values() if each.role == "supervisor"}
        fleet_wide = role in ("worker", "supervisor")
        return [
            each
            for each in self._rig.targets(role)
            if each.pid not in self._frozen and not (fleet_wide and each.fleet in fleets)
        ]

    def signal(self, pid: int, number: signal.Signals) -> bool:
        """False where there is no such process."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True
