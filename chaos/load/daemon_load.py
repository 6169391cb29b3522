"""The load of DaemonSets: template changes while others are still being rolled out, broken ones, pods that go."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from oarlock.chaos.judge.evidence.objects import VERSION
from oarlock.chaos.judge.evidence.sightings import DaemonSetSeen
from oarlock.chaos.load.plans import DAEMON_PLANS, FAIL, NEVER_READY, DaemonPlan, DaemonRole, daemon_body
from oarlock.chaos.load.user import User
from oarlock.cluster import resources

BROKEN_S = (1.0, 4.0)
"""How long a broken template stays."""
_DAEMONSETS = resources.DAEMONSETS


class DaemonLoad:
    """``begin`` makes them; ``run`` goes on until it is cancelled; ``finish`` mends what is broken."""

    def __init__(self, user: User, seed: int) -> None:
        self._user, self._live, self._seed = user, user.live, seed

    async def begin(self) -> None:
        for plan in DAEMON_PLANS:
            await self._user.create(_DAEMONSETS, plan.namespace, daemon_body(plan))

    async def run(self) -> None:
        """Disturb all of them at the same time."""
        async with asyncio.TaskGroup() as group:
            for plan in DAEMON_PLANS:
                group.create_task(self._disturb(plan))

    async def finish(self) -> None:
        """Every one is there, with a template that works, and looks at its nodes once more.

        A node that only gains a NoSchedule taint wakes no DaemonSet (upstream: daemon_controller.go, syncNodeUpdate),
        so a status may rightly be of before; a change of the spec that changes no pod has it written anew.
        """
        live = self._live
        ending = {task for task, owner in live.daemon_sets.items() if owner.deleting}
        await self._user.until(lambda: ending.isdisjoint(live.daemon_sets))
        for plan in DAEMON_PLANS:
            if plan.task not in live.daemon_sets:
                await self._user.create(_DAEMONSETS, plan.namespace, daemon_body(plan))
            elif plan.role is DaemonRole.BROKEN:
                await self._roll(plan, live.daemon_sets[plan.task], {FAIL: None, NEVER_READY: None}, "mended")
            else:
                change = {"spec": {"revisionHistoryLimit": 9}}
                await self._user.merge(_DAEMONSETS, plan.namespace, plan.name, change, "daemon sets looked after")

    async def _disturb(self, plan: DaemonPlan) -> None:
        chance = random.Random(f"daemons {self._seed} {plan.task}")
        ways = _WAYS[plan.role]
        while True:
            pause_s = chance.uniform(3.0, 6.0) if chance.random() < 0.3 else chance.uniform(0.3, 2.0)
            await asyncio.sleep(pause_s * self._user.pace)
            owner = self._live.daemon_sets.get(plan.task)
            if owner is None or owner.deleting:
                continue
            (way,) = chance.choices(list(ways), list(ways.values()))
            await getattr(self, f"_{way}")(plan, owner, chance)

    # -- what is done

    async def _change(self, plan: DaemonPlan, owner: DaemonSetSeen, chance: random.Random) -> None:
        await self._roll(plan, owner, {}, "templates changed")

    async def _break(self, plan: DaemonPlan, owner: DaemonSetSeen, chance: random.Random) -> None:
        broken = {FAIL: "chaos"} if chance.random() < 0.6 else {NEVER_READY: "true"}
        if await self._roll(plan, owner, broken, "templates broken"):
            await asyncio.sleep(chance.uniform(*BROKEN_S))
            await self._roll(plan, owner, {FAIL: None, NEVER_READY: None}, "templates mended", steps=2)

    async def _roll(
        self, plan: DaemonPlan, owner: DaemonSetSeen, more: dict[str, Any], what: str, steps: int = 1
    ) -> bool:
        """Another template: so many ``steps`` after that of ``owner``."""
        version = str(int(owner.version or 0) + steps)
        change = {"spec": {"template": {"metadata": {"annotations": {VERSION: version, **more}}}}}
        return await self._user.merge(_DAEMONSETS, plan.namespace, plan.name, change, what)

    async def _delete_pods(self, plan: DaemonPlan, owner: DaemonSetSeen, chance: random.Random) -> None:
        for pod in self._user.some_pods(owner.uid, chance, 3):
            await self._user.delete_pod(pod, "daemon pods deleted", chance.choice((None, 0)))

    async def _fail_pods(self, plan: DaemonPlan, owner: DaemonSetSeen, chance: random.Random) -> None:
        for pod in self._user.some_pods(owner.uid, chance, 2):
            await self._user.merge_pod(pod, {"annotations": {FAIL: "chaos"}}, "daemon pods failed")

    async def _recreate(self, plan: DaemonPlan, owner: DaemonSetSeen, chance: random.Random) -> None:
        cascade = chance.choice(("Background", "Foreground"))
        if not await self._user.delete_owner(_DAEMONSETS, plan.namespace, plan.name, owner.uid, cascade):
            return
        await asyncio.sleep(chance.uniform(0, 0.5))
        await self._user.until(lambda: plan.task not in self._live.daemon_sets)
        await self._user.create(_DAEMONSETS, plan.namespace, daemon_body(plan), "daemon sets created again")


_WAYS: dict[DaemonRole, dict[str, int]] = {
    DaemonRole.ROLLED: {"change": 4, "delete_pods": 2, "fail_pods": 1},
    DaemonRole.BROKEN: {"change": 2, "break": 3, "delete_pods": 1},
    DaemonRole.ON_DELETE: {"change": 1, "delete_pods": 3, "fail_pods": 1},
    DaemonRole.RECREATED: {"change": 3, "recreate": 2, "delete_pods": 1},
}
