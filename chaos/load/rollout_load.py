"""The load of Deployments: new templates while others are still rolled out, old ones again, sizes, limits, pauses."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from oarlock.chaos.judge.evidence.objects import VERSION
from oarlock.chaos.judge.evidence.sightings import DeploymentSeen
from oarlock.chaos.load.plans import FAIL, NEVER_READY, ROLLOUT_PLANS, RolloutPlan, RolloutRole, rollout_body
from oarlock.chaos.load.user import User
from oarlock.cluster import resources

BROKEN_S, PAUSED_S = (0.5, 3.0), (0.5, 2.5)
"""How long a template that never gets ready stays, and a pause."""
LIMITS: tuple[tuple[int | str, int | str], ...] = ((1, 0), (0, 1), (2, 2), ("50%", "0%"), ("25%", "25%"))
"""maxSurge and maxUnavailable, for one whose limits change."""
ROLLBACK = "deprecated.deployment.rollback.to"
_DEPLOYMENTS = resources.DEPLOYMENTS


class RolloutLoad:
    """``begin`` makes them; ``run`` goes on until it is cancelled; ``finish`` resumes and mends."""

    def __init__(self, user: User, seed: int) -> None:
        self._user, self._live, self._seed = user, user.live, seed
        self._versions = dict.fromkeys((plan.task for plan in ROLLOUT_PLANS), 0)

    async def begin(self) -> None:
        for plan in ROLLOUT_PLANS:
            await self._user.create(_DEPLOYMENTS, plan.namespace, rollout_body(plan))

    async def run(self) -> None:
        """Disturb all of them at the same time."""
        async with asyncio.TaskGroup() as group:
            for plan in ROLLOUT_PLANS:
                group.create_task(self._disturb(plan))

    async def finish(self) -> None:
        """Every one is there, is not paused, and its template works."""
        live = self._live
        ending = {task for task, owner in live.deployments.items() if owner.deleting}
        await self._user.until(lambda: ending.isdisjoint(live.deployments))
        for plan in ROLLOUT_PLANS:
            if plan.task not in live.deployments:
                await self._user.create(_DEPLOYMENTS, plan.namespace, rollout_body(plan))
            else:
                mended = {"metadata": {"annotations": {NEVER_READY: None}}}
                await self._change(plan, {"paused": None, "template": mended}, "")

    async def _disturb(self, plan: RolloutPlan) -> None:
        chance = random.Random(f"rollouts {self._seed} {plan.task}")
        ways = _WAYS[plan.role]
        while True:
            # Now and then a pause that is long enough to come to rest.
            pause_s = chance.uniform(3.0, 6.0) if chance.random() < 0.3 else chance.uniform(0.2, 1.5)
            await asyncio.sleep(pause_s * self._user.pace)
            owner = self._live.deployments.get(plan.task)
            if owner is None or owner.deleting:
                continue
            (way,) = chance.choices(list(ways), list(ways.values()))
            await getattr(self, f"_{way}")(plan, owner, chance)

    async def _change(self, plan: RolloutPlan, spec: dict[str, Any], what: str) -> bool:
        return await self._user.merge(_DEPLOYMENTS, plan.namespace, plan.name, {"spec": spec}, what)

    async def _give(self, plan: RolloutPlan, version: int, what: str, ready: bool = True) -> bool:
        """The template of this version. One that is not ``ready`` is another template of the same number."""
        annotations = {VERSION: str(version), NEVER_READY: None if ready else "true"}
        return await self._change(plan, {"template": {"metadata": {"annotations": annotations}}}, what)

    # -- what is done

    async def _roll(self, plan: RolloutPlan, owner: DeploymentSeen, chance: random.Random) -> None:
        self._versions[plan.task] += 1
        await self._give(plan, self._versions[plan.task], "deployments given a new template")

    async def _undo(self, plan: RolloutPlan, owner: DeploymentSeen, chance: random.Random) -> None:
        """One of the last templates again; mostly its ReplicaSet is still there."""
        latest = self._versions[plan.task]
        await self._give(plan, max(0, latest - chance.randint(0, 2)), "deployments given an old template")

    async def _roll_back(self, plan: RolloutPlan, owner: DeploymentSeen, chance: random.Random) -> None:
        """Have the controller bring back the template before this one."""
        change = {"metadata": {"annotations": {ROLLBACK: "0"}}}
        await self._user.merge(_DEPLOYMENTS, plan.namespace, plan.name, change, "rollbacks asked for")

    async def _break(self, plan: RolloutPlan, owner: DeploymentSeen, chance: random.Random) -> None:
        version = int(owner.version or 0)
        self._versions[plan.task] += 1
        if await self._give(plan, self._versions[plan.task], "deployments given a broken template", ready=False):
            await asyncio.sleep(chance.uniform(*BROKEN_S))
            await self._give(plan, version, "deployments given an old template")

    async def _scale(self, plan: RolloutPlan, owner: DeploymentSeen, chance: random.Random) -> None:
        replicas = chance.choice((1, plan.replicas, chance.randint(0, 2 * plan.replicas)))
        await self._change(plan, {"replicas": replicas}, "deployments scaled")

    async def _limit(self, plan: RolloutPlan, owner: DeploymentSeen, chance: random.Random) -> None:
        strategy = _rolling(*chance.choice(LIMITS))
        if chance.random() < 0.2:
            strategy = {"type": "Recreate", "rollingUpdate": None}
        await self._change(plan, {"strategy": strategy}, "deployments given other limits")

    async def _pause(self, plan: RolloutPlan, owner: DeploymentSeen, chance: random.Random) -> None:
        """Mostly with a new template on its way; another one, or another size, is given in the pause."""
        if chance.random() < 0.7:
            await self._roll(plan, owner, chance)
            await asyncio.sleep(chance.uniform(0.0, 1.0))
        if not await self._change(plan, {"paused": True}, "deployments paused"):
            return
        await asyncio.sleep(chance.uniform(*PAUSED_S) / 2)
        await getattr(self, chance.choice(("_roll", "_scale", "_undo")))(plan, owner, chance)
        await asyncio.sleep(chance.uniform(*PAUSED_S) / 2)
        await self._change(plan, {"paused": False}, "deployments resumed")

    async def _delete_pods(self, plan: RolloutPlan, owner: DeploymentSeen, chance: random.Random) -> None:
        for replicaset in self._live.replicasets_of(owner.uid):
            for pod in self._user.some_pods(replicaset.uid, chance, 2):
                await self._user.delete_pod(pod, "pods of deployments deleted", chance.choice((None, 0)))

    async def _fail_pods(self, plan: RolloutPlan, owner: DeploymentSeen, chance: random.Random) -> None:
        for replicaset in self._live.replicasets_of(owner.uid):
            for pod in self._user.some_pods(replicaset.uid, chance, 2):
                await self._user.merge_pod(pod, {"annotations": {FAIL: "chaos"}}, "pods of deployments failed")

    async def _recreate(self, plan: RolloutPlan, owner: DeploymentSeen, chance: random.Random) -> None:
        """Away and there again; what the garbage collector has not taken yet is none of the new one's."""
        cascade = chance.choice(("Background", "Foreground"))
        if not await self._user.delete_owner(_DEPLOYMENTS, plan.namespace, plan.name, owner.uid, cascade):
            return
        await self._user.until(lambda: plan.task not in self._live.deployments)
        self._versions[plan.task] = 0
        await self._user.create(_DEPLOYMENTS, plan.namespace, rollout_body(plan), "deployments created again")


def _rolling(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


_WAYS: dict[RolloutRole, dict[str, int]] = {
    RolloutRole.ROLLED: {"roll": 4, "undo": 2, "roll_back": 1},
    RolloutRole.BROKEN: {"roll": 2, "break": 3, "undo": 1},
    RolloutRole.SCALED: {"roll": 3, "scale": 4, "undo": 1},
    RolloutRole.LIMITED: {"roll": 3, "limit": 3, "scale": 1, "undo": 1},
    RolloutRole.PAUSED: {"pause": 4, "undo": 1},
    RolloutRole.MIXED: {"roll": 3, "delete_pods": 2, "fail_pods": 2, "scale": 1},
    RolloutRole.RECREATED: {"roll": 3, "recreate": 2, "delete_pods": 1},
}
