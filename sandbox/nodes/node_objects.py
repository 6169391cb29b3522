"""The Node objects of the simulated cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.http.discovery import GIT_VERSION
from oarlock.sandbox.nodes.lifecycle import readiness

Obj = dict[str, Any]

_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


_DEFAULT_LABELS: Final = (("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64"))


def node_object(index: int, pods_max: int, at: str, prefix: str = "node-") -> Obj:
    """`<prefix><index>`, ready since `at` (RFC 3339), with room for `pods_max` pods."""
    name = f"{prefix}{index}"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"providerID": f"sim://{name}"}}
    return registered(node, index, pods_max, at)


def needs_registering(node: Obj) -> bool:
    """Whether no kubelet has spoken for the node: it reports neither on its readiness nor on its room."""
    status = node.get("status") or {}
    return readiness(node) is None or not (status.get("capacity") and status.get("allocatable"))


def registered(node: Obj, index: int, pods_max: int, at: str) -> Obj:
    """The node after its kubelet, number `index`, has registered: what it says of itself stays, the rest is added.

    Upstream: pkg/kubelet/kubelet_node_status.go (initialNode). What it says of its operating system and architecture
    by labels is what it then reports.
    """
    meta, said = node["metadata"], node.get("status") or {}
    labels = {"kubernetes.io/hostname": meta["name"], **dict(_DEFAULT_LABELS), **(meta.get("labels") or {})}
    status = node_status(meta["name"], index, pods_max, at, labels)
    capacity = {**status["capacity"], **(said.get("capacity") or {})}
    told = said.get("conditions") or []
    types = {condition.get("type") for condition in told}
    status |= {
        **said,
        "capacity": capacity,
        "allocatable": {**capacity, **(said.get("allocatable") or {})},
        "conditions": [*told, *(condition for condition in status["conditions"] if condition["type"] not in types)],
        "addresses": said.get("addresses") or status["addresses"],
        "nodeInfo": {**status["nodeInfo"], **(said.get("nodeInfo") or {})},
    }
    return {**node, "metadata": {**meta, "labels": labels}, "spec": node.get("spec") or {}, "status": status}


def node_status(name: str, index: int, pods_max: int, at: str, labels: Mapping[str, str]) -> Obj:
    """What the kubelet of node number `index` reports."""
    amounts = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": str(pods_max)}
    return {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": [
            {
                "type": type_,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": at,
                "lastTransitionTime": at,
            }
            for type_, status, reason, message in _CONDITIONS
        ],
        "addresses": [
            {"type": "InternalIP", "address": f"192.168.{index // 254 % 256}.{index % 254 + 1}"},
            {"type": "Hostname", "address": name},
        ],
        "nodeInfo": {
            "architecture": labels["kubernetes.io/arch"],
            "operatingSystem": labels["kubernetes.io/os"],
            "osImage": "simulated",
            "kernelVersion": "simulated",
            "containerRuntimeVersion": "sim://1.0",
            "kubeletVersion": GIT_VERSION,
            "kubeProxyVersion": GIT_VERSION,
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
        },
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": [],
    }


def beaten(node: Obj, at: str) -> Obj:
    """The node after a heartbeat at `at`: what its kubelet reports is what it reported before."""
    status = node.get("status") or {}
    conditions = [{**condition, "lastHeartbeatTime": at} for condition in status.get("conditions") or ()]
    return {**node, "status": {**status, "conditions": conditions}}
