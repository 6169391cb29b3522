"""The audit log and the journal of a real embedded API server, read and compared."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from oarlock.chaos.judge.evidence.audit_log import read_requests
from oarlock.chaos.judge.evidence.objects import VERSION
from oarlock.chaos.judge.evidence.placing import place as place_of
from oarlock.chaos.judge.evidence.sightings import (
    DaemonSetSeen,
    DeploymentSeen,
    NamespaceSeen,
    NodeSeen,
    OwnerSeen,
    PodSeen,
    RevisionSeen,
)
from oarlock.chaos.load.live import Live
from oarlock.chaos.load.plans import (
    DAEMON_PLANS,
    OURS,
    PLANS,
    ROLLOUT_PLANS,
    ZONE,
    Role,
    body,
    daemon_body,
    node_body,
    rollout_body,
)
from oarlock.chaos.record.journal import Journal
from oarlock.chaos.record.saved import _history
from oarlock.cluster import resources
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client
from oarlock.sandbox.apiserver.server import EmbeddedCluster, Settings

WORKER = {"User-Agent": "oarlock/0.1 (worker)"}
PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, owner: str = "", *, kind: str = "ReplicaSet") -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "labels": {"app": "web", "a": "b"}}
    if owner:
        ref = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": owner, "controller": True}
        meta["ownerReferences"] = [ref]
    return {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def noticed(journal: Journal, count: int) -> None:
    async with asyncio.timeout(10):
        while len(journal.history) < count:
            await asyncio.sleep(0.01)


def test_what_is_seen_is_what_was_asked_for(tmp_path: Path) -> None:
    async def act() -> tuple[Journal, Live, str]:
        settings = Settings(audit_log=tmp_path / "audit", faults_enabled=True)
        async with EmbeddedCluster(settings) as cluster, aiohttp.ClientSession(cluster.url, headers=WORKER) as http:
            live = Live()
            journal = Journal(cluster.url, tmp_path / "journal", live.take)
            await journal.listen()
            watching = asyncio.create_task(journal.run())
            place = "/apis/apps/v1/namespaces/default/replicasets"
            scaled = next(plan for plan in PLANS if plan.role is Role.SCALED)
            web = {**orjson.loads(body(scaled, 0)), "metadata": {"name": "web"}}
            owner = (await (await http.post(place, json=web)).json())["metadata"]["uid"]
            await noticed(journal, len(journal.history) + 1)
            listed = len(journal.history)
            created = await http.post(PODS, json=pod("web-a", owner))
            uid = (await created.json())["metadata"]["uid"]
            assert created.status == 201
            assert (await http.post(PODS, json=pod("web-a", owner))).status == 409
            asked = {"preconditions": {"uid": uid, "resourceVersion": "1"}}
            assert (await http.delete(f"{PODS}/web-a", json=asked)).status == 409
            rv = (await created.json())["metadata"]["resourceVersion"]
            asked["preconditions"]["resourceVersion"] = rv
            assert (await http.delete(f"{PODS}/web-a", json=asked)).status == 200
            drop = {"action": "dropAnswer", "verbs": ["create"]}
            assert (await http.put("/_oarlock/faults", json={"faults": [drop]})).status == 200
            with pytest.raises(aiohttp.ClientError):
                await http.post(PODS, json=pod("web-b", owner), headers={"User-Agent": "somebody"})
            await noticed(journal, listed + 4)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            return journal, live, owner

    journal, live, owner = asyncio.run(act())
    requests = list(read_requests((tmp_path / "audit").read_bytes().splitlines()))
    assert (requests[0].resource, requests[0].body) == ("replicasets", False)
    requests = requests[1:]
    assert [(each.verb, each.code, each.committed, each.ours) for each in requests] == [
        ("create", 201, True, True),
        ("create", 409, False, True),
        ("delete", 409, False, True),
        ("delete", 200, True, True),
        ("create", 201, True, False),
    ]
    first, _, _, delete, dropped = requests
    pods = [each for each in journal.history if isinstance(each, PodSeen)]
    assert [(each.name, each.deleting, each.gone) for each in pods] == [
        ("web-a", False, False),
        ("web-a", True, False),
        ("web-a", True, True),
        ("web-b", False, False),
    ]
    assert (first.rv, first.uid, first.name) == (pods[0].rv, pods[0].uid, "web-a")
    assert (first.owner, first.task, first.body) == (owner, "replicaset:default/web", True)
    assert (delete.asked_uid, delete.asked_rv) == (pods[0].uid, str(pods[0].rv))
    assert delete.rv == pods[2].rv
    assert dropped.fault == "dropAnswer"
    assert all(0 < each.received_s <= each.done_s for each in requests)
    seen = pods[0]
    assert (seen.owner, seen.task, seen.labels) == (owner, "replicaset:default/web", "a=b,app=web")
    assert [each.name for each in live.pods_of(owner)] == ["web-b"]
    assert journal.gaps == []


def test_owners_and_namespaces(tmp_path: Path) -> None:
    strict = next(plan for plan in PLANS if plan.role is Role.STRICT)
    place = f"/apis/apps/v1/namespaces/{strict.namespace}/replicasets"

    async def act() -> Journal:
        async with EmbeddedCluster(Settings()) as cluster, aiohttp.ClientSession(cluster.url) as http:
            journal = Journal(cluster.url, tmp_path / "journal")
            await journal.listen()
            watching = asyncio.create_task(journal.run())
            listed = len(journal.history)
            await http.post("/api/v1/namespaces", json={"metadata": {"name": strict.namespace}})
            made = await http.post(place, data=body(strict, 3), headers={"Content-Type": "application/json"})
            assert made.status == 201
            merge = {"Content-Type": "application/merge-patch+json"}
            scaled = await http.patch(f"{place}/{strict.name}", json={"spec": {"replicas": 5}}, headers=merge)
            assert scaled.status == 200
            status = {"status": {"replicas": 2, "readyReplicas": 1, "observedGeneration": 1}}
            await http.patch(f"{place}/{strict.name}/status", json=status, headers=merge)
            await http.delete(f"{place}/{strict.name}")
            await noticed(journal, listed + 5)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            return journal

    journal = asyncio.run(act())
    owners = [each for each in journal.history if isinstance(each, OwnerSeen)]
    assert [(each.replicas, each.generation, each.observed, each.gone) for each in owners] == [
        (3, 1, 0, False),
        (5, 2, 0, False),
        (5, 2, 1, False),
        (5, 2, 1, True),
    ]
    assert all(each.strict and each.task == strict.task for each in owners)
    assert (owners[2].status_replicas, owners[2].status_ready) == (2, 1)
    names = {each.name for each in journal.history if isinstance(each, NamespaceSeen)}
    assert {"default", strict.namespace} <= names


def test_a_cut_history_is_a_gap(tmp_path: Path) -> None:
    async def act() -> Journal:
        settings = Settings(faults_enabled=True)
        async with EmbeddedCluster(settings) as cluster, aiohttp.ClientSession(cluster.url) as http:
            journal = Journal(cluster.url, tmp_path / "journal")
            await journal.listen()
            await http.post(PODS, json=pod("web-a"))
            cut = await http.put("/_oarlock/faults", json={"faults": [{"action": "cutHistory"}]})
            assert cut.status == 200
            watching = asyncio.create_task(journal.run())
            async with asyncio.timeout(10):
                while not journal.gaps:
                    await asyncio.sleep(0.01)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            return journal

    assert "pods after revision" in " ".join(asyncio.run(act()).gaps)


def test_a_status_patch_shows_what_it_was_made_from() -> None:
    line = orjson.dumps(
        {
            "verb": "patch",
            "userAgent": "oarlock/0.1 (worker)",
            "objectRef": {"resource": "replicasets", "subresource": "status", "namespace": "shop", "name": "web"},
            "responseStatus": {"code": 409},
            "requestObject": {"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"replicas": 1}},
            "requestReceivedTimestamp": "2030-01-01T00:00:00.250000Z",
            "stageTimestamp": "2030-01-01T00:00:00.500000Z",
        }
    )
    (request,) = read_requests([line, b""])
    assert (request.resource, request.asked_uid, request.asked_rv, request.code) == (
        "replicasets/status",
        "u",
        "7",
        409,
    )
    assert request.done_s - request.received_s == pytest.approx(0.25)


def test_a_kind_that_is_not_judged_has_no_task() -> None:
    body_of = orjson.dumps(pod("web-a", "u-1", kind="Gadget"))
    line = b'{"verb":"create","objectRef":{"resource":"pods","namespace":"n"},"requestObject":%s}' % body_of
    (request,) = read_requests([line])
    assert (request.owner, request.task, request.name) == ("u-1", "", "web-a")


def test_daemon_sets_their_revisions_and_nodes(tmp_path: Path) -> None:
    plan = next(each for each in DAEMON_PLANS if each.zone and each.limit)
    place = f"/apis/apps/v1/namespaces/{plan.namespace}"
    merge = {"Content-Type": "application/merge-patch+json"}

    async def act() -> Journal:
        async with EmbeddedCluster(Settings()) as cluster, aiohttp.ClientSession(cluster.url) as http:
            journal = Journal(cluster.url, tmp_path / "journal")
            await journal.listen()
            watching = asyncio.create_task(journal.run())
            listed = len(journal.history)

            async def send(way: Any, path: str, data: Any, **more: Any) -> Any:
                body = data if isinstance(data, bytes) else orjson.dumps(data)
                headers = {"Content-Type": "application/json", **more.pop("headers", {})}
                answer = await way(path, data=body, headers=headers)
                assert answer.status in (200, 201), await answer.text()
                return await answer.json()

            await send(http.post, "/api/v1/namespaces", {"metadata": {"name": plan.namespace}})
            await send(http.post, "/api/v1/nodes", node_body("chaos-node-0", plan.zone))
            taints = {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}, "metadata": {"labels": {ZONE: None}}}
            await send(http.patch, "/api/v1/nodes/chaos-node-0", taints, headers=merge)
            made = await send(http.post, f"{place}/daemonsets", daemon_body(plan))
            reference = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": plan.name}
            held = {
                "metadata": {
                    "name": f"{plan.name}-x",
                    "labels": {"controller-revision-hash": "x"},
                    "ownerReferences": [{**reference, "uid": made["metadata"]["uid"], "controller": True}],
                },
                "revision": 3,
                "data": {"spec": {"template": {"$patch": "replace", **made["spec"]["template"]}}},
            }
            await send(http.post, f"{place}/controllerrevisions", held)
            version = {"spec": {"template": {"metadata": {"annotations": {VERSION: "1"}}}}}
            await send(http.patch, f"{place}/daemonsets/{plan.name}", version, headers=merge)
            status = {"desiredNumberScheduled": 3, "numberReady": 2, "observedGeneration": 1, "numberMisscheduled": 1}
            status |= {"currentNumberScheduled": 3, "updatedNumberScheduled": 1, "numberAvailable": 2}
            await send(http.patch, f"{place}/daemonsets/{plan.name}/status", {"status": status}, headers=merge)
            pinned = pod("agent", made["metadata"]["uid"], kind="DaemonSet")  # it is collected: its owner is elsewhere
            fields = [{"key": "metadata.name", "operator": "In", "values": ["chaos-node-0"]}]
            required = {"nodeSelectorTerms": [{"matchFields": fields}]}
            wanted = {"requiredDuringSchedulingIgnoredDuringExecution": required}
            pinned["spec"]["affinity"] = {"nodeAffinity": wanted}
            pinned["metadata"]["labels"] = {"controller-revision-hash": "x"}
            pinned["metadata"]["annotations"] = {VERSION: "1"}
            await send(http.post, PODS, pinned)
            await http.delete("/api/v1/nodes/chaos-node-0")
            async with asyncio.timeout(10):
                while not any(isinstance(each, NodeSeen) and each.gone for each in journal.history):
                    await asyncio.sleep(0.01)
            await noticed(journal, listed + 9)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            return journal

    journal = asyncio.run(act())
    nodes = [each for each in journal.history if isinstance(each, NodeSeen)]
    assert [dict(each.labels).get(ZONE) for each in nodes] == [plan.zone, None, None]
    assert [[taint.key for taint in each.taints] for each in nodes] == [[OURS], ["k"], ["k"]]
    assert [each.gone for each in nodes] == [False, False, True]
    first, second, third = (each for each in journal.history if isinstance(each, DaemonSetSeen))
    assert (first.task, first.limit, first.surge) == (plan.task, str(plan.limit), "0")
    assert (first.node_selector, first.tolerations[0].key) == (((ZONE, plan.zone),), OURS)
    assert [(each.version, each.generation, each.observed) for each in (first, second, third)] == [
        ("0", 1, 0),
        ("1", 2, 0),
        ("1", 2, 1),
    ]
    assert third[-7:] == (3, 3, 1, 2, 1, 2, 0)
    (revision,) = (each for each in journal.history if isinstance(each, RevisionSeen))
    assert (revision.task, revision.owner, revision.label, revision.number) == (plan.task, first.uid, "x", 3)
    assert revision.digest == first.digest != second.digest == third.digest
    seen, *_ = (each for each in journal.history if isinstance(each, PodSeen))
    assert (seen.target, seen.node, seen.revision, seen.version) == ("chaos-node-0", "", "x", "1")
    assert place_of(first, nodes[0]) == (True, True)
    assert place_of(first, nodes[1]) == (False, False)
    saved = list(_history(tmp_path / "journal"))
    assert sorted(saved, key=lambda each: each.rv) == sorted(journal.history, key=lambda each: each.rv)
    assert {type(each) for each in saved} == {type(each) for each in journal.history}


def test_deployments_and_their_replicasets(tmp_path: Path) -> None:
    plan = next(each for each in ROLLOUT_PLANS if each.surge == "25%")
    place = f"/apis/apps/v1/namespaces/{plan.namespace}"
    json_type = {"Content-Type": "application/json"}
    merge = {**WORKER, "Content-Type": "application/merge-patch+json"}

    async def act() -> Journal:
        settings = Settings(audit_log=tmp_path / "audit", audit_full_for_all=True)
        async with EmbeddedCluster(settings) as cluster, aiohttp.ClientSession(cluster.url) as http:
            journal = Journal(cluster.url, tmp_path / "journal")
            await journal.listen()
            watching = asyncio.create_task(journal.run())
            listed = len(journal.history)
            await http.post("/api/v1/namespaces", json={"metadata": {"name": plan.namespace}})
            answer = await http.post(f"{place}/deployments", data=rollout_body(plan), headers=json_type)
            made = await answer.json()
            ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": plan.name, "controller": True}
            template = orjson.loads(rollout_body(plan))["spec"]["template"]
            template["metadata"]["labels"]["pod-template-hash"] = "x"
            owned = {"name": f"{plan.name}-x", "ownerReferences": [{**ref, "uid": made["metadata"]["uid"]}]}
            spec = {"replicas": 0, "selector": {"matchLabels": template["metadata"]["labels"]}, "template": template}
            answer = await http.post(f"{place}/replicasets", json={"metadata": owned, "spec": spec}, headers=WORKER)
            meta = (await answer.json())["metadata"]
            asked = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
            for patch in ({"metadata": asked, "spec": {"replicas": 3}}, {"metadata": {"annotations": {"a": "b"}}}):
                await http.patch(f"{place}/replicasets/{plan.name}-x", json=patch, headers=merge)
            status = {"replicas": 5, "updatedReplicas": 4, "readyReplicas": 3, "availableReplicas": 2}
            status |= {"unavailableReplicas": 1, "observedGeneration": 1}
            await http.patch(f"{place}/deployments/{plan.name}/status", json={"status": status}, headers=merge)
            version = {"spec": {"template": {"metadata": {"annotations": {VERSION: "1"}}}, "paused": True}}
            await http.patch(f"{place}/deployments/{plan.name}", json=version, headers=merge)
            await noticed(journal, listed + 7)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            return journal

    history = asyncio.run(act()).history
    first, told, second = (each for each in history if isinstance(each, DeploymentSeen))
    assert (first.task, first.replicas, first.surge, first.unavailable) == (plan.task, plan.replicas, "25%", "25%")
    assert (first.strategy, first.history, first.paused, second.paused) == ("RollingUpdate", plan.history, False, True)
    assert (told.said, told.observed) == ((5, 4, 3, 2, 1), 1)
    assert (first.version, second.version, second.generation) == ("0", "1", 2)
    sets = [each for each in history if isinstance(each, OwnerSeen)]
    assert [each.replicas for each in sets] == [0, 3, 3]
    assert (sets[0].owner, sets[0].owner_task) == (first.uid, plan.task)
    assert sets[0].digest == first.digest != second.digest
    ours = [each for each in read_requests((tmp_path / "audit").read_bytes().splitlines()) if each.ours]
    create, size, annotation, *_ = ours
    assert (create.resource, create.task) == ("replicasets", plan.task)
    assert (size.asked_uid, size.asked_rv, size.spec) == (sets[0].uid, str(sets[0].rv), True)
    assert not annotation.spec
    assert sorted(_history(tmp_path / "journal"), key=lambda each: each.rv) == sorted(history, key=lambda each: each.rv)


def test_every_owner_of_the_load_is_taken_by_the_server() -> None:
    async def act() -> None:
        async with EmbeddedCluster(Settings()) as cluster, aiohttp.ClientSession(cluster.url) as http:
            for name in {each.namespace for each in (*PLANS, *DAEMON_PLANS, *ROLLOUT_PLANS)}:
                await http.post("/api/v1/namespaces", json={"metadata": {"name": name}})
            owners = [(plan.resource, plan.namespace, body(plan, 3)) for plan in PLANS]
            owners += [(resources.DAEMONSETS, plan.namespace, daemon_body(plan)) for plan in DAEMON_PLANS]
            owners += [(resources.DEPLOYMENTS, plan.namespace, rollout_body(plan)) for plan in ROLLOUT_PLANS]
            for resource, namespace, data in owners:
                path = resource.collection(namespace)
                answer = await http.post(path, data=data, headers={"Content-Type": "application/json"})
                assert answer.status == 201, (data, await answer.text())

    asyncio.run(act())


def test_requests_of_a_second_fleet_are_told_apart() -> None:
    def line(agent: str, timeout_ms: int) -> bytes:
        event = {"verb": "create", "userAgent": f"oarlock/0.1 ({agent})", "requestURI": f"/x?timeout={timeout_ms}ms"}
        return orjson.dumps({**event, "objectRef": {"resource": "pods", "namespace": "n", "name": "p"}})

    lines = [line("worker", 1500), line("worker", 1501), line("ingestor", 1501)]
    assert [(each.ours, each.second) for each in read_requests(lines, 1501)] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert all(each.ours for each in read_requests(lines[:2]))


def test_workers_ask_for_their_time_limit_with_each_write(tmp_path: Path) -> None:
    """By it the requests of two fleets are told apart."""

    async def act() -> None:
        settings = Settings(audit_log=tmp_path / "audit")
        async with EmbeddedCluster(settings) as cluster:
            client = Client(ClusterConfig(cluster.url), role="worker", request_timeout_s=1.501)
            async with client:
                made = await client.create(resources.PODS, "default", orjson.dumps(pod("web-a")))
                uid, rv = (made.object()["metadata"][name] for name in ("uid", "resourceVersion"))
                await client.patch(resources.PODS, "default", "web-a", b'{"metadata":{"labels":{"x":"y"}}}')
                await client.delete(resources.PODS, "default", "web-a", uid=uid)
                assert rv

    asyncio.run(act())
    requests = list(read_requests((tmp_path / "audit").read_bytes().splitlines(), 1501))
    assert [each.verb for each in requests] == ["create", "patch", "delete"]
    assert all(each.second for each in requests)
