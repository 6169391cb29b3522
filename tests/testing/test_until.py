"""The ready-made conditions, on objects alone: what each says is missing."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.testing import condition, exists, gone, ready

Obj = dict[str, Any]


def obj(kind: str, status: Obj | None = None, generation: int | None = 1, **spec: Any) -> Obj:
    meta: Obj = {"name": "web"} if generation is None else {"name": "web", "generation": generation}
    return {"kind": kind, "metadata": meta, "spec": spec, **({"status": status} if status is not None else {})}


def cond(type_: str, status: str, **more: str) -> Obj:
    return {"conditions": [{"type": type_, "status": status, **more}]}


UP = {"observedGeneration": 1, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 2}
NODES = {"observedGeneration": 1, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}
SILENT = "no controller has reported its status"
POD = obj("Pod", cond("Ready", "True"), None)


@pytest.mark.parametrize(
    ("found", "missing"),
    [
        (None, "it does not exist"),
        (obj("Deployment", {}, replicas=2), SILENT),
        (obj("Deployment", UP, replicas=2), ""),
        (obj("Deployment", {**UP, "updatedReplicas": 1, "replicas": 1, "availableReplicas": 1}), ""),
        (obj("Deployment", UP, 2, replicas=2), "status.observedGeneration is 1, metadata.generation 2"),
        (obj("Deployment", {**UP, "replicas": 3}, replicas=2), "status.replicas is 3, not 2"),
        (
            obj("Deployment", {**UP, "updatedReplicas": 1, "availableReplicas": 1}, replicas=2),
            "status.updatedReplicas is 1, not 2; status.availableReplicas is 1, not 2",
        ),
        (obj("Deployment", {"observedGeneration": 1}, replicas=0), ""),
        (obj("ReplicaSet", {}, replicas=1), SILENT),
        (obj("ReplicaSet", {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1}, replicas=1), ""),
        (obj("ReplicaSet", {"observedGeneration": 1, "replicas": 1}, replicas=1), "status.readyReplicas is 0, not 1"),
        (obj("ReplicationController", {"observedGeneration": 1, "replicas": 1}), "status.readyReplicas is 0, not 1"),
        (obj("DaemonSet", {}), SILENT),
        (obj("DaemonSet", NODES), ""),
        (obj("DaemonSet", {**NODES, "numberAvailable": 2}), "status.numberAvailable is 2, not 3"),
        (obj("DaemonSet", {**NODES, "updatedNumberScheduled": 0}), "status.updatedNumberScheduled is 0, not 3"),
        (POD, ""),
        (
            obj("Pod", cond("Ready", "False", reason="R", message="m"), None),
            "condition Ready is False, not True (R: m)",
        ),
        (obj("Pod", {}, None), "it has no condition Ready"),
        (obj("Node", cond("Ready", "Unknown"), None), "condition Ready is Unknown, not True"),
        (obj("Namespace", {"phase": "Active"}, None), ""),
        (obj("Namespace", {"phase": "Terminating"}, None), "status.phase is Terminating, not Active"),
        (obj("ConfigMap", None, None), ""),
        (obj("Website", None), ""),
        (obj("Website", {"observedGeneration": 1}, 2), "status.observedGeneration is 1, metadata.generation 2"),
        (obj("Website", cond("Ready", "False")), "condition Ready is False, not True"),
        (obj("Website", {**cond("Ready", "True"), "observedGeneration": 1}, 1), ""),
        ({**POD, "metadata": {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, "it is being deleted"),
        ([], "there is none"),
        ([POD, POD], ""),
        ([POD, obj("Pod", {}, None)], "web: it has no condition Ready"),
    ],
)
def test_ready(found: Any, missing: str) -> None:
    assert ready.missing(found) == missing
    assert ready(found) is (missing == "")


@pytest.mark.parametrize(
    ("until", "found", "missing"),
    [
        (exists, None, "it does not exist"),
        (exists, [], "there is none"),
        (exists, POD, ""),
        (exists, [POD], ""),
        (gone, None, ""),
        (gone, [], ""),
        (gone, POD, "it is still there"),
        (gone, [POD], "it is still there"),
        (condition("Ready"), POD, ""),
        (condition("Ready", "False"), POD, "condition Ready is True, not False"),
        (condition("Ready"), None, "it does not exist"),
        (condition("Ready"), [POD], "a condition is asked of one object: wait for kind/name"),
    ],
)
def test_others(until: Any, found: Any, missing: str) -> None:
    assert until.missing(found) == missing
