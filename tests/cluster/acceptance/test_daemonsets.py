"""DaemonSets: what users do with them, and the integration and end-to-end cases of upstream, with kubectl.

Numbers in names: upstream: test/integration/daemonset/daemonset_test.go (26_4) and test/e2e/apps/daemon_set.go,
controller_revision.go (26_5). Every test has a namespace, and nodes that it changes are its own.
"""

from __future__ import annotations

import json

import pytest

from tests.cluster.acceptance.replicas import change_status, pod_path
from tests.cluster.acceptance.stages import Stage, beyond_upstream
from tests.e2e.e2e_kubectl import HASH, NODES, Kubectl, Obj, controlled_by, daemonset, node_of, rolling, uids, until
from tests.e2e.e2e_states import on_own, pods_of, revisions, settled, status

pytestmark = [pytest.mark.kubectl]


def set_phase(kubectl: Kubectl, pod: Obj, phase: str) -> None:
    change_status(kubectl, pod_path(kubectl, pod), lambda said: {**said, "phase": phase})


either_strategy = pytest.mark.parametrize(
    "strategy", [rolling(maxUnavailable=1), {"type": "OnDelete"}], ids=["RollingUpdate", "26.4.13 OnDelete"]
)
"""What concerns presence alone is the same under both."""


# -- where it runs ---------------------------------------------------------------------------------------------------


@either_strategy
def test_26_4_1_one_node(kubectl: Kubectl, node: str, strategy: Obj) -> None:
    kubectl.apply(daemonset(pod=on_own(kubectl), updateStrategy=strategy))
    (pod,) = settled(kubectl, 1)
    assert pod["spec"]["nodeName"] == node


def test_26_4_2_26_5_1_every_node_and_a_deleted_pod_comes_back(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    before = settled(kubectl, NODES)
    assert set(uids(before)) == {f"node-{number}" for number in range(NODES)}
    kubectl.run("delete", "pod", before[0]["metadata"]["name"], "--wait=false")
    until(lambda: len(set(uids(pods_of(kubectl)).values()) - set(uids(before).values())) == 1, 15, "another pod")
    settled(kubectl, NODES)


@pytest.mark.parametrize("how", ["nodeSelector", "affinity"], ids=["26.5.2 nodeSelector", "26.5.3 affinity"])
def test_labels_of_nodes_decide(kubectl: Kubectl, node: str, how: str) -> None:
    """None at first; blue brings the pod, green takes it away, selecting green brings one again."""

    def selecting(colour: str) -> Obj:
        if how == "nodeSelector":
            return on_own(kubectl, nodeSelector={"own": kubectl.namespace, "colour": colour})
        term = {"matchExpressions": [{"key": "colour", "operator": "In", "values": [colour]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        return on_own(kubectl, affinity={"nodeAffinity": required})

    kubectl.apply(daemonset(pod=selecting("blue")))
    settled(kubectl, 0)
    kubectl.run("label", "node", node, "colour=blue")
    (pod,) = settled(kubectl, 1)
    assert pod["spec"]["nodeName"] == node
    kubectl.run("label", "node", node, "colour=green", "--overwrite")
    settled(kubectl, 0)
    until(lambda: not kubectl.items("pods"), 15, "the pod is gone")
    kubectl.apply(daemonset(pod=selecting("green"), updateStrategy=rolling(maxUnavailable=1)))
    settled(kubectl, 1)
    kubectl.run("label", "node", node, "colour-")
    settled(kubectl, 0)


def taint_known(kubectl: Kubectl) -> None:
    """Nodes and DaemonSets are watched apart. Who knows of the taint counts a pod that was there early."""
    until(lambda: status(kubectl, "numberMisscheduled", "early") == 1, 15, "the controller knows of the taint")


@either_strategy
def test_26_4_9_a_tainted_node_waits_until_it_is_untainted(kubectl: Kubectl, node: str, strategy: Obj) -> None:
    kubectl.apply(daemonset("early", pod=on_own(kubectl)))
    settled(kubectl, 1, "early")
    kubectl.run("taint", "node", node, "dedicated=x:NoSchedule")
    taint_known(kubectl)
    kubectl.apply(daemonset(updateStrategy=strategy))
    assert node not in uids(settled(kubectl, NODES))
    kubectl.run("taint", "node", node, "dedicated-")
    assert node in uids(settled(kubectl, NODES + 1))


def test_noexecute_takes_pods_away_and_noschedule_keeps_them(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(daemonset(pod=on_own(kubectl)))
    (first,) = settled(kubectl, 1)
    kubectl.run("taint", "node", node, "later=x:NoSchedule")
    until(lambda: status(kubectl, "numberMisscheduled") == 1, 15, "a pod where none would be made")
    assert [pod["metadata"]["uid"] for pod in pods_of(kubectl)] == [first["metadata"]["uid"]]
    assert status(kubectl, "desiredNumberScheduled") == 0
    kubectl.run("taint", "node", node, "later-")
    settled(kubectl, 1)
    kubectl.run("taint", "node", node, "now=x:NoExecute")
    settled(kubectl, 0)
    until(lambda: not kubectl.items("pods"), 15, "the pod is gone")
    kubectl.run("taint", "node", node, "now-")
    (second,) = settled(kubectl, 1)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]


@either_strategy
def test_26_4_4_two_terms_of_which_one_has_to_hold(kubectl: Kubectl, node: str, strategy: Obj) -> None:
    """A label that one node bears, or the name of another."""
    by_label = {"matchExpressions": [{"key": "own", "operator": "In", "values": [kubectl.namespace]}]}
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [by_label, by_name]}}
    kubectl.apply(daemonset(pod={"affinity": {"nodeAffinity": required}}, updateStrategy=strategy))
    assert set(uids(settled(kubectl, 2))) == {node, "node-1"}


def test_26_4_6_no_room_for_the_second(kubectl: Kubectl, cluster: Stage) -> None:
    """Both pods are made; that one of them finds no room is a matter of the node."""
    cluster.change_nodes("add", f"full-{kubectl.namespace}", "--room", "1", "--label", f"own={kubectl.namespace}")
    try:
        kubectl.apply(daemonset("first", pod=on_own(kubectl)))
        settled(kubectl, 1, "first")
        kubectl.apply(daemonset("second", pod=on_own(kubectl)))
        until(lambda: status(kubectl, "currentNumberScheduled", "second") == 1, 15, "a pod is made")
        (waits,) = pods_of(kubectl, "second")
        until(lambda: kubectl.json("get", "pod", waits["metadata"]["name"])["status"].get("conditions"), 15, "it waits")
        assert status(kubectl, "numberReady", "second") == 0
        kubectl.run("delete", "ds", "first")
        settled(kubectl, 1, "second")
    finally:
        kubectl.run("delete", "node", f"full-{kubectl.namespace}")


def test_26_4_5_a_node_that_is_not_ready(kubectl: Kubectl, cluster: Stage, node: str) -> None:
    """It has a NoSchedule taint then, too: who tolerates that gets a pod, who is there stays, and nobody else comes."""
    kubectl.apply(daemonset("early", pod=on_own(kubectl)))
    (early,) = settled(kubectl, 1, "early")
    cluster.change_nodes("not-ready", node)
    taint_known(kubectl)
    tolerant = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    kubectl.apply(daemonset("tolerant", pod=on_own(kubectl, tolerations=tolerant)))
    kubectl.apply(daemonset("late", pod=on_own(kubectl)))
    until(lambda: status(kubectl, "currentNumberScheduled", "tolerant") == 1, 15, "a pod on a node that is not ready")
    until(lambda: status(kubectl, "observedGeneration", "late") == 1, 15, "it was looked at")
    assert (pods_of(kubectl, "late"), status(kubectl, "desiredNumberScheduled", "late")) == ([], 0)
    assert [pod["metadata"]["uid"] for pod in pods_of(kubectl, "early")] == [early["metadata"]["uid"]]
    cluster.change_nodes("ready", node)
    for name in ("early", "tolerant", "late"):
        settled(kubectl, 1, name)


def test_26_4_10_cordoned_and_without_network(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(daemonset("early", pod=on_own(kubectl)))
    settled(kubectl, 1, "early")
    kubectl.run("cordon", node)
    without = {"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated"}
    change_status(kubectl, f"/api/v1/nodes/{node}", lambda said: {**said, "conditions": [*said["conditions"], without]})
    taint_known(kubectl)
    kubectl.apply(daemonset("own-network", pod=on_own(kubectl)))
    kubectl.apply(daemonset("host-network", pod=on_own(kubectl, hostNetwork=True)))
    settled(kubectl, 1, "host-network")
    settled(kubectl, 0, "own-network")


def test_a_hundred_nodes_more(kubectl: Kubectl, cluster: Stage) -> None:
    kubectl.apply(daemonset())
    settled(kubectl, NODES)
    cluster.change_nodes("add", "--count", "100", "--label", "pool=big")
    try:
        assert len(uids(settled(kubectl, NODES + 100))) == NODES + 100
    finally:
        cluster.change_nodes("remove", "-l", "pool=big")
    settled(kubectl, NODES)


def test_a_node_that_is_deleted(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(daemonset(pod=on_own(kubectl)))
    settled(kubectl, 1)
    kubectl.run("delete", "node", node)
    settled(kubectl, 0)
    until(lambda: not kubectl.items("pods"), 15, "its pod is collected")


# -- pods that end ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "finalizer"),
    [("Failed", False), ("Succeeded", False), ("Succeeded", True)],
    ids=["26.4.3 26.5.4 Failed", "26.4.3 Succeeded", "26.4.3 Succeeded with finalizer"],
)
def test_a_pod_that_has_ended_is_replaced(
    kubectl: Kubectl, cluster: Stage, node: str, phase: str, finalizer: bool
) -> None:
    if phase == "Succeeded":
        beyond_upstream("replacing a pod that has succeeded came with 1.27", (1, 27), cluster.version)
    kubectl.apply(daemonset(pod=on_own(kubectl)))
    (pod,) = settled(kubectl, 1)
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    if finalizer:
        kubectl.run("patch", "pod", name, "-p", json.dumps({"metadata": {"finalizers": ["example.com/hold"]}}))
    set_phase(kubectl, pod, phase)
    until(lambda: [each for each in pods_of(kubectl) if each["metadata"]["uid"] != uid], 15, "another pod")
    settled(kubectl, 1)
    there = {each["metadata"]["uid"] for each in kubectl.items("pods")}
    assert (uid in there) is finalizer, "what ended is deleted, as far as it may go"
    if finalizer:
        kubectl.run("patch", "pod", name, "-p", json.dumps({"metadata": {"finalizers": None}}))
    told = "FailedDaemonPod" if phase == "Failed" else "SucceededDaemonPod"
    until(lambda: told in kubectl.run("get", "events"), 10, f"the event {told}")


def test_26_4_11_a_quota_and_the_status_tells(kubectl: Kubectl, cluster: Stage) -> None:
    beyond_upstream("a status after a failed create came with 1.27", (1, 27), cluster.version)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}
    kubectl.apply(quota)
    until(lambda: kubectl.json("get", "quota", "q").get("status", {}).get("hard"), 30, "the quota is known")
    kubectl.apply(daemonset())
    until(lambda: status(kubectl, "currentNumberScheduled") == 2, 15, "two pods")
    assert status(kubectl, "desiredNumberScheduled") == NODES
    until(lambda: "FailedCreate" in kubectl.run("get", "events"), 10, "the event")
    assert len(pods_of(kubectl)) == 2
    kubectl.run("delete", "resourcequota", "q")
    settled(kubectl, NODES)


# -- status and collections ------------------------------------------------------------------------------------------


def test_26_5_9_list_and_delete_collection(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    settled(kubectl, NODES)
    assert len(kubectl.items("ds", "-l", "app=agent")) == 1
    kubectl.run("delete", "ds", "-l", "app=agent")
    assert kubectl.items("ds") == []
    until(lambda: not kubectl.items("pods") and not revisions(kubectl), 20, "pods and revisions go with it")


def test_26_5_10_conditions_of_others_survive(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(daemonset(pod=on_own(kubectl)))
    settled(kubectl, 1)
    condition = {"type": "StatusUpdate", "status": "True", "reason": "E2E", "message": "set from a test"}
    raw = f"/apis/apps/v1/namespaces/{kubectl.namespace}/daemonsets/agent"
    change_status(kubectl, raw, lambda said: {**said, "conditions": [condition], "numberReady": 7})
    settled(kubectl, 1)
    (kept,) = kubectl.json("get", "ds", "agent")["status"]["conditions"]
    assert kept == kept | condition, "and perhaps times that are null"
    change_status(kubectl, raw, lambda said: {**said, "conditions": [condition | {"type": "StatusPatched"}]})
    kubectl.run("label", "node", node, "own-")
    settled(kubectl, 0)
    assert kubectl.json("get", "ds", "agent")["status"]["conditions"][0]["type"] == "StatusPatched"


def test_get_and_describe(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(daemonset(pod=on_own(kubectl)))
    (pod,) = settled(kubectl, 1)
    assert node_of(pod) == node
    assert kubectl.run("get", "ds", "agent").splitlines()[1].split()[:6] == ["agent", "1", "1", "1", "1", "1"]
    described = kubectl.run("describe", "ds", "agent")
    assert "Desired Number of Nodes Scheduled: 1" in described
    until(lambda: "SuccessfulCreate" in kubectl.run("describe", "ds", "agent"), 15, "events follow in their own time")
    owner = kubectl.json("get", "ds", "agent")
    assert controlled_by(pod) == owner["metadata"]["uid"]
    assert pod["metadata"]["labels"][HASH] == revisions(kubectl)[0]["metadata"]["labels"][HASH]
