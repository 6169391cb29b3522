"""The load: owners that are scaled without a pause, and what else users do to owners and pods.

Each owner lives by its own seeded chance. Some are only scaled, so that nothing excuses a miscount there; of others
pods are deleted, failed and relabelled; some are strict; some are deleted, with each kind of cascade, and made again;
one has its whole namespace deleted. DaemonSets, Deployments and nodes have a load of their own (``daemon_load``,
``rollout_load``, ``node_load``), which runs at the same time.
"""

from __future__ import annotations

import asyncio
import random

import orjson

from oarlock.chaos.judge.evidence.sightings import OwnerSeen
from oarlock.chaos.load.daemon_load import DaemonLoad
from oarlock.chaos.load.live import Live
from oarlock.chaos.load.node_load import NodeLoad
from oarlock.chaos.load.plans import FAIL, PLANS, Plan, Role, body
from oarlock.chaos.load.rollout_load import RolloutLoad
from oarlock.chaos.load.user import User
from oarlock.cluster import resources
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client


class Load:
    """``begin`` makes the owners; ``run`` goes on until it is cancelled. ``done``: how often what was done.

    ``pace``: how much longer than usual owners are left alone.
    """

    def __init__(self, config: ClusterConfig, live: Live, seed: int, pace: float = 1.0) -> None:
        self._client = Client(config, role="chaos")
        self._live, self._seed = live, seed
        self._user = User(self._client, live, pace)
        self._nodes, self._daemons = NodeLoad(self._user, seed), DaemonLoad(self._user, seed)
        self._rollouts = RolloutLoad(self._user, seed)
        self.done = self._user.done

    async def begin(self) -> None:
        """Nodes, namespaces and owners, each with a few pods wanted."""
        await self._nodes.begin()
        for namespace in sorted({plan.namespace for plan in PLANS}):
            await self._user.make_namespace(namespace)
        for plan in PLANS:
            await self._user.create(plan.resource, plan.namespace, body(plan, plan.largest // 3))
        await self._daemons.begin()
        await self._rollouts.begin()

    async def run(self) -> None:
        """Disturb all owners and nodes at the same time."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run())
            group.create_task(self._daemons.run())
            group.create_task(self._rollouts.run())
            for plan in PLANS:
                group.create_task(self._disturb(plan))

    async def finish(self) -> None:
        """What was under way when the load was stopped is brought to an end: every owner is there again."""
        live = self._live
        await self._nodes.finish()
        going = {each.name for each in live.namespaces.values() if each.deleting}
        await self._user.until(lambda: going.isdisjoint(live.namespaces))
        for namespace in sorted({plan.namespace for plan in PLANS}):
            await self._user.make_namespace(namespace)
        ending = {task for task, owner in live.owners.items() if owner.deleting}
        await self._user.until(lambda: ending.isdisjoint(live.owners))
        for plan in PLANS:
            if plan.task not in live.owners:
                await self._user.create(plan.resource, plan.namespace, body(plan, plan.largest // 3))
        await self._daemons.finish()
        await self._rollouts.finish()

    async def aclose(self) -> None:
        """Hang up."""
        await self._client.close()

    # -- one owner

    async def _disturb(self, plan: Plan) -> None:
        chance = random.Random(f"load {self._seed} {plan.key}")
        ways = _WAYS[plan.role]
        while True:
            # Now and then a pause that is long enough to come to rest.
            pause_s = chance.uniform(2.5, 5.0) if chance.random() < 0.2 else chance.uniform(0.1, 1.2)
            await asyncio.sleep(pause_s * self._user.pace)
            owner = self._live.owners.get(plan.task)
            if owner is None or owner.deleting:
                continue
            (way,) = chance.choices(list(ways), list(ways.values()))
            await getattr(self, f"_{way}")(plan, owner, chance)

    async def _scale(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        replicas = chance.choice((0, 1, plan.largest // 2, plan.largest, chance.randint(0, plan.largest)))
        patch = orjson.dumps({"spec": {"replicas": replicas}})
        answer = await self._client.patch(plan.resource, plan.namespace, plan.name, patch)
        self.done["scaled"] += answer.ok

    async def _delete_pods(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        for pod in self._user.some_pods(owner.uid, chance, 4):
            await self._user.delete_pod(pod, "pods deleted", chance.choice((None, 0)))

    async def _fail_pods(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        for pod in self._user.some_pods(owner.uid, chance, 4):
            await self._user.merge_pod(pod, {"annotations": {FAIL: "chaos"}}, "pods failed")

    async def _sweep(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        """Take away what has failed, as a cluster's own collector does in the end."""
        for pod in self._live.pods_of(owner.uid):
            if pod.phase == "Failed" and not pod.deleting:
                await self._user.delete_pod(pod, "")

    async def _relabel(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        """Out of the set; some come back later, as orphans to be adopted, and the others go."""
        for pod in self._user.some_pods(owner.uid, chance, 4)[:2]:
            await self._user.merge_pod(pod, {"labels": {"app": f"{plan.name}-away"}}, "pods relabelled")
        away = [
            pod
            for pod in self._live.pods_of("")
            if pod.namespace == plan.namespace and f"{plan.name}-away" in pod.labels
        ]
        for pod in away[:2]:
            if chance.random() < 0.5:
                await self._user.merge_pod(pod, {"labels": {"app": plan.name}}, "pods brought back")
            else:
                await self._user.delete_pod(pod, "")

    async def _recreate(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        cascade = chance.choice(("Background", "Foreground", "Orphan"))
        if not await self._user.delete_owner(plan.resource, plan.namespace, plan.name, owner.uid, cascade):
            return
        await asyncio.sleep(chance.uniform(0, 0.5))
        await self._user.until(lambda: plan.task not in self._live.owners)
        made = body(plan, chance.randint(0, plan.largest))
        await self._user.create(plan.resource, plan.namespace, made, "created again")

    async def _delete_namespace(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        answer = await self._client.delete(resources.NAMESPACES, "", plan.namespace)
        if not answer.ok:
            return
        self.done["namespaces deleted"] += 1
        await self._user.until(lambda: plan.namespace not in self._live.namespaces)
        await self._user.make_namespace(plan.namespace)
        await self._user.create(plan.resource, plan.namespace, body(plan, chance.randint(0, plan.largest)))


_WAYS: dict[Role, dict[str, int]] = {
    Role.SCALED: {"scale": 1},
    Role.MIXED: {"scale": 4, "delete_pods": 3, "fail_pods": 2, "relabel": 2, "sweep": 2},
    Role.STRICT: {"scale": 4, "delete_pods": 3, "fail_pods": 2},
    Role.RECREATED: {"scale": 5, "recreate": 2, "delete_pods": 1},
    Role.NAMESPACE: {"scale": 8, "delete_namespace": 1},
}
