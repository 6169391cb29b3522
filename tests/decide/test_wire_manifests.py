"""Manifests written by others: which nodes each DaemonSet asks for, and what each ReplicationController selects.

The expected nodes are written down from reading each manifest. Skipped where the manifests are not at hand.
"""

import json
from pathlib import Path

import pytest
import yaml

from controllers.codec import decode_daemonset, decode_replicaset, encode
from controllers.daemonset.wire import daemonset_from_json
from controllers.model import LabelSelector
from controllers.scheduling.eligibility import eligibility_of
from controllers.scheduling.model import Node
from controllers.wire import replicationcontroller_from_json

from .scheduling_builders import taint

MANIFESTS = Path(__file__).parents[3] / "shared" / "manifests"
pytestmark = pytest.mark.skipif(not MANIFESTS.is_dir(), reason="no manifests at hand")

LINUX = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
NODES = {
    name: Node(name, f"uid-{name}", labels, tuple(map(taint, taints)))
    for name, labels, *taints in (
        ("linux", LINUX),
        ("arm", LINUX | {"kubernetes.io/arch": "arm64"}),
        ("s390x", LINUX | {"kubernetes.io/arch": "s390x"}),
        ("windows", LINUX | {"kubernetes.io/os": "windows"}),
        ("bare", {}),
        ("fargate", LINUX | {"eks.amazonaws.com/compute-type": "fargate"}),
        ("masq", LINUX | {"node.kubernetes.io/masq-agent-ds-ready": "true"}),
        ("labelled-gpu", LINUX | {"nvidia.com/gpu.present": "true"}),
        ("control-plane", LINUX, "node-role.kubernetes.io/control-plane:NoSchedule"),
        ("gpu", LINUX | {"cloud.google.com/gke-accelerator": "nvidia-l4"}, "nvidia.com/gpu=present:NoSchedule"),
        ("drained", LINUX, "maintenance:NoExecute"),
        ("no-network", LINUX, "node.kubernetes.io/network-unavailable:NoSchedule"),
        ("down", LINUX, "node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unschedulable:NoSchedule"),
    )
}
ALL = set(NODES)
ON_LINUX = ALL - {"windows", "bare"}
UNTAINTED = {"linux", "arm", "s390x", "windows", "bare", "fargate", "masq", "labelled-gpu", "down"}

EXPECTED = [
    # tolerates everything; os linux, arch amd64 or arm64, and not of a compute type without nodes of one's own
    ("ds-aws-vpc-cni.yaml", "aws-node", ON_LINUX - {"s390x", "fargate"}),
    ("ds-bind-rolling-rv2.yaml", "bind", UNTAINTED),  # affinity to pods only, which is the scheduler's business
    ("ds-bind-rolling.yaml", "bind", UNTAINTED),
    ("ds-calico-typha-workloads.yaml", "calico-node", ON_LINUX),  # selects linux, tolerates both effects
    ("ds-ebs-csi-node-windows.yaml", "ebs-csi-node-windows", {"windows"}),
    ("ds-ebs-csi-node.yaml", "ebs-csi-node", ON_LINUX - {"fargate"}),  # tolerates everything
    ("ds-flannel.yaml", "kube-flannel-ds", ON_LINUX - {"drained"}),  # tolerates NoSchedule
    # the toleration without an operator is Equal to the empty value, which this taint has
    ("ds-fluentd-elasticsearch-rbac.yaml", "fluentd", UNTAINTED | {"control-plane"}),
    ("ds-fluentd-es.yaml", "fluentd-es-v3.1.0", UNTAINTED),
    ("ds-gke-nvidia-device-plugin.yaml", "nvidia-gpu-device-plugin", {"gpu"}),  # a label of accelerators exists
    ("ds-gke-nvidia-driver-installer.yaml", "nvidia-driver-installer", {"gpu"}),
    ("ds-ip-masq-agent.yaml", "ip-masq-agent", {"masq"}),  # two labels
    ("ds-kube-router.yaml", "kube-router", ALL),  # tolerates both effects, selects nothing
    ("ds-kured.yaml", "kured", UNTAINTED | {"control-plane"}),
    ("ds-longhorn-workloads.yaml", "longhorn-manager", UNTAINTED),
    # selects linux, tolerates the control plane; on the host's network, so it tolerates that there is no other
    ("ds-metallb-workloads.yaml", "speaker", UNTAINTED - {"windows", "bare"} | {"control-plane", "no-network"}),
    ("ds-nfd-worker.yaml", "nfd-worker", UNTAINTED),
    ("ds-node-exporter.yaml", "node-exporter", ON_LINUX),  # tolerates everything
    ("ds-node-local-dns.yaml", "node-local-dns", ALL),  # tolerates both effects
    ("ds-node-problem-detector.yaml", "npd-v0.8.5", UNTAINTED | {"drained"}),  # tolerates NoExecute
    ("ds-nvidia-device-plugin.yaml", "nvidia-device-plugin-daemonset", UNTAINTED | {"gpu"}),
    ("ds-nvidia-gpu-feature-discovery.yaml", "gpu-feature-discovery", {"labelled-gpu"}),  # one term of three
]


def manifest(file, kind):
    """The JSON of each object of that kind in the file, as if a server had taken it in."""
    for document in yaml.safe_load_all((MANIFESTS / file).read_text()):
        if document and document["kind"] == kind:
            document["metadata"].setdefault("namespace", "default")
            document["metadata"] |= {"uid": "u1", "resourceVersion": "42"}
            yield json.dumps(document).encode()


@pytest.mark.parametrize(("file", "name", "nodes"), EXPECTED, ids=[file for file, _, _ in EXPECTED])
def test_daemonset(file, name, nodes):
    """Where its pods should run."""
    [raw] = manifest(file, "DaemonSet")
    _, owner = daemonset_from_json(raw)
    assert owner.name == name
    assert decode_daemonset(encode(owner)) == owner
    eligible = eligibility_of(owner.placement).eligible
    assert {node for node in NODES if eligible(NODES[node])[0]} == nodes


def test_none_is_left_out():
    """Every file with a DaemonSet has its line above."""
    files = {path.name for path in MANIFESTS.glob("*.yaml") if list(manifest(path.name, "DaemonSet"))}
    assert files == {file for file, _, _ in EXPECTED}


@pytest.mark.parametrize(
    ("file", "replicas", "selector", "labels"),
    [
        ("rc-cassandra.yaml", 2, None, {"app": "cassandra"}),
        ("rc-elasticsearch.yaml", 1, None, {"component": "elasticsearch"}),
        ("rc-guestbook-frontend.yaml", 3, None, {"app": "guestbook", "tier": "frontend"}),
        ("rc-guestbook-redis-replica.yaml", 2, None, {"app": "redis", "role": "replica", "tier": "backend"}),
        ("rc-redis.yaml", 1, LabelSelector({"name": "redis"}), {"name": "redis", "role": "master"}),
        ("rc-spark-worker.yaml", 2, LabelSelector({"component": "spark-worker"}), {"component": "spark-worker"}),
    ],
)
def test_replicationcontroller(file, replicas, selector, labels):
    """As written; filling in the selector that most leave out is the server's work."""
    [raw] = manifest(file, "ReplicationController")
    _, owner = replicationcontroller_from_json(raw)
    assert (owner.replicas, owner.selector, owner.template_labels) == (replicas, selector, labels)
    assert decode_replicaset(encode(owner)) == owner
