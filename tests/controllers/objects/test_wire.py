"""JSON from the API -> projections."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.broker.keys import PROTOCOL
from oarlock.controllers.daemonset.wire import daemonset_from_json
from oarlock.controllers.history.wire import revision_from_json
from oarlock.controllers.objects.codec import (
    CodecError,
    decode_daemonset,
    decode_node,
    decode_pod,
    decode_replicaset,
    decode_revision,
    encode,
    encode_apart,
    template_apart,
    with_template,
)
from oarlock.controllers.objects.model import Condition, LabelSelector, OwnerRef, Pod, ReplicaSetStatus, Requirement
from oarlock.controllers.objects.wire import (
    WireError,
    pod_from_json,
    replicaset_from_json,
    replicationcontroller_from_json,
)
from oarlock.controllers.scheduling.model import Node
from oarlock.controllers.scheduling.wire import node_from_json
from tests.controllers.builders import pod, pods, rs

AT = "2024-05-01T10:00:00Z"
AT_MS = 1_714_557_600_000
META = {"name": "web-x", "namespace": "default", "uid": "u1", "resourceVersion": "42"}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": META
    | {
        "generateName": "web-",
        "creationTimestamp": AT,
        "labels": {"app": "web"},
        "annotations": {"controller.kubernetes.io/pod-deletion-cost": "-7", "other": "x"},
        "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "rs1",
                "controller": True,
                "blockOwnerDeletion": True,
            },
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c1"},
        ],
    },
    "spec": {
        "nodeName": "n1",
        "initContainers": [{"name": "mesh", "restartPolicy": "Always"}, {"name": "once"}],
        "containers": [{"name": "c", "image": "i"}],
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": AT},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2024-05-01T12:00:05+02:00"},
        ],
        "containerStatuses": [{"name": "c", "restartCount": 3}, {"name": "d", "restartCount": 1}],
        "initContainerStatuses": [{"name": "mesh", "restartCount": 2}, {"name": "once", "restartCount": 9}],
    },
}


def dumped(obj):
    return json.dumps(obj).encode()


def changed(obj, path, value):
    """A deep copy with one field set."""
    copy = json.loads(json.dumps(obj))
    *parents, last = path.split(".")
    target = copy
    for part in parents:
        target = target.setdefault(part, {})
    target[last] = value
    return copy


def test_pod():
    """Every field that is read."""
    version, one = pod_from_json(dumped(POD))
    assert version == "42"
    assert (one.namespace, one.name, one.uid, one.key) == ("default", "web-x", "u1", "default/web-x")
    assert one.labels == {"app": "web"}
    assert one.owner_refs == (
        OwnerRef("apps/v1", "ReplicaSet", "web", "rs1", True, True),
        OwnerRef("v1", "ConfigMap", "c", "c1", False, False),
    )
    assert (one.node_name, one.phase, one.created_ms, one.deleting_ms) == ("n1", "Running", AT_MS, 0)
    assert (one.ready, one.ready_since_ms) == (True, AT_MS + 5000)
    assert (one.restarts, one.sidecar_restarts, one.deletion_cost) == (3, 2, -7)


@pytest.mark.parametrize(
    ("path", "value", "field", "expected"),
    [
        pytest.param("metadata.labels", None, "labels", {}, id="null labels"),
        pytest.param("metadata.annotations", None, "deletion_cost", 0, id="null annotations"),
        pytest.param("metadata.annotations", {"n": "x"}, "deletion_cost", 0, id="no cost"),
        pytest.param("metadata.ownerReferences", None, "owner_refs", (), id="null owners"),
        pytest.param("metadata.creationTimestamp", None, "created_ms", 0, id="null time"),
        pytest.param("metadata.creationTimestamp", "0001-01-01T00:00:00Z", "created_ms", 0, id="Go's zero time"),
        pytest.param("metadata.creationTimestamp", "2024-05-01T10:00:00.25Z", "created_ms", AT_MS + 250, id="fraction"),
        pytest.param("metadata.deletionTimestamp", AT, "deleting_ms", AT_MS, id="being deleted"),
        pytest.param("metadata.deletionTimestamp", AT, "hangs", False, id="being deleted, nothing holds it"),
        pytest.param(
            "metadata", META | {"deletionTimestamp": AT, "finalizers": ["a/b"]}, "hangs", True, id="finalizers hold it"
        ),
        pytest.param("metadata.finalizers", ["a/b"], "hangs", False, id="not being deleted"),
        pytest.param("spec", None, "node_name", "", id="null spec"),
        pytest.param("spec.nodeName", None, "node_name", "", id="unassigned"),
        pytest.param("spec.initContainers", None, "sidecar_restarts", 0, id="no sidecars in the spec"),
        pytest.param("status", None, "phase", "", id="null status"),
        pytest.param("status.phase", "Failed", "phase", "Failed", id="failed"),
        pytest.param("status.containerStatuses", None, "restarts", 0, id="no container has started"),
        pytest.param("status.conditions", None, "ready", False, id="no conditions"),
        pytest.param(
            "status.conditions", [{"type": "Ready", "status": "Unknown"}], "ready", False, id="readiness unknown"
        ),
        pytest.param(
            "status.conditions",
            [{"type": "Ready", "status": "False", "lastTransitionTime": AT}],
            "ready_since_ms",
            0,
            id="not ready has no ready time",
        ),
        pytest.param(
            "status.conditions",
            [{"type": "Ready", "status": "True", "lastTransitionTime": None}],
            "ready_since_ms",
            0,
            id="ready without a time",
        ),
    ],
)
def test_pod_fields(path, value, field, expected):
    """As in Go, null is absent."""
    _, one = pod_from_json(dumped(changed(POD, path, value)))
    assert getattr(one, field) == expected


TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
REPLICASET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": META | {"name": "web", "generation": 3, "creationTimestamp": AT},
    "spec": {
        "replicas": 4,
        "minReadySeconds": 5,
        "selector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "NotIn", "values": ["x"]},
                {"key": "k", "operator": "Exists"},
            ],
        },
        "template": TEMPLATE,
    },
    "status": {
        "replicas": 4,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "terminatingReplicas": 0,
        "observedGeneration": 2,
        "conditions": [
            {
                "type": "ReplicaFailure",
                "status": "True",
                "reason": "FailedCreate",
                "message": "m",
                "lastTransitionTime": AT,
            }
        ],
    },
}


def test_replicaset():
    """Every field that is read; the template is kept as it came."""
    version, owner = replicaset_from_json(dumped(REPLICASET))
    assert version == "42"
    assert (owner.key, owner.uid, owner.generation) == ("default/web", "u1", 3)
    assert (owner.replicas, owner.min_ready_seconds, owner.deleting_ms, owner.created_ms) == (4, 5, 0, AT_MS)
    assert owner.selector == LabelSelector(
        {"app": "web"}, (Requirement("tier", "NotIn", ("x",)), Requirement("k", "Exists"))
    )
    assert json.loads(owner.template) == TEMPLATE
    assert owner.template_labels == {"app": "web"}
    assert owner.status == ReplicaSetStatus(
        4, 3, 2, 1, 0, 2, (Condition("ReplicaFailure", "True", "FailedCreate", "m", AT_MS),)
    )
    assert owner.strict is False


@pytest.mark.parametrize(
    ("path", "value", "field", "expected"),
    [
        pytest.param("spec.replicas", None, "replicas", 1, id="replicas defaults to 1"),
        pytest.param("spec.replicas", 0, "replicas", 0, id="0 replicas stay 0"),
        pytest.param("spec.minReadySeconds", None, "min_ready_seconds", 0, id="no minReadySeconds"),
        pytest.param("spec.selector", None, "selector", None, id="no selector stays none"),
        pytest.param("spec.selector", {}, "selector", LabelSelector({}), id="an empty one stays empty"),
        pytest.param("spec.template", None, "template_labels", {}, id="null template"),
        pytest.param("spec.template", {}, "template_labels", {}, id="empty template"),
        pytest.param("status", None, "status", ReplicaSetStatus(), id="no status yet"),
        pytest.param("metadata.deletionTimestamp", AT, "deleting_ms", AT_MS, id="being deleted"),
        pytest.param("metadata.annotations", {"oarlock.io/strict": "true"}, "strict", True, id="strict"),
        pytest.param("metadata.annotations", {"oarlock.io/strict": "false"}, "strict", False, id="not strict"),
        pytest.param("metadata.annotations", None, "strict", False, id="null annotations"),
    ],
)
def test_replicaset_fields(path, value, field, expected):
    """Absent, null and empty are told apart where it matters."""
    _, owner = replicaset_from_json(dumped(changed(REPLICASET, path, value)))
    assert getattr(owner, field) == expected


def test_invalid_selector_is_projected_with_its_error():
    """An object the API should not have let in is kept, and left alone by the decision."""
    broken = changed(REPLICASET, "spec.selector", {"matchExpressions": [{"key": "a", "operator": "In"}]})
    _, owner = replicaset_from_json(dumped(broken))
    assert owner.selector is not None
    assert "at least one value" in owner.selector.error


def test_terminating_absent_and_zero_differ():
    """Nothing and 0 are different."""
    _, owner = replicaset_from_json(dumped(changed(REPLICASET, "status", {"replicas": 4})))
    assert owner.status == ReplicaSetStatus(replicas=4, terminating=None)


READERS = [
    pod_from_json,
    replicaset_from_json,
    replicationcontroller_from_json,
    daemonset_from_json,
    revision_from_json,
]
GARBAGE = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"null", id="null"),
    pytest.param(b"[]", id="a list"),
    pytest.param(b"{}", id="no metadata"),
    pytest.param(b'{"metadata":{"name":"a"}}', id="no uid"),
    pytest.param(b'{"metadata":{"name":1}}', id="a number for a name"),
    pytest.param(b"\xff\xfe", id="not UTF-8"),
    pytest.param(b'{"metadata":{"name":"\xff"}}', id="not UTF-8 inside"),
    pytest.param(dumped(POD)[:-5], id="cut off"),
    pytest.param(b'{"a":' + b"[" * 100_000, id="too deep"),
    pytest.param(dumped(changed(POD, "metadata.creationTimestamp", "yesterday")), id="not a time"),
    pytest.param(dumped(changed(POD, "metadata.creationTimestamp", "2024-05-01T10:00:00")), id="no time zone"),
    pytest.param(dumped(changed(POD, "metadata.labels", {"a": 1})), id="a number for a label"),
]


@pytest.mark.parametrize("raw", GARBAGE)
@pytest.mark.parametrize("read", READERS)
def test_garbage(read, raw):
    """One error class, with the reason in it."""
    with pytest.raises(WireError, match=r"^not a "):
        read(raw)


@given(st.one_of(st.binary(max_size=40), st.recursive(st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["metadata", "spec", "name", "status"]), x), max_leaves=6).map(dumped)))  # fmt: skip # noqa: E501
def test_garbage_of_any_kind(raw):
    """Nothing but WireError comes out."""
    for read in (*READERS, node_from_json):
        with pytest.raises(WireError):
            read(raw)


def test_unread_changes_leave_the_projection_equal():
    """An event about a heartbeat or a managed field changes nothing, whatever its resourceVersion."""
    _, before = pod_from_json(dumped(POD))
    other = changed(changed(POD, "metadata.managedFields", []), "metadata.resourceVersion", "43")
    version, after = pod_from_json(dumped(other))
    assert version == "43"
    assert after == before
    assert encode(after) == encode(before)


def test_blobs():
    """What is kept is what was projected."""
    _, one = pod_from_json(dumped(POD))
    _, owner = replicaset_from_json(dumped(REPLICASET))
    assert decode_pod(encode(one)) == one
    assert decode_replicaset(encode(owner)) == owner
    for one in pods("RnputFSomx"):
        assert decode_pod(encode(one)) == one
    assert decode_replicaset(encode(rs(selector=None))).selector is None


def test_a_pods_blob_is_small():
    """About 200 bytes: a cluster of 100,000 pods costs 20 MB of blobs."""
    _, one = pod_from_json(dumped(POD))
    typical = one.__class__(
        "default",
        "web-5d4f8c7b9d-x2x9k",
        node_name="node-3",
        phase="Running",
        created_ms=AT_MS,
        ready=True,
        ready_since_ms=AT_MS + 3000,
        labels={"app": "web", "pod-template-hash": "5d4f8c7b9d"},
        owner_refs=(
            OwnerRef("apps/v1", "ReplicaSet", "web-5d4f8c7b9d", "0f6f3c0e-6a40-4a7e-8f63-8f3ef8a6f222", True, True),
        ),
        uid="0f6f3c0e-6a40-4a7e-8f63-8f3ef8a6f111",
    )
    assert len(encode(typical)) <= 222


TIMES_MS = [0, 1, 1_000, 2**20 * 1_000, 2**20 * 1_000 + 1_000, AT_MS, AT_MS + 1, AT_MS + 7_000, 2**62]


@pytest.mark.parametrize("created_ms", TIMES_MS)
@pytest.mark.parametrize("later_ms", [-1_000, 0, 1, 1_000, 31_000, 2**20 * 1_000 - 1_000, 2**20 * 1_000, AT_MS])
def test_any_time_of_a_pod_comes_back(created_ms, later_ms):
    """Whole seconds are written in fewer bytes."""
    for ready_ms in (max(0, created_ms + later_ms), later_ms):
        one = pod("a", created_ms=created_ms, ready_since_ms=max(0, ready_ms), deleting_ms=created_ms)
        assert decode_pod(encode(one)) == one


@pytest.mark.parametrize("labels", [{}, {"app": "web"}, {"app": "other"}])
@pytest.mark.parametrize(
    "selector", [None, LabelSelector({}), LabelSelector({"app": "web"}), LabelSelector({"x": "y"})]
)
@pytest.mark.parametrize("template_labels", [{}, {"app": "web"}])
def test_labels_that_are_written_once_come_back(labels, selector, template_labels):
    one = rs(labels=labels, selector=selector, template_labels=template_labels)
    assert with_template(decode_replicaset(encode_apart(one)), template_apart(one)[1]) == one


@pytest.mark.parametrize("blob", [b"", b"\xc1", b"\x90", encode(rs())[:-1]], ids=["none", "never used", "short", "cut"])
def test_broken_blobs(blob):
    """A blob that cannot be read is an error of its own, and never a half-filled object."""
    for decode in (decode_pod, decode_replicaset, decode_node, decode_daemonset, decode_revision):
        with pytest.raises(CodecError):
            decode(blob)


def test_blobs_of_an_older_process_can_be_read():
    """Fields are added at the end with a default, so a shorter blob is complete."""
    import msgspec

    assert decode_node(msgspec.msgpack.encode(["n", "u", {}])) == Node("n", "u", {}, ())
    assert decode_revision(msgspec.msgpack.encode(["default", "a", "u", {}])).digest == ""
    daemonset = ["default", "a", "u", 1, None, b"{}", "digest", []]
    assert decode_daemonset(msgspec.msgpack.encode(daemonset)).placement.terms is None


def test_the_form_of_a_pods_blob_is_that_of_the_protocol():
    """It ends with what pods have in common, so it cannot grow at its end: processes of two forms must not meet."""
    fields = (
        *("namespace", "name", "node_name", "created_ms", "deleting_ms", "ready_since_ms", "restarts"),
        *("sidecar_restarts", "deletion_cost", "pinned_node"),
        *("phase", "ready", "hangs", "labels", "owner_refs", "uid"),
    )
    assert (PROTOCOL, Pod.__struct_fields__) == (4, fields), "raise PROTOCOL in broker/keys.py with the form"


def test_blobs_of_a_newer_process_can_be_read():
    """What this process does not know stands at the end, and is passed over."""
    import msgspec

    newer = [*msgspec.msgpack.decode(encode(Node("n", "u", {}))), "more"]
    assert decode_node(msgspec.msgpack.encode(newer)) == Node("n", "u", {})
