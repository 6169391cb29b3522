"""The manifests written by others, all applied with kubectl to one `oarlock up` with nodes of many sorts.

Where each DaemonSet belongs is written down in manifest_nodes.py. Two nodes keep pods from becoming ready: "full" has
no room, so the pod made for it stays Pending and unassigned; "down" has a kubelet that nobody can reach. Such pods
count as scheduled and as up to date, since they exist for a node that should have one, and neither as ready nor as
available.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import yaml

from tests.e2e.e2e_helpers import RunningUp, oarlock
from tests.e2e.e2e_kubectl import Kubectl, Obj, controlled_by, kubectl_of, need_kubectl, node_of, until
from tests.manifest_nodes import EXPECTED, MANIFESTS, NODES

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.slow,
    pytest.mark.skipif(not MANIFESTS.is_dir(), reason="the manifests of other projects are not here"),
]

FILES = sorted(MANIFESTS.glob("*.yaml"))
WITHOUT_READY = {"full", "down"}
DAEMONSETS = {name: (nodes, why) for _, name, nodes, why in EXPECTED}
REPLICAS = [
    ("replicationcontrollers", "cassandra", 2),
    ("replicationcontrollers", "es", 1),
    ("replicationcontrollers", "frontend", 3),
    ("replicationcontrollers", "redis-replica", 2),
    ("replicationcontrollers", "redis", 1),
    ("replicationcontrollers", "spark-worker-controller", 2),
    ("replicasets", "frontend", 3),
    ("replicasets", "redis-slave", 2),
]
DEPLOYMENTS = {
    "default/frontend": 1,
    "ingress-nginx/ingress-nginx-controller": 1,
    "kube-system/calico-kube-controllers": 1,
    "kube-system/calico-typha": 1,
    "kube-system/kube-state-metrics": 1,
    "longhorn-system/longhorn-driver-deployer": 1,
    "longhorn-system/longhorn-ui": 2,
    "metallb-system/controller": 1,
    "monitoring/prometheus-operator": 1,
    "webapp/frontend": 1,
}
"""By namespace and name, for two have the same name; the replicas that each asks for, by itself or by default."""
SETTLE_S = 60.0


class Cluster(NamedTuple):
    """Everything as it was when all was as asked for, or when the time was up. ``sets``: those of Deployments."""

    up: RunningUp
    kubectl: Kubectl
    told: list[str]
    owners: dict[str, Obj]
    sets: list[Obj]
    pods: list[Obj]

    def pods_of(self, owner: Obj) -> list[Obj]:
        """Those it controls."""
        return [pod for pod in self.pods if controlled_by(pod) == owner["metadata"]["uid"]]


def documents() -> list[Obj]:
    return [each for path in FILES for each in yaml.safe_load_all(path.read_text()) if each]


def add_nodes(up: RunningUp, kubectl: Kubectl) -> None:
    """Those that NODES describes, each in its state; node-0 is there."""
    made = []
    for name, sort in NODES.items():
        taints = []
        for text in sort.taints:
            mark, _, effect = text.rpartition(":")
            key, _, value = mark.partition("=")
            taints.append({"key": key, "effect": effect, **({"value": value} if value else {})})
        made.append(
            {
                **{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": sort.labels}},
                "spec": {"taints": taints, "unschedulable": name == "cordoned"},
            }
        )
    without_network = {"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated"}
    by_name = {node["metadata"]["name"]: node for node in made}
    by_name["no-network"]["status"] = {"conditions": [without_network]}
    by_name["full"]["status"] = {"capacity": {"pods": "0"}}
    kubectl.apply(*(node for name, node in by_name.items() if name != "node-0"))
    kubectl.run("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=20s")
    kubectl.run("label", "node", "bare", "kubernetes.io/os-", "kubernetes.io/arch-")
    done = oarlock("nodes", "not-ready", "down", "--unreachable", "--state-dir", str(up.state.root))
    assert done.returncode == 0, done.stderr

    def as_described() -> bool:
        return {node["metadata"]["name"]: marks(node) for node in kubectl.items("nodes")} == {
            name: {*sort.taints, *sort.by_state} for name, sort in NODES.items()
        }

    until(as_described, 20, "every node has its taints")


def marks(node: Obj) -> set[str]:
    """Taints as kubectl writes them."""
    return {
        f"{taint['key']}{'=' + taint['value'] if taint.get('value') else ''}:{taint['effect']}"
        for taint in node["spec"].get("taints") or ()
    }


def status_expected(nodes: set[str]) -> dict[str, int]:
    """What the status of a DaemonSet says that belongs on these nodes."""
    ready = len(nodes - WITHOUT_READY)
    return {
        **dict.fromkeys(("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled"), len(nodes)),
        **dict.fromkeys(("numberReady", "numberAvailable"), ready),
        **{"numberUnavailable": len(nodes) - ready, "numberMisscheduled": 0},
    }


def status_of(owner: Obj, fields: dict[str, int]) -> dict[str, int]:
    """The fields of its status, 0 where absent; -1 each while it speaks of an earlier generation."""
    status = owner.get("status") or {}
    if status.get("observedGeneration", 0) < owner["metadata"]["generation"]:
        return dict.fromkeys(fields, -1)
    return {name: status.get(name, 0) for name in fields}


def counts(wanted: int, second: str = "fullyLabeledReplicas") -> dict[str, int]:
    """What the status of a ReplicaSet or a ReplicationController says in the end; or with another field."""
    return dict.fromkeys(("replicas", second, "readyReplicas", "availableReplicas"), wanted)


def rolled_out(wanted: int) -> dict[str, int]:
    """The same of a Deployment."""
    return counts(wanted, "updatedReplicas")


def title_of(obj: Obj) -> str:
    """ "kind name"; of a Deployment with its namespace."""
    meta = obj["metadata"]
    where = f"{meta.get('namespace', 'default')}/" if obj["kind"] == "Deployment" else ""
    return f"{obj['kind']} {where}{meta['name']}"


def look(kubectl: Kubectl) -> tuple[dict[str, Obj], list[Obj], list[Obj]]:
    """Owners of the files by their titles, the ReplicaSets of Deployments, and pods."""
    found = kubectl.items("deployments,daemonsets,replicationcontrollers,replicasets,pods", "-A")
    pods = [each for each in found if each["kind"] == "Pod"]
    sets = [each for each in found if each["kind"] == "ReplicaSet" and controlled_by(each)]
    return {title_of(each): each for each in found if each not in pods and each not in sets}, sets, pods


def is_settled(owners: dict[str, Obj], pods: list[Obj]) -> bool:
    kinds = {"replicationcontrollers": "ReplicationController", "replicasets": "ReplicaSet"}
    wanted: dict[str, Any] = {f"DaemonSet {name}": status_expected(nodes) for name, (nodes, _) in DAEMONSETS.items()}
    wanted |= {f"{kinds[kind]} {name}": counts(count) for kind, name, count in REPLICAS}
    wanted |= {f"Deployment {key}": rolled_out(count) for key, count in DEPLOYMENTS.items()}
    leaving = any(pod["metadata"].get("deletionTimestamp") for pod in pods)
    return not leaving and all(
        title in owners and status_of(owners[title], fields) == fields for title, fields in wanted.items()
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need_kubectl()
    up = RunningUp(tmp_path_factory.mktemp("manifests") / "state", "--nodes", "1")
    try:
        kubectl = kubectl_of(up, tmp_path_factory.mktemp("home"))
        add_nodes(up, kubectl)
        objects = documents()
        there = {each["metadata"]["name"] for each in [*kubectl.items("namespaces"), *objects]}
        for namespace in sorted({each["metadata"].get("namespace", "default") for each in objects} - there):
            kubectl.run("create", "namespace", namespace)
        kubectl.run("apply", "-f", str(MANIFESTS / "ds-bind-rolling-rv2.yaml"))
        until(lambda: kubectl.items("controllerrevisions"), 15, "its revision, before the other file takes its place")
        told = kubectl.run("apply", "-f", str(MANIFESTS)).splitlines()
        deadline = time.monotonic() + SETTLE_S
        owners, sets, pods = look(kubectl)
        while not is_settled(owners, pods) and time.monotonic() < deadline:
            time.sleep(0.5)
            owners, sets, pods = look(kubectl)
        yield Cluster(up, kubectl, told, owners, sets, pods)
    finally:
        up.stop()


def test_every_object_of_the_files_is_taken(cluster: Cluster) -> None:
    assert len(FILES) >= 35
    assert len(cluster.told) == len(documents())
    assert {line.split()[-1] for line in cluster.told} <= {"created", "configured", "unchanged"}


@pytest.mark.parametrize("name", DAEMONSETS)
def test_a_daemonset_runs_where_it_asks_to(cluster: Cluster, name: str) -> None:
    nodes, why = DAEMONSETS[name]
    owner = cluster.owners[f"DaemonSet {name}"]
    pods = cluster.pods_of(owner)
    assert sorted(map(node_of, pods)) == sorted(nodes), why
    for pod in pods:
        node = node_of(pod)
        ready = any(
            each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions") or ()
        )
        assert ready is (node not in WITHOUT_READY), (node, pod["status"])
        assert bool(pod["spec"].get("nodeName")) is (node != "full"), node
    assert status_of(owner, status_expected(nodes)) == status_expected(nodes)


@pytest.mark.parametrize(("kind", "name", "count"), REPLICAS, ids=[f"{kind[:-1]}-{name}" for kind, name, _ in REPLICAS])
def test_a_set_has_the_pods_it_asks_for(cluster: Cluster, kind: str, name: str, count: int) -> None:
    title = f"{'ReplicaSet' if kind == 'replicasets' else 'ReplicationController'} {name}"
    owner = cluster.owners[title]
    assert owner["spec"]["replicas"] == count
    pods = cluster.pods_of(owner)
    assert len(pods) == count
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert status_of(owner, counts(count)) == counts(count)
    others = WITHOUT_READY | {"cordoned", "control-plane", "gpu", "drained", "no-network"}
    assert not others & {pod["spec"]["nodeName"] for pod in pods}, "no pod of theirs tolerates anything"


@pytest.mark.parametrize(("key", "count"), DEPLOYMENTS.items(), ids=DEPLOYMENTS)
def test_a_deployment_is_rolled_out(cluster: Cluster, key: str, count: int) -> None:
    owner = cluster.owners[f"Deployment {key}"]
    assert owner["spec"]["replicas"] == count
    assert status_of(owner, rolled_out(count)) == rolled_out(count)
    (newest,) = [each for each in cluster.sets if controlled_by(each) == owner["metadata"]["uid"]]
    assert len(cluster.pods_of(newest)) == count
    conditions = {each["type"]: each["status"] for each in owner["status"]["conditions"]}
    assert conditions == {"Available": "True", "Progressing": "True"}
    namespace, name = key.split("/")
    told = cluster.kubectl.run("rollout", "status", f"deployment/{name}", "-n", namespace, "--timeout=20s")
    assert "successfully rolled out" in told


def test_none_is_left_out(cluster: Cluster) -> None:
    """Every owner of pods in the files has its line above, and there are no others."""
    kinds = {"replicationcontrollers": "ReplicationController", "replicasets": "ReplicaSet"}
    listed = {f"DaemonSet {name}" for name in DAEMONSETS} | {f"{kinds[kind]} {name}" for kind, name, _ in REPLICAS}
    listed |= {f"Deployment {key}" for key in DEPLOYMENTS}
    brought = {title_of(each) for each in documents()}
    assert listed == {
        title for title in brought if title.partition(" ")[0] in {"DaemonSet", "Deployment", *kinds.values()}
    }
    assert cluster.owners.keys() == listed


def test_the_second_file_of_one_daemonset_was_a_second_revision(cluster: Cluster) -> None:
    owner = cluster.owners["DaemonSet bind"]
    (file,) = yaml.safe_load_all((MANIFESTS / "ds-bind-rolling.yaml").read_text())
    images = {each["image"] for each in file["spec"]["template"]["spec"]["containers"]}
    for pod in cluster.pods_of(owner):
        assert {each["image"] for each in pod["spec"]["containers"]} == images
    revisions = [each for each in cluster.kubectl.items("controllerrevisions") if each["revision"] == 2]
    assert [controlled_by(each) for each in revisions] == [owner["metadata"]["uid"]]


def test_nothing_failed_on_the_way(cluster: Cluster) -> None:
    for row in cluster.up.ask("queue"):
        assert (row["parked"], row["failing"]) == (0, 0), row
