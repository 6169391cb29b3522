"""Bodies of the requests about a Deployment and its ReplicaSets."""

import json
from typing import Any

import pytest

from oarlock.controllers.deployment.annotations import REVISION, ROLLBACK_TO
from oarlock.controllers.deployment.bodies import (
    collision_patch,
    creation_body,
    rollback_patch,
    status_patch,
    update_patch,
)
from oarlock.controllers.deployment.events import NO_LAST_REVISION, rolled_back
from oarlock.controllers.deployment.find import creation
from oarlock.controllers.deployment.model import DeploymentCondition, DeploymentStatus
from oarlock.controllers.deployment.plan import Rollback, StatusWrite, Update
from oarlock.controllers.deployment.wire import deployment_from_json
from oarlock.controllers.objects.model import HASH_LABEL, Requirement, label_selector
from oarlock.controllers.objects.wire import replicaset_from_json
from tests.controllers.builders import NOW_MS, WEB
from tests.controllers.deployment.deployment_builders import owned, said
from tests.controllers.deployment.sizes_builders import dep
from tests.controllers.deployment.test_wire import DEPLOYMENT
from tests.controllers.objects.test_wire import dumped

PRECONDITIONS = {"uid": "uid-web", "resourceVersion": "42"}


def test_a_new_replicaset():
    """Section 7.2, step 4, but of size 0."""
    deployment = dep(3, min_ready_seconds=5, annotations={"cause": "why"}, max_surge=1)
    made = creation(deployment, 2, 3)
    assert json.loads(creation_body(deployment, made)) == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": made.name,
            "namespace": "default",
            "labels": {"app": "web", HASH_LABEL: made.hash},
            "annotations": {
                "cause": "why",
                "deployment.kubernetes.io/revision": "2",
                "deployment.kubernetes.io/desired-replicas": "3",
                "deployment.kubernetes.io/max-replicas": "4",
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": "web",
                    "uid": "uid-web",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "replicas": 0,
            "minReadySeconds": 5,
            "selector": {"matchLabels": {"app": "web", HASH_LABEL: made.hash}},
            "template": {
                "metadata": {"labels": {"app": "web", HASH_LABEL: made.hash}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }
    assert made.name == f"web-{made.hash}"


def test_23_7_1_it_is_the_new_one():
    """23.7.1: read back, it has the Deployment's template, and its selector its pods' labels."""
    _, deployment = deployment_from_json(dumped(DEPLOYMENT))
    body = json.loads(creation_body(deployment, creation(deployment, 1, 1)))
    body["metadata"] |= {"uid": "u2", "resourceVersion": "1"}
    _, replicaset = replicaset_from_json(dumped(body))
    assert replicaset.template_digest == deployment.template_digest
    assert replicaset.selector is not None
    assert replicaset.selector.matches(replicaset.template_labels)
    assert deployment.selector is not None
    assert deployment.selector.matches(replicaset.labels)
    assert replicaset.owner_refs[0].uid == deployment.uid


def test_a_selector_with_expressions():
    """They stay beside the hash."""
    selector = label_selector(WEB, (Requirement("tier", "In", ("a", "b")), Requirement("app", "Exists")))
    made = creation(dep(), 1, 1)
    found = json.loads(creation_body(dep(selector=selector), made))["spec"]["selector"]
    assert found == {
        "matchLabels": {"app": "web", HASH_LABEL: made.hash},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "app", "operator": "Exists", "values": []},
        ],
    }


@pytest.mark.parametrize("template", [b"[]", b'{"metadata":7}', b"{", b'{"metadata":{"labels":{"a":1}}}'])
def test_what_is_no_template(template):
    """Said as an error of its own."""
    with pytest.raises(ValueError, match="not a pod template"):
        creation_body(dep(template=template), creation(dep(), 1, 1))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"replicas": 4}, {"spec": {"replicas": 4}}, id="a size"),
        pytest.param({"replicas": 0}, {"spec": {"replicas": 0}}, id="none is a size"),
        pytest.param({"replicas": 3}, {}, id="the size it has: the generation stays"),
        pytest.param({"replicas": 3, "min_ready_seconds": 0}, {"spec": {"minReadySeconds": 0}}, id="minReadySeconds"),
        pytest.param({"replicas": 3, "annotations": {"a": "b"}}, {"annotations": {"a": "b"}}, id="annotations"),
    ],
)
def test_update(fields, expected):
    """Under UID and resourceVersion; what does not change is left out."""
    patch = json.loads(update_patch(Update(owned("new", 3), low=0, high=9, **fields), "uid-new", "7"))
    annotations = {"annotations": expected.pop("annotations")} if "annotations" in expected else {}
    assert patch == {"metadata": {"uid": "uid-new", "resourceVersion": "7"} | annotations} | expected


def test_rollback():
    """The template as a whole without the hash; annotations that the target lacks go."""
    given = {ROLLBACK_TO: "1", REVISION: "3", "ours": "x", "cause": "third"}
    back = Rollback(owned("old"), rolled_back("web", 1), {REVISION: "3", "cause": "first"})
    template = b'{"metadata":{"labels":{"app":"web","pod-template-hash":"5d"}},"spec":{"x":1}}'
    assert json.loads(rollback_patch(dep(annotations=given), back, template, "42")) == {
        "metadata": PRECONDITIONS | {"annotations": {ROLLBACK_TO: None, "ours": None, REVISION: "3", "cause": "first"}},
        "spec": {"template": {"$patch": "replace", "metadata": {"labels": {"app": "web"}}, "spec": {"x": 1}}},
    }


def test_no_rollback():
    """Only the request goes."""
    patch = rollback_patch(dep(annotations={ROLLBACK_TO: "1", "a": "b"}), Rollback(None, NO_LAST_REVISION), b"", "42")
    assert json.loads(patch) == {"metadata": PRECONDITIONS | {"annotations": {ROLLBACK_TO: None}}}


AVAILABLE = DeploymentCondition("Available", "True", "R", "m", NOW_MS, NOW_MS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(said(), said(5, 4, 3, 2, unavailable=1, terminating=0), id="all counts"),
        pytest.param(said(5, 4, 3, 2, unavailable=1, terminating=7), said(), id="none any more"),
        pytest.param(said(1), said(1, conditions=(AVAILABLE,)), id="a condition"),
        pytest.param(said(1, conditions=(AVAILABLE,)), said(1), id="without it"),
        pytest.param(said(1, collision_count=2), said(2, collision_count=2), id="the collision count stays"),
    ],
)
def test_status_leaves_what_a_put_would(old, new):
    """What the API then has reads as the new status, and has no field that a typed client leaves out."""
    stored: dict[str, Any] = {} if old.collision_count is None else {"collisionCount": old.collision_count}
    for before, after in ((DeploymentStatus(), old), (old, new)):
        sent = json.loads(status_patch(dep(status=before), StatusWrite(after), "42"))["status"]
        stored = {key: value for key, value in (stored | sent).items() if value is not None}
    assert deployment_from_json(dumped(DEPLOYMENT | {"status": stored}))[1].status == new
    assert [key for key, value in stored.items() if not value] == ["terminatingReplicas"] * (new.terminating == 0)


def test_preconditions_of_a_status():
    """UID and resourceVersion; the revision goes with it where there is one."""
    patch = json.loads(status_patch(dep(), StatusWrite(said(), "3"), "42"))
    assert patch["metadata"] == PRECONDITIONS | {"annotations": {REVISION: "3"}}
    assert json.loads(status_patch(dep(), StatusWrite(said()), "42"))["metadata"] == PRECONDITIONS
    assert json.loads(collision_patch("uid-web", 1, "42")) == {
        "metadata": PRECONDITIONS,
        "status": {"collisionCount": 1},
    }


def test_a_condition():
    """Empty texts and times are left out."""
    conditions = (AVAILABLE, DeploymentCondition("X", "Unknown"))
    patch = json.loads(status_patch(dep(), StatusWrite(said(conditions=conditions)), "42"))
    assert patch["status"]["conditions"] == [
        {
            "type": "Available",
            "status": "True",
            "reason": "R",
            "message": "m",
            "lastUpdateTime": "2025-06-15T15:06:40Z",
            "lastTransitionTime": "2025-06-15T15:06:40Z",
        },
        {"type": "X", "status": "Unknown"},
    ]
