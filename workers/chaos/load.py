"""The load: owners that are scaled without a pause, and what else users and nodes do to owners and pods.

Each owner lives by its own seeded chance. Some are only scaled, so that nothing excuses a miscount there; of others
pods are deleted, failed and relabelled; some are strict; some are deleted, with each kind of cascade, and made again;
one has its whole namespace deleted.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from cluster import resources
from cluster.client import Client, PatchType
from cluster.config import ClusterConfig
from workers.chaos.live import Live
from workers.chaos.objects import STRICT
from workers.chaos.sightings import OwnerSeen, PodSeen

FAIL = "oarlock.io/sim-fail"
READY_AFTER = "oarlock.io/sim-ready-after-ms"
GONE_LIMIT_S = 15.0


class Role(StrEnum):
    """What is done to an owner."""

    SCALED = "scaled"
    MIXED = "mixed"
    STRICT = "strict"
    RECREATED = "recreated"
    NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True)
class Plan:
    """One owner: where, what, how large at most."""

    namespace: str
    name: str
    role: Role
    largest: int

    @property
    def task(self) -> str:
        return f"replicaset:{self.namespace}/{self.name}"

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


PLANS = (
    Plan("chaos-a", "scaled-0", Role.SCALED, 60),
    Plan("chaos-a", "scaled-1", Role.SCALED, 30),
    Plan("chaos-b", "scaled-2", Role.SCALED, 12),
    Plan("chaos-a", "mixed-0", Role.MIXED, 25),
    Plan("chaos-b", "mixed-1", Role.MIXED, 12),
    Plan("chaos-b", "mixed-2", Role.MIXED, 6),
    Plan("chaos-a", "strict-0", Role.STRICT, 20),
    Plan("chaos-b", "strict-1", Role.STRICT, 8),
    Plan("chaos-a", "again-0", Role.RECREATED, 15),
    Plan("chaos-b", "again-1", Role.RECREATED, 6),
    Plan("chaos-c", "spaced-0", Role.NAMESPACE, 8),
)


def body(plan: Plan, replicas: int) -> bytes:
    """The owner as it is created."""
    labels = {"app": plan.name}
    annotations = {STRICT: "true"} if plan.role is Role.STRICT else {}
    spec: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": {READY_AFTER: "100"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9"}],
            },
        },
    }
    return orjson.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": plan.name, "namespace": plan.namespace, "annotations": annotations},
            "spec": spec,
        }
    )


class Load:
    """``begin`` makes the owners; ``run`` goes on until it is cancelled. ``done``: how often what was done."""

    def __init__(self, config: ClusterConfig, live: Live, seed: int) -> None:
        self._client = Client(config, role="chaos")
        self._live, self._seed = live, seed
        self.done: Counter[str] = Counter()

    async def begin(self) -> None:
        """Namespaces and owners, each with a few pods wanted."""
        for namespace in sorted({plan.namespace for plan in PLANS}):
            await self._make_namespace(namespace)
        for plan in PLANS:
            await self._client.create(resources.REPLICASETS, plan.namespace, body(plan, plan.largest // 3))

    async def run(self) -> None:
        """All owners at the same time."""
        async with asyncio.TaskGroup() as group:
            for plan in PLANS:
                group.create_task(self._torment(plan))

    async def finish(self) -> None:
        """What was under way when the load was stopped is brought to an end: every owner is there again."""
        live = self._live
        going = {each.name for each in live.namespaces.values() if each.deleting}
        await self._until(lambda: going.isdisjoint(live.namespaces))
        for namespace in sorted({plan.namespace for plan in PLANS}):
            await self._make_namespace(namespace)
        ending = {task for task, owner in live.owners.items() if owner.deleting}
        await self._until(lambda: ending.isdisjoint(live.owners))
        for plan in PLANS:
            if plan.task not in live.owners:
                await self._client.create(resources.REPLICASETS, plan.namespace, body(plan, plan.largest // 3))

    async def aclose(self) -> None:
        """Hang up."""
        await self._client.close()

    # -- one owner

    async def _torment(self, plan: Plan) -> None:
        chance = random.Random(f"load {self._seed} {plan.key}")
        ways = _WAYS[plan.role]
        while True:
            # Now and then a pause that is long enough to come to rest.
            await asyncio.sleep(chance.uniform(2.5, 5.0) if chance.random() < 0.2 else chance.uniform(0.1, 1.2))
            owner = self._live.owners.get(plan.task)
            if owner is None or owner.deleting:
                continue
            (way,) = chance.choices(list(ways), list(ways.values()))
            await getattr(self, f"_{way}")(plan, owner, chance)

    async def _scale(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        replicas = chance.choice((0, 1, plan.largest // 2, plan.largest, chance.randint(0, plan.largest)))
        patch = orjson.dumps({"spec": {"replicas": replicas}})
        answer = await self._client.patch(resources.REPLICASETS, plan.namespace, plan.name, patch)
        self.done["scaled"] += answer.ok

    async def _delete_pods(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        for pod in self._some(owner, chance):
            answer = await self._client.delete(
                resources.PODS, plan.namespace, pod.name, uid=pod.uid, grace_s=chance.choice((None, 0))
            )
            self.done["pods deleted"] += answer.ok

    async def _fail_pods(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        for pod in self._some(owner, chance):
            await self._patch_pod(pod, {"annotations": {FAIL: "chaos"}}, "pods failed")

    async def _sweep(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        """Take away what has failed, as a cluster's own collector does in the end."""
        for pod in self._live.pods_of(owner.uid):
            if pod.phase == "Failed" and not pod.deleting:
                await self._client.delete(resources.PODS, pod.namespace, pod.name, uid=pod.uid)

    async def _relabel(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        """Out of the set; some come back later, as orphans to be adopted, and the others go."""
        for pod in self._some(owner, chance)[:2]:
            await self._patch_pod(pod, {"labels": {"app": f"{plan.name}-away"}}, "pods relabelled")
        away = [
            pod
            for pod in self._live.pods_of("")
            if pod.namespace == plan.namespace and f"{plan.name}-away" in pod.labels
        ]
        for pod in away[:2]:
            if chance.random() < 0.5:
                await self._patch_pod(pod, {"labels": {"app": plan.name}}, "pods brought back")
            else:
                await self._client.delete(resources.PODS, pod.namespace, pod.name, uid=pod.uid)

    async def _recreate(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        cascade = chance.choice(("Background", "Foreground", "Orphan"))
        answer = await self._client.delete(
            resources.REPLICASETS, plan.namespace, plan.name, uid=owner.uid, propagation=cascade
        )
        if not answer.ok:
            return
        self.done[f"deleted ({cascade})"] += 1
        await asyncio.sleep(chance.uniform(0, 0.5))
        await self._until(lambda: plan.task not in self._live.owners)
        answer = await self._client.create(
            resources.REPLICASETS, plan.namespace, body(plan, chance.randint(0, plan.largest))
        )
        self.done["created again"] += answer.ok

    async def _delete_namespace(self, plan: Plan, owner: OwnerSeen, chance: random.Random) -> None:
        answer = await self._client.delete(resources.NAMESPACES, "", plan.namespace)
        if not answer.ok:
            return
        self.done["namespaces deleted"] += 1
        await self._until(lambda: plan.namespace not in self._live.namespaces)
        await self._make_namespace(plan.namespace)
        await self._client.create(resources.REPLICASETS, plan.namespace, body(plan, chance.randint(0, plan.largest)))

    # -- with

    def _some(self, owner: OwnerSeen, chance: random.Random) -> list[PodSeen]:
        pods = [pod for pod in self._live.pods_of(owner.uid) if pod.active]
        return chance.sample(pods, min(len(pods), chance.randint(1, 4)))

    async def _patch_pod(self, pod: PodSeen, metadata: dict[str, Any], what: str) -> None:
        patch = orjson.dumps({"metadata": {"uid": pod.uid, **metadata}})
        answer = await self._client.patch(resources.PODS, pod.namespace, pod.name, patch, PatchType.MERGE)
        self.done[what] += answer.ok

    async def _make_namespace(self, name: str) -> None:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self._client.create(resources.NAMESPACES, "", orjson.dumps(made))

    async def _until(self, true: Callable[[], bool]) -> None:
        """Wait for something to be seen, for a while."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + GONE_LIMIT_S
        while not true() and loop.time() < until_s:
            await asyncio.sleep(0.02)


_WAYS: dict[Role, dict[str, int]] = {
    Role.SCALED: {"scale": 1},
    Role.MIXED: {"scale": 4, "delete_pods": 3, "fail_pods": 2, "relabel": 2, "sweep": 2},
    Role.STRICT: {"scale": 4, "delete_pods": 3, "fail_pods": 2},
    Role.RECREATED: {"scale": 5, "recreate": 2, "delete_pods": 1},
    Role.NAMESPACE: {"scale": 8, "delete_namespace": 1},
}
