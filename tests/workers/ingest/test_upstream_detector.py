"""Upstream's controllers at work on the same kinds: what counts as evidence, and that no turn begins from then on."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from oarlock.broker.redis_broker import RedisBroker
from oarlock.controllers.registry import QUEUE_OF_KIND, WATCHED
from oarlock.workers.ingest.upstream_detector import RECENT_MS, Evidence, evidence
from oarlock.workers.process.kinds import controller_names
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, pod_json, replicaset_json
from tests.workers.ingest.ingest_rig import TEST_CLOCK, Rig

MANAGER = "kube-controller-manager"


MADE = {"f:metadata": {"f:generateName": {}, "f:ownerReferences": {".": {}}}, "f:spec": {"f:containers": {}}}
"""What a manager owns of a pod that it has made, and of one that it has touched: garbage collector, node controller."""
TOUCHED = {"f:metadata": {"f:ownerReferences": {".": {}}}, "f:status": {"f:conditions": {}}}


def managed(manager: str = MANAGER, at: str = "2026-01-02T03:04:05Z", fields: Any = MADE) -> dict[str, Any]:
    """As a real server of 1.20 writes the entry, `fieldsV1` cut short."""
    entry = {"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields, "manager": manager}
    return {**entry, "operation": "Update", "time": at}


def upstream_pod(
    name: str = "web-x7f2q",
    *,
    kind: str = "ReplicaSet",
    manager: str = MANAGER,
    fields: Any = MADE,
    at_ms: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """A pod as upstream creates it; ``at_ms``: when."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    pod = pod_json("x", name, f"uid-{name}", labels={"app": "a"}, owner="web", owner_uid="rs1")
    meta = pod["metadata"]
    meta["ownerReferences"][0]["kind"] = kind
    meta |= {"creationTimestamp": at, "generateName": "web-"}
    meta |= {"managedFields": [managed("kubelet", at, TOUCHED), managed(manager, at, fields)], **more}
    return pod


def seen(pod: dict[str, Any]) -> Evidence | None:
    return seen_of(PODS, pod)


def seen_of(resource: str, obj: dict[str, Any], kinds: Collection[str] = QUEUE_OF_KIND) -> Evidence | None:
    raw = orjson.dumps({**obj, "metadata": {**obj["metadata"], "resourceVersion": "9"}})
    return evidence(raw, WATCHED[resource].kind, WATCHED[resource].from_json(raw)[1], kinds)


# What a manager owns of a ReplicaSet: all that it created; what it scaled; what it said of its pods.
CREATED = {"f:metadata": {"f:ownerReferences": {".": {}}}, "f:spec": {"f:replicas": {}, "f:selector": {}}}
SCALED = {"f:spec": {"f:replicas": {}}}
OBSERVED = {"f:status": {"f:observedGeneration": {}, "f:replicas": {}}}


def deployed(fields: dict[str, Any], manager: str = MANAGER, owner: str = "Deployment") -> dict[str, Any]:
    """A ReplicaSet of a Deployment (or another owner); the manager has written these fields of it."""
    made = replicaset_json("x", "web-5d8b7c9f6b", "rs1", labels={"app": "a"})
    ref = {"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "d1", "controller": True}
    meta = {"ownerReferences": [ref], "creationTimestamp": "1970-01-01T00:00:01Z"}
    meta["managedFields"] = [
        managed("oarlock-worker", fields=SCALED if fields is CREATED else CREATED),
        managed(manager, fields=fields),
    ]
    return {**made, "metadata": {**made["metadata"], **meta}}


def test_a_replicaset_that_upstream_made_for_a_deployment_is_evidence() -> None:
    told = "kube-controller-manager created ReplicaSet x/web-5d8b7c9f6b of Deployment web at 1970-01-01T00:00:01Z"
    assert str(seen_of(REPLICASETS, deployed(CREATED), {"Deployment"})) == told


@pytest.mark.parametrize(
    ("replicaset", "kinds"),
    [
        pytest.param(deployed(CREATED), {"ReplicaSet"}, id="a fleet without Deployments"),
        pytest.param(deployed(SCALED), {"Deployment"}, id="ours, scaled"),
        pytest.param(deployed(OBSERVED), {"Deployment"}, id="ours, upstream makes its pods"),
        pytest.param(deployed(CREATED, manager="oarlock-worker"), {"Deployment"}, id="ours"),
        pytest.param(deployed(CREATED, owner="Rollout"), {"Deployment"}, id="another controller's"),
    ],
)
def test_which_replicasets_are_none(replicaset: dict[str, Any], kinds: set[str]) -> None:
    assert seen_of(REPLICASETS, replicaset, kinds) is None


def test_evidence_names_the_pod_its_owner_the_manager_and_the_time() -> None:
    found = seen(upstream_pod(at_ms=1_000))
    assert found == Evidence("Pod x/web-x7f2q", "ReplicaSet web", MANAGER, "1970-01-01T00:00:01Z")
    told = "kube-controller-manager created Pod x/web-x7f2q of ReplicaSet web at 1970-01-01T00:00:01Z"
    assert str(found) == told


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController", "DaemonSet"])
def test_pods_of_each_of_our_kinds_are_evidence(kind: str) -> None:
    assert seen(upstream_pod(kind=kind)) is not None


@pytest.mark.parametrize(
    "pod",
    [
        upstream_pod(kind="StatefulSet"),
        upstream_pod(kind="Job"),
        upstream_pod(fields=TOUCHED),
        upstream_pod(fields={"f:spec": {"f:tolerations": {}}}),
        upstream_pod(manager="oarlock-worker"),
        upstream_pod(manager="kubectl-create"),
        upstream_pod(manager="other", annotations={"note": '"manager":"kube-controller-manager"'}),  # type: ignore[arg-type]
        pod_json("x", "orphan", "u", labels={}) | {"note": '{"manager":"kube-controller-manager"}'},
        upstream_pod(kind="ReplicaSet", managedFields=[{"manager": MANAGER, "fieldsV1": 7}]),  # no server writes this
    ],
)
def test_what_is_no_evidence(pod: dict[str, Any]) -> None:
    assert seen(pod) is None


def start(rig: Rig, *pods: dict[str, Any]) -> None:
    rig.api.put(REPLICASETS, replicaset_json("x", "web", "rs1", labels={"app": "a"}))
    for pod in pods:
        rig.api.put(PODS, pod)


def phase(rig: Rig) -> str:
    return rig.server.epoch().phase


def resume(rig: Rig) -> None:
    RedisBroker(rig.server.admin, rig.server.epoch().epoch, clock=TEST_CLOCK).pause("")


def test_pods_that_upstream_made_before_do_not_matter(rig: Rig) -> None:
    start(rig, upstream_pod(at_ms=rig.clock.wall_ms() - RECENT_MS - 1_000))
    process = rig.start()
    rig.open()
    assert phase(rig) == "OPEN"
    rig.api.put(PODS, upstream_pod(at_ms=rig.clock.wall_ms()) | {"status": {"phase": "Failed"}})  # a change of it
    process.catch_up()
    rig.settle()
    assert phase(rig) == "OPEN"


def test_a_clock_that_is_an_hour_behind_makes_no_old_pod_a_new_one(rig: Rig) -> None:
    start(rig, upstream_pod(at_ms=rig.clock.wall_ms() + 3_600_000))
    rig.start()
    rig.open()
    assert phase(rig) == "OPEN"


def test_a_pod_of_a_moment_ago_keeps_an_epoch_from_opening(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    start(rig, upstream_pod(at_ms=rig.clock.wall_ms() - RECENT_MS + 1_000))
    rig.start()
    with caplog.at_level(logging.CRITICAL):
        rig.open()
        assert phase(rig) == "HELD"
        rig.run_for(100)
    (said,) = [text for each in caplog.records if "fleet paused" in (text := each.getMessage())]
    off = ",".join(f"-{name}" for name in controller_names())
    for part in (MANAGER, "x/web-x7f2q", f"--controllers=*,{off}"):
        assert part in said, said


def test_a_pod_that_upstream_makes_ends_all_turns_until_told_otherwise(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    start(rig)
    process, other = rig.start("a"), rig.start("b")
    rig.open()
    with caplog.at_level(logging.CRITICAL):
        rig.api.put(PODS, upstream_pod(at_ms=0))  # whatever its clock says: it is new
        for each in (process, other):
            each.catch_up()
        rig.settle()
        assert phase(rig) == "HELD"
        assert rig.work() == 0
        rig.run_for(125_000, step_ms=500)
    assert 3 <= len([each for each in caplog.records if "web-x7f2q" in each.getMessage()]) <= 6
    assert (phase(rig), rig.server.epoch().epoch) == ("HELD", 1)
    assert rig.check_cache() == 2, "the cache is kept up to date"
    process.ingestor.close()
    late = rig.start("late")
    rig.settle()
    assert (late.coordinator.phase, late.coordinator.paused, late.coordinator.epoch) == ("OPEN", True, 1)
    resume(rig)
    rig.run_for(2_000)
    assert phase(rig) == "OPEN"
    assert rig.work() == 1


def test_a_fleet_that_was_told_to_works_alongside(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    start(rig)
    process = rig.start(settings=replace(rig.settings, alongside_upstream=True))
    rig.open()
    with caplog.at_level(logging.WARNING):
        rig.api.put(PODS, upstream_pod())
        process.catch_up()
        rig.settle()
    assert phase(rig) == "OPEN"
    assert [each for each in caplog.records if "upstream is active" in each.getMessage()]
