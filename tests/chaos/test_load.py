"""Each thing the load does, once, against the embedded server; and that all of it is undone in the end."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import orjson
import pytest

from oarlock.chaos.judge.evidence.objects import VERSION
from oarlock.chaos.judge.evidence.sightings import NodeSeen
from oarlock.chaos.load import daemon_load, node_load, rollout_load
from oarlock.chaos.load.daemon_load import DaemonLoad
from oarlock.chaos.load.live import Live
from oarlock.chaos.load.node_load import NodeLoad
from oarlock.chaos.load.plans import (
    AWAY,
    DAEMON_PLANS,
    FAIL,
    HOLD,
    NEVER_READY,
    NODES,
    OURS,
    REJECT,
    ROLLOUT_PLANS,
    DaemonRole,
    RolloutRole,
)
from oarlock.chaos.load.rollout_load import RolloutLoad
from oarlock.chaos.load.user import User
from oarlock.chaos.record.journal import Journal
from oarlock.cluster import resources
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client
from oarlock.sandbox.apiserver.server import EmbeddedCluster, Settings


class Quick(random.Random):
    """Never waits."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


@contextlib.asynccontextmanager
async def cluster(path: Path) -> AsyncIterator[tuple[User, Callable[[Callable[[], bool]], object]]]:
    live = Live()
    async with EmbeddedCluster(Settings()) as embedded, Client(ClusterConfig(embedded.url)) as client:
        journal = Journal(embedded.url, path / "journal", live.take)
        await journal.listen()
        watching = asyncio.create_task(journal.run())

        async def until(true: Callable[[], bool]) -> None:
            async with asyncio.timeout(10):
                while not true():
                    await asyncio.sleep(0.01)

        try:
            yield User(client, live), until
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


NAME = "chaos-node-3"


def keys(node: NodeSeen) -> set[str]:
    return {taint.key for taint in node.taints}


@pytest.mark.parametrize("way", sorted(node_load._WAYS))
def test_what_happens_to_nodes(way: str, tmp_path: Path) -> None:
    async def act() -> None:
        async with cluster(tmp_path) as (user, until):
            live, load = user.live, NodeLoad(user, 1)
            await load.begin()
            await until(lambda: len(live.nodes) >= NODES)
            before = live.nodes[NAME]
            assert keys(before) == {OURS}
            task = asyncio.create_task(getattr(load, f"_{way}")(before, Quick(1)))
            match way:
                case "label":
                    await until(lambda: live.nodes[NAME].labels != before.labels)
                case "hold":
                    await until(lambda: keys(live.nodes[NAME]) == {OURS, HOLD})
                case "remove":
                    await until(lambda: NAME in live.nodes and live.nodes[NAME].uid != before.uid)
            await task
            assert sum(user.done.values()) >= 1, user.done
            if way == "hold":
                await load._hold(live.nodes[NAME], Quick(1))
                await until(lambda: keys(live.nodes[NAME]) == {OURS})
            answer = await user.client.get(resources.NODES, "", NAME)
            node = answer.object()
            assert not node["spec"].get("unschedulable")
            assert AWAY not in {taint["key"] for taint in node["spec"]["taints"]}
            assert REJECT not in node["metadata"].get("annotations", {})

    asyncio.run(act())


def test_nodes_in_the_end(tmp_path: Path) -> None:
    async def act() -> None:
        async with cluster(tmp_path) as (user, until):
            live, load = user.live, NodeLoad(user, 1)
            await load.begin()
            await user.client.delete(resources.NODES, "", NAME)
            emptied = {
                "spec": {"taints": [{"key": AWAY, "effect": "NoExecute"}, {"key": HOLD, "effect": "NoSchedule"}]}
            }
            await user.merge(resources.NODES, "", "chaos-node-0", emptied, "")
            await until(lambda: NAME not in live.nodes and keys(live.nodes["chaos-node-0"]) == {AWAY, HOLD})
            await load.finish()
            await until(lambda: NAME in live.nodes and keys(live.nodes["chaos-node-0"]) == {HOLD})

    asyncio.run(act())


PLAN = {role: next(plan for plan in DAEMON_PLANS if plan.role is role) for role in DaemonRole}


@pytest.mark.parametrize("way", sorted({way for ways in daemon_load._WAYS.values() for way in ways}))
def test_what_happens_to_daemon_sets(way: str, tmp_path: Path) -> None:
    plan = next(each for each in DAEMON_PLANS if way in daemon_load._WAYS[each.role])

    async def act() -> None:
        async with cluster(tmp_path) as (user, until):
            live, load = user.live, DaemonLoad(user, 1)
            for namespace in {each.namespace for each in DAEMON_PLANS}:
                await user.make_namespace(namespace)
            await load.begin()
            await until(lambda: len(live.daemon_sets) == len(DAEMON_PLANS))
            before = live.daemon_sets[plan.task]
            owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": plan.name, "uid": before.uid}
            meta = {"name": "agent", "ownerReferences": [{**owner, "controller": True}]}
            body = {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            await user.create(resources.PODS, plan.namespace, orjson.dumps(body))
            await until(lambda: bool(live.pods_of(before.uid)))
            task = asyncio.create_task(getattr(load, f"_{way}")(plan, before, Quick(1)))
            match way:
                case "change":
                    await until(lambda: live.daemon_sets[plan.task].version == "1")
                case "break":
                    await until(lambda: live.daemon_sets[plan.task].version == "2")
                case "delete_pods":
                    await until(lambda: not [pod for pod in live.pods_of(before.uid) if pod.active])
                case "recreate":
                    await until(lambda: plan.task in live.daemon_sets and live.daemon_sets[plan.task].uid != before.uid)
            await task
            assert sum(user.done.values()) >= 1, user.done
            template = (await user.client.get(resources.DAEMONSETS, plan.namespace, plan.name)).object()["spec"][
                "template"
            ]
            assert FAIL not in template["metadata"]["annotations"]

    asyncio.run(act())


def test_daemon_sets_in_the_end(tmp_path: Path) -> None:
    broken, gone = PLAN[DaemonRole.BROKEN], PLAN[DaemonRole.RECREATED]

    async def act() -> None:
        async with cluster(tmp_path) as (user, until):
            live, load = user.live, DaemonLoad(user, 1)
            for namespace in {each.namespace for each in DAEMON_PLANS}:
                await user.make_namespace(namespace)
            await load.begin()
            await until(lambda: len(live.daemon_sets) == len(DAEMON_PLANS))
            await load._roll(broken, live.daemon_sets[broken.task], {FAIL: "chaos"}, "")
            await user.client.delete(resources.DAEMONSETS, gone.namespace, gone.name)
            await until(lambda: gone.task not in live.daemon_sets)
            await until(lambda: live.daemon_sets[broken.task].version == "1")
            await load.finish()
            await until(lambda: gone.task in live.daemon_sets and live.daemon_sets[broken.task].version == "2")
            found = (await user.client.get(resources.DAEMONSETS, broken.namespace, broken.name)).object()
            assert FAIL not in found["spec"]["template"]["metadata"]["annotations"]
            others = [plan for plan in DAEMON_PLANS if plan.role is not DaemonRole.BROKEN and plan is not gone]
            await until(lambda: all(live.daemon_sets[plan.task].generation == 2 for plan in others))

    asyncio.run(act())


@pytest.mark.parametrize("way", sorted({way for ways in rollout_load._WAYS.values() for way in ways}))
def test_what_happens_to_deployments(way: str, tmp_path: Path) -> None:
    plan = next(each for each in ROLLOUT_PLANS if way in rollout_load._WAYS[each.role])

    async def act() -> None:
        async with cluster(tmp_path) as (user, until):
            live, load = user.live, RolloutLoad(user, 1)
            for namespace in {each.namespace for each in ROLLOUT_PLANS}:
                await user.make_namespace(namespace)
            await load.begin()
            await until(lambda: len(live.deployments) == len(ROLLOUT_PLANS))
            before = live.deployments[plan.task]
            ref = {"apiVersion": "apps/v1", "name": plan.name, "kind": "Deployment", "uid": before.uid}
            labels = {"matchLabels": {"app": "x"}}
            template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            made = {"metadata": {"name": "x", "ownerReferences": [{**ref, "controller": True}]}}
            spec = {"replicas": 0, "selector": labels, "template": template}
            await user.create(resources.REPLICASETS, plan.namespace, orjson.dumps({**made, "spec": spec}))
            await until(lambda: bool(live.replicasets_of(before.uid)))
            (owned,) = live.replicasets_of(before.uid)
            ref = {"apiVersion": "apps/v1", "name": "x", "kind": "ReplicaSet", "uid": owned.uid, "controller": True}
            pod = {"metadata": {"name": "x-1", "ownerReferences": [ref]}, "spec": template["spec"]}
            await user.create(resources.PODS, plan.namespace, orjson.dumps(pod))
            await until(lambda: bool(live.pods_of(owned.uid)))
            await asyncio.create_task(getattr(load, f"_{way}")(plan, before, Quick(1)))
            assert sum(user.done.values()) >= 1, user.done
            match way:
                case "roll" | "break":
                    await until(lambda: live.deployments[plan.task].generation > 1)
                case "recreate":
                    await until(lambda: plan.task in live.deployments and live.deployments[plan.task].uid != before.uid)
                case "delete_pods":
                    await until(lambda: not [pod for pod in live.pods_of(owned.uid) if pod.active])
            found = (await user.client.get(resources.DEPLOYMENTS, plan.namespace, plan.name)).object()
            assert NEVER_READY not in found["spec"]["template"]["metadata"]["annotations"]
            assert not found["spec"].get("paused")

    asyncio.run(act())


def test_deployments_in_the_end(tmp_path: Path) -> None:
    plans = {plan.role: plan for plan in ROLLOUT_PLANS}
    broken, paused, gone = (plans[RolloutRole(name)] for name in ("broken", "paused", "recreated"))

    async def act() -> None:
        async with cluster(tmp_path) as (user, until):
            live, load = user.live, RolloutLoad(user, 1)
            for namespace in {each.namespace for each in ROLLOUT_PLANS}:
                await user.make_namespace(namespace)
            await load.begin()
            await until(lambda: len(live.deployments) == len(ROLLOUT_PLANS))
            await load._give(broken, 7, "", ready=False)
            await load._change(paused, {"paused": True}, "")
            await user.client.delete(resources.DEPLOYMENTS, gone.namespace, gone.name)
            await until(lambda: gone.task not in live.deployments and live.deployments[paused.task].paused)
            await load.finish()
            await until(lambda: gone.task in live.deployments and not live.deployments[paused.task].paused)
            found = (await user.client.get(resources.DEPLOYMENTS, broken.namespace, broken.name)).object()
            assert found["spec"]["template"]["metadata"]["annotations"][VERSION] == "7"
            assert NEVER_READY not in found["spec"]["template"]["metadata"]["annotations"]

    asyncio.run(act())
