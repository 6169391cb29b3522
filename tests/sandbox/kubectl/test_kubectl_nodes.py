"""kubectl's commands for nodes: made from a file, labelled, tainted, cordoned, described, deleted."""

from __future__ import annotations

import pytest

from tests.sandbox.kubectl.kubectl_harness import KUBECTL, Kubectl, pod

pytestmark = KUBECTL


@pytest.fixture
def node(kubectl: Kubectl) -> str:
    """A node without a kubelet, named for the namespace of the test."""
    name = f"node-{kubectl.namespace}"
    kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": "a"}}})
    return name


def test_labels(kubectl: Kubectl, node: str) -> None:
    kubectl.run("label", "node", node, "disk=ssd")
    assert "already has a value" in kubectl.run("label", "node", node, "zone=b", code=1)
    kubectl.run("label", "node", node, "zone=b", "--overwrite")
    assert kubectl.json("get", "node", node)["metadata"]["labels"] == {"disk": "ssd", "zone": "b"}
    kubectl.run("label", "node", node, "disk-")
    assert kubectl.run("get", "nodes", "-l", "zone=b,!disk", "-o", "name") == f"node/{node}\n"


def test_taints_come_and_go(kubectl: Kubectl, node: str) -> None:
    kubectl.run("taint", "node", node, "dedicated=gpu:NoSchedule", "bad:NoExecute")
    taints = kubectl.json("get", "node", node)["spec"]["taints"]
    assert sorted((t["key"], t.get("value"), t["effect"]) for t in taints) == [
        ("bad", None, "NoExecute"),
        ("dedicated", "gpu", "NoSchedule"),
    ]
    kubectl.run("taint", "node", node, "dedicated=cpu:NoSchedule", "--overwrite")
    kubectl.run("taint", "node", node, "bad-")
    assert [(t["key"], t["value"]) for t in kubectl.json("get", "node", node)["spec"]["taints"]] == [
        ("dedicated", "cpu")
    ]
    kubectl.run("taint", "node", node, "dedicated:NoSchedule-")
    assert "taints" not in kubectl.json("get", "node", node)["spec"]
    assert "invalid taint effect" in kubectl.run("taint", "node", node, "a=b:Never", code=1)


def test_cordon_and_uncordon(kubectl: Kubectl, node: str) -> None:
    kubectl.run("cordon", node)
    assert kubectl.json("get", "node", node)["spec"]["unschedulable"] is True
    assert "SchedulingDisabled" in kubectl.run("get", "node", node)
    kubectl.run("uncordon", node)
    assert "SchedulingDisabled" not in kubectl.run("get", "node", node)


def test_describe_tells_pods_and_taints(kubectl: Kubectl, node: str) -> None:
    kubectl.run("taint", "node", node, "dedicated=gpu:NoSchedule")
    placed = pod("on-node")
    placed["spec"]["nodeName"] = node
    kubectl.apply(placed)
    described = kubectl.run("describe", "node", node)
    for line in ("zone=a", "dedicated=gpu:NoSchedule", "Non-terminated Pods:", "on-node"):
        assert line in described


def test_delete(kubectl: Kubectl, node: str) -> None:
    assert "deleted" in kubectl.run("delete", "node", node)
    assert "NotFound" in kubectl.run("get", "node", node, code=1)
