"""Nodes, the placement in a pod template, and the node that a pod is pinned to."""

import msgspec
import pytest

from oarlock.controllers.objects.codec import decode_node, encode
from oarlock.controllers.objects.wire import WireError, pod_from_json
from oarlock.controllers.scheduling.model import Node, NodeRequirement, NodeTerm, Placement, Taint, Toleration
from oarlock.controllers.scheduling.wire import node_from_json, pinned_node, placement_from_template
from tests.controllers.objects.test_wire import POD, changed, dumped

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "uid": "u1", "resourceVersion": "42", "labels": {"os": "linux"}, "annotations": {}},
    "spec": {
        "taints": [
            {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
            {"key": "down", "effect": "NoExecute", "timeAdded": "2024-05-01T10:00:00Z"},
        ],
        "unschedulable": True,
    },
    "status": {"images": [{"names": ["i"], "sizeBytes": 1}], "conditions": [{"type": "Ready", "status": "True"}]},
}


def test_node():
    """Every field that is read."""
    version, one = node_from_json(dumped(NODE))
    assert version == "42"
    assert one == Node(
        "n1", "u1", {"os": "linux"}, (Taint("dedicated", "NoSchedule", "gpu"), Taint("down", "NoExecute"))
    )
    assert (one.key, one.namespace) == ("n1", "")
    assert decode_node(encode(one)) == one


@pytest.mark.parametrize(
    ("path", "value", "field", "expected"),
    [
        pytest.param("metadata.labels", None, "labels", {}, id="null labels"),
        pytest.param("spec", None, "taints", (), id="null spec"),
        pytest.param("spec", {}, "taints", (), id="empty spec"),
        pytest.param("spec.taints", None, "taints", (), id="null taints"),
        pytest.param("spec.taints", [], "taints", (), id="no taints"),
        pytest.param(
            "spec.taints", [{"key": "a", "effect": "b", "value": None}], "taints", (Taint("a", "b"),), id="null value"
        ),
        pytest.param("status", None, "name", "n1", id="null status"),
    ],
)
def test_node_fields(path, value, field, expected):
    """As in Go, null is absent, and an empty map or list is none."""
    _, one = node_from_json(dumped(changed(NODE, path, value)))
    assert getattr(one, field) == expected


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{}", id="no metadata"),
        pytest.param(b'{"metadata":{"name":"n1"}}', id="no uid"),
        pytest.param(dumped(changed(NODE, "spec.taints", [{"key": "a"}])), id="a taint without effect"),
        pytest.param(dumped(changed(NODE, "metadata.labels", {"a": 1})), id="a number for a label"),
    ],
)
def test_no_node(raw):
    """One error class, with the reason in it."""
    with pytest.raises(WireError, match=r"^not a Node: "):
        node_from_json(raw)


REQUIRED = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
OS = {"key": "os", "operator": "In", "values": ["linux"]}
EXISTS = {"key": "k", "operator": "Exists"}
TOLERATION_0_S = {"key": "k", "value": "v", "effect": "NoExecute", "tolerationSeconds": 0}
NAME = {"key": "metadata.name", "operator": "In", "values": ["n7"]}


def affinity(*terms):
    """A spec.affinity that requires one of these terms."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def spec(path, value):
    """A template with one field of its spec set."""
    return changed({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}, f"spec.{path}", value)


@pytest.mark.parametrize(
    ("template", "placement"),
    [
        pytest.param(None, Placement(), id="no template"),
        pytest.param({}, Placement(), id="an empty template"),
        pytest.param({"spec": None}, Placement(), id="null spec"),
        pytest.param(spec("nodeName", None), Placement(), id="nothing said"),
        pytest.param(spec("nodeName", "n1"), Placement(node_name="n1"), id="a node's name"),
        pytest.param(spec("nodeSelector", {"a": "", "b": "c"}), Placement("", {"a": "", "b": "c"}), id="nodeSelector"),
        pytest.param(spec("nodeSelector", None), Placement(), id="null nodeSelector"),
        pytest.param(spec("hostNetwork", True), Placement(host_network=True), id="the host's network"),
        pytest.param(spec("hostNetwork", None), Placement(), id="null for the host's network"),
        pytest.param(spec("affinity", None), Placement(), id="null affinity"),
        pytest.param(spec("affinity", {}), Placement(), id="empty affinity"),
        pytest.param(spec("affinity.nodeAffinity", None), Placement(), id="null node affinity"),
        pytest.param(spec(REQUIRED, None), Placement(), id="nothing required"),
        pytest.param(
            spec("affinity.nodeAffinity", {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}),
            Placement(),
            id="preferred only",
        ),
        pytest.param(
            spec("affinity.podAntiAffinity", {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}),
            Placement(),
            id="affinity to pods only",
        ),
        pytest.param(spec(REQUIRED, {}), Placement(terms=()), id="required without terms"),
        pytest.param(spec(REQUIRED, {"nodeSelectorTerms": None}), Placement(terms=()), id="required, null terms"),
        pytest.param(spec("affinity", affinity({})), Placement(terms=(NodeTerm(),)), id="an empty term"),
        pytest.param(
            spec("affinity", affinity({"matchExpressions": [OS, EXISTS]}, {"matchFields": [NAME]})),
            Placement(
                terms=(
                    NodeTerm((NodeRequirement("os", "In", ("linux",)), NodeRequirement("k", "Exists"))),
                    NodeTerm((), (NodeRequirement("metadata.name", "In", ("n7",)),)),
                )
            ),
            id="terms in their order",
        ),
        pytest.param(
            spec("tolerations", [{"operator": "Exists"}, TOLERATION_0_S]),
            Placement(tolerations=(Toleration("", "Exists"), Toleration("k", "", "v", "NoExecute", 0))),
            id="tolerations in their order",
        ),
        pytest.param(spec("tolerations", [{}]), Placement(tolerations=(Toleration(),)), id="an empty toleration"),
        pytest.param(spec("tolerations", None), Placement(), id="null tolerations"),
    ],
)
def test_placement(template, placement):
    """What a template says about nodes, and nothing else of it."""
    assert placement_from_template(dumped(template)) == placement


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"spec":1}', b'{"spec":{"nodeSelector":{"a":1}}}', b"[" * 100_000])
def test_no_template(raw):
    """One error class."""
    with pytest.raises(WireError, match=r"^not a pod template: "):
        placement_from_template(raw)


TWO = {"key": "metadata.name", "operator": "In", "values": ["n7", "n8"]}
NOT = {"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}
UID = {"key": "metadata.uid", "operator": "In", "values": ["u"]}
OTHER = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


@pytest.mark.parametrize(
    ("one", "node"),
    [
        pytest.param(affinity({"matchFields": [NAME]}), "n7", id="as a daemon pod has it"),
        pytest.param(affinity({"matchFields": [NAME], "matchExpressions": [OS]}), "n7", id="beside labels"),
        pytest.param(affinity({"matchFields": [NOT, UID, NAME]}), "n7", id="the first that is its name In"),
        pytest.param(affinity({"matchExpressions": [OS]}, {}, {"matchFields": [NAME]}), "n7", id="in a later term"),
        pytest.param(affinity({"matchFields": [NAME]}, {"matchFields": [OTHER]}), "n7", id="of two the first"),
        pytest.param(affinity({"matchFields": [TWO]}), "", id="several values"),
        pytest.param(affinity({"matchFields": [TWO, NAME]}), "", id="several values first: no other is tried"),
        pytest.param(affinity({"matchFields": [NAME | {"values": []}]}), "", id="no values"),
        pytest.param(affinity({"matchFields": [NAME | {"values": None}]}), "", id="null values"),
        pytest.param(affinity({"matchFields": [NOT]}), "", id="NotIn"),
        pytest.param(affinity({"matchFields": [UID]}), "", id="another field"),
        pytest.param(affinity({"matchExpressions": [NAME]}), "", id="a label of that name"),
        pytest.param(affinity({}), "", id="an empty term"),
        pytest.param(affinity(), "", id="no terms"),
        pytest.param({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}}, "", id="not required"),
        pytest.param({"nodeAffinity": None}, "", id="null node affinity"),
        pytest.param({"podAffinity": {}}, "", id="affinity to pods only"),
        pytest.param({}, "", id="empty affinity"),
        pytest.param(None, "", id="null affinity"),
    ],
)
def test_26_3_4_target_node(one, node):
    """From the affinity while the pod is unassigned; then from where it is, and the affinity is not kept."""
    unassigned = changed(changed(POD, "spec.affinity", one), "spec.nodeName", None)
    _, waiting = pod_from_json(dumped(unassigned))
    assert (waiting.node_name, waiting.pinned_node, waiting.target_node) == ("", node, node)
    _, empty_name = pod_from_json(dumped(changed(unassigned, "spec.nodeName", "")))
    assert empty_name == waiting
    _, assigned = pod_from_json(dumped(changed(unassigned, "spec.nodeName", "n1")))
    assert (assigned.node_name, assigned.pinned_node, assigned.target_node) == ("n1", "", "n1")


def test_no_affinity_no_target():
    """An unassigned pod without affinity is nobody's."""
    _, waiting = pod_from_json(dumped(changed(POD, "spec.nodeName", None)))
    assert waiting.target_node == ""


def test_affinity_that_is_none():
    """It cannot come from the API; the pod is then as unreadable as with any other field."""
    with pytest.raises(WireError, match=r"^not a pod affinity: "):
        pinned_node(msgspec.Raw(b"[]"))
    with pytest.raises(WireError, match=r"^not a pod affinity: "):
        pod_from_json(dumped(changed(changed(POD, "spec.nodeName", None), "spec.affinity", [])))
