"""ReplicationControllers in the form of ReplicaSets (upstream: `pkg/controller/replication/conversion.go`)."""

import json

import msgspec
import pytest

from oarlock.controllers.objects.codec import decode_replicaset, encode
from oarlock.controllers.objects.model import Condition, LabelSelector, ReplicaSetStatus
from oarlock.controllers.objects.wire import WireError, replicaset_from_json, replicationcontroller_from_json
from tests.controllers.objects.test_wire import AT, AT_MS, META, REPLICASET, TEMPLATE, changed, dumped

CONTROLLER = {
    "apiVersion": "v1",
    "kind": "ReplicationController",
    "metadata": META | {"name": "web", "generation": 3, "creationTimestamp": AT},
    "spec": {"replicas": 4, "minReadySeconds": 5, "selector": {"app": "web", "tier": "front"}, "template": TEMPLATE},
    "status": {
        "replicas": 4,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "observedGeneration": 2,
        "conditions": [{"type": "ReplicaFailure", "status": "True", "lastTransitionTime": AT}],
    },
}


def test_replicationcontroller():
    """Every field that is read."""
    version, owner = replicationcontroller_from_json(dumped(CONTROLLER))
    assert version == "42"
    assert (owner.key, owner.uid, owner.generation) == ("default/web", "u1", 3)
    assert (owner.replicas, owner.min_ready_seconds, owner.deleting_ms, owner.created_ms) == (4, 5, 0, AT_MS)
    assert owner.selector == LabelSelector({"app": "web", "tier": "front"})
    assert json.loads(owner.template) == TEMPLATE
    assert owner.template_labels == {"app": "web"}
    assert owner.status == ReplicaSetStatus(4, 3, 2, 1, None, 2, (Condition("ReplicaFailure", "True", "", "", AT_MS),))
    assert decode_replicaset(encode(owner)) == owner


@pytest.mark.parametrize(
    ("path", "value", "field", "expected"),
    [
        pytest.param("spec.selector", None, "selector", None, id="no selector stays none"),
        pytest.param("spec.selector", {}, "selector", LabelSelector({}), id="an empty one stays empty"),
        pytest.param("spec.replicas", None, "replicas", 1, id="replicas defaults to 1"),
        pytest.param("spec.replicas", 0, "replicas", 0, id="0 replicas stay 0"),
        pytest.param("spec.template", None, "template", b"{}", id="no template is an empty one"),
        pytest.param("spec.template", None, "template_labels", {}, id="no template has no labels"),
        pytest.param("status", None, "status", ReplicaSetStatus(), id="no status yet"),
        pytest.param("status", {"terminatingReplicas": 2}, "status", ReplicaSetStatus(), id="never any terminating"),
        pytest.param("metadata.deletionTimestamp", AT, "deleting_ms", AT_MS, id="being deleted"),
        pytest.param("metadata.annotations", {"oarlock.io/strict": "true"}, "strict", True, id="strict"),
    ],
)
def test_fields(path, value, field, expected):
    """Absent, null and empty are told apart where it matters."""
    _, owner = replicationcontroller_from_json(dumped(changed(CONTROLLER, path, value)))
    assert getattr(owner, field) == expected


def test_a_selector_the_api_should_have_refused_is_kept_with_its_error():
    """The object is left alone by the decision."""
    _, owner = replicationcontroller_from_json(dumped(changed(CONTROLLER, "spec.selector", {"-app": "x"})))
    assert owner.selector is not None
    assert "not a label key" in owner.selector.error


def test_11_4_17_same_as_the_replicaset_that_says_the_same():
    """But for the count of terminating pods, which the kind does not have, and what only a Deployment reads."""
    twin = changed(REPLICASET, "spec.selector", {"matchLabels": {"app": "web", "tier": "front"}})
    _, replicaset = replicaset_from_json(dumped(changed(twin, "status.terminatingReplicas", None)))
    same_status = changed(CONTROLLER, "status.conditions", REPLICASET["status"]["conditions"])
    _, owner = replicationcontroller_from_json(dumped(same_status))
    read_by_deployments = {"labels": {}, "annotations": {}, "template_digest": ""}
    assert owner == msgspec.structs.replace(replicaset, **read_by_deployments)


def test_selectors_are_not_mixed_up():
    """The selector of one kind is no selector of the other."""
    with pytest.raises(WireError):
        replicationcontroller_from_json(dumped(changed(CONTROLLER, "spec.selector", {"matchLabels": {"app": "web"}})))
