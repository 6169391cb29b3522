"""Nodes of many sorts, and on which of them each DaemonSet of the manifests written by others belongs.

Written down from reading each manifest, with the reason; the decision alone and a whole `oarlock up` are held to it.
Taints are written `key=value:Effect`, as kubectl writes them.
"""

from __future__ import annotations

from typing import NamedTuple

from tests import ROOT

MANIFESTS = ROOT.parent / "shared" / "manifests"

LINUX = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
_OWN = "node.kubernetes.io/"


class NodeSort(NamedTuple):
    """A node: its labels, the taints that somebody gave it, and those that follow from the state it is in."""

    labels: dict[str, str] = LINUX
    taints: tuple[str, ...] = ()
    by_state: tuple[str, ...] = ()


NODES = {
    "node-0": NodeSort(),
    "arm": NodeSort(LINUX | {"kubernetes.io/arch": "arm64"}),
    "s390x": NodeSort(LINUX | {"kubernetes.io/arch": "s390x"}),
    "windows": NodeSort(LINUX | {"kubernetes.io/os": "windows"}),
    "bare": NodeSort({}),
    "fargate": NodeSort(LINUX | {"eks.amazonaws.com/compute-type": "fargate"}),
    "masq": NodeSort(LINUX | {_OWN + "masq-agent-ds-ready": "true"}),
    "labelled-gpu": NodeSort(LINUX | {"nvidia.com/gpu.present": "true"}),
    "cordoned": NodeSort(by_state=(_OWN + "unschedulable:NoSchedule",)),
    "control-plane": NodeSort(taints=("node-role.kubernetes.io/control-plane:NoSchedule",)),
    "gpu": NodeSort(LINUX | {"cloud.google.com/gke-accelerator": "nvidia-l4"}, ("nvidia.com/gpu=present:NoSchedule",)),
    "drained": NodeSort(taints=("maintenance:NoExecute",)),
    "full": NodeSort(taints=("dedicated=storage:NoSchedule",)),
    "no-network": NodeSort(by_state=(_OWN + "network-unavailable:NoSchedule",)),
    "down": NodeSort(by_state=(_OWN + "unreachable:NoSchedule", _OWN + "unreachable:NoExecute")),
}

ALL = set(NODES)
ON_LINUX = ALL - {"windows", "bare"}
UNTAINTED = {"node-0", "arm", "s390x", "windows", "bare", "fargate", "masq", "labelled-gpu", "cordoned"}
"""Where a DaemonSet runs that tolerates nothing: every daemon pod tolerates that its node is cordoned."""

EXPECTED: list[tuple[str, str, set[str], str]] = [
    (
        "ds-aws-vpc-cni.yaml",
        "aws-node",
        ON_LINUX - {"s390x", "fargate"},
        "tolerates everything; os linux, arch amd64 or arm64, and not of a compute type without nodes of one's own",
    ),
    ("ds-bind-rolling-rv2.yaml", "bind", UNTAINTED, "affinity to pods only, which is the scheduler's business"),
    ("ds-bind-rolling.yaml", "bind", UNTAINTED, "as its other revision"),
    ("ds-calico-typha-workloads.yaml", "calico-node", ON_LINUX, "selects linux, tolerates both effects"),
    ("ds-ebs-csi-node-windows.yaml", "ebs-csi-node-windows", {"windows"}, "selects windows, tolerates everything"),
    (
        "ds-ebs-csi-node.yaml",
        "ebs-csi-node",
        ON_LINUX - {"fargate"},
        "selects linux and compute types other than fargate; tolerates everything",
    ),
    ("ds-flannel.yaml", "kube-flannel-ds", ON_LINUX - {"drained"}, "requires linux; tolerates NoSchedule"),
    (
        "ds-fluentd-elasticsearch-rbac.yaml",
        "fluentd",
        UNTAINTED | {"control-plane"},
        "a toleration without an operator is Equal to the empty value, which the taint of the control plane has",
    ),
    ("ds-fluentd-es.yaml", "fluentd-es-v3.1.0", UNTAINTED, "says nothing of nodes"),
    ("ds-gke-nvidia-device-plugin.yaml", "nvidia-gpu-device-plugin", {"gpu"}, "the label of accelerators exists"),
    ("ds-gke-nvidia-driver-installer.yaml", "nvidia-driver-installer", {"gpu"}, "the label of accelerators exists"),
    ("ds-ip-masq-agent.yaml", "ip-masq-agent", {"masq"}, "selects two labels"),
    ("ds-kube-router.yaml", "kube-router", ALL, "tolerates both effects, selects nothing"),
    ("ds-kured.yaml", "kured", UNTAINTED | {"control-plane"}, "tolerates the control plane's taint"),
    ("ds-longhorn-workloads.yaml", "longhorn-manager", UNTAINTED, "says nothing of nodes"),
    (
        "ds-metallb-workloads.yaml",
        "speaker",
        UNTAINTED - {"windows", "bare"} | {"control-plane", "no-network"},
        "selects linux, tolerates the control plane; on the host's network, so it tolerates that there is no other",
    ),
    ("ds-nfd-worker.yaml", "nfd-worker", UNTAINTED, "says nothing of nodes"),
    ("ds-node-exporter.yaml", "node-exporter", ON_LINUX, "selects linux, tolerates everything"),
    ("ds-node-local-dns.yaml", "node-local-dns", ALL, "tolerates both effects, selects nothing"),
    (
        "ds-node-problem-detector.yaml",
        "npd-v0.8.5",
        UNTAINTED | {"drained"},
        "tolerates NoExecute, and no NoSchedule, which a node that is down has as well",
    ),
    (
        "ds-nvidia-device-plugin.yaml",
        "nvidia-device-plugin-daemonset",
        UNTAINTED | {"gpu"},
        "tolerates the taint of GPUs, and asks for no GPU",
    ),
    (
        "ds-nvidia-gpu-feature-discovery.yaml",
        "gpu-feature-discovery",
        {"labelled-gpu"},
        "one of three terms: the label that a GPU is present",
    ),
]
"""File, name of the DaemonSet in it, the nodes that should run it, and why."""
