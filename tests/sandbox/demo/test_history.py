"""What the demonstration reads of owners as the API shows them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from oarlock.controllers.registry import WATCHED
from oarlock.sandbox.demo.history import owner_seen
from oarlock.sandbox.demo.seen import DeploymentSeen, SetSeen

Obj = dict[str, Any]
LABELS = {"matchLabels": {"app": "web"}}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}


def read(plural: str, spec: Obj, status: Obj, owners: tuple[Obj, ...] = (), *, gone: bool = False) -> Any:
    meta = {"name": "web", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 3}
    whole = {"selector": LABELS, "template": TEMPLATE, **spec}
    raw = orjson.dumps({"metadata": {**meta, "ownerReferences": owners}, "spec": whole, "status": status})
    rv, obj = WATCHED[plural].from_json(raw)
    return owner_seen(int(rv), obj, WATCHED[plural].kind, gone)


ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
COUNTS = {"replicas": 7, "updatedReplicas": 3, "readyReplicas": 5, "availableReplicas": 4, "observedGeneration": 2}


def test_a_deployment() -> None:
    seen = read("deployments", {"replicas": 6, "strategy": ROLLING, "minReadySeconds": 1}, COUNTS)
    assert seen == DeploymentSeen(
        *(7, "u", "ns/web"),
        wanted=6,
        generation=3,
        observed=2,
        created=7,
        ready=5,
        updated=3,
        available=4,
        surge=2,
        unavailable=1,
        min_ready_s=1,
    )
    assert read("deployments", {"replicas": 6, "strategy": ROLLING}, COUNTS, gone=True).wanted == 0


def test_one_that_recreates_has_no_limits() -> None:
    seen = read("deployments", {"replicas": 6, "strategy": {"type": "Recreate"}}, {})
    assert (seen.surge, seen.unavailable) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "status", "reason", "stuck"),
    [
        ("Progressing", "False", "ProgressDeadlineExceeded", True),
        ("Progressing", "True", "ReplicaSetUpdated", False),
        ("Available", "False", "MinimumReplicasUnavailable", False),
    ],
)
def test_one_whose_deadline_has_passed(kind: str, status: str, reason: str, stuck: bool) -> None:
    condition = {"type": kind, "status": status, "reason": reason}
    assert read("deployments", {"replicas": 6}, {**COUNTS, "conditions": [condition]}).stuck is stuck


def test_a_replicaset_names_the_deployment_that_controls_it() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d"}
    for controls, uid in ((True, "d"), (False, "")):
        seen = read("replicasets", {"replicas": 2}, {"replicas": 2}, ({**owner, "controller": controls},))
        assert isinstance(seen, SetSeen)
        assert (seen.owner_uid, seen.wanted, seen.created) == (uid, 2, 2)
