"""The Node objects of the simulated cluster. Pure."""

from __future__ import annotations

from typing import Any, Final

from cluster.embedded.discovery import GIT_VERSION

Obj = dict[str, Any]

_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def node_object(index: int, pods_max: int, at: str) -> Obj:
    """`node-<index>`, ready since `at` (RFC 3339), with room for `pods_max` pods."""
    name = f"node-{index}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {"providerID": f"sim://{name}"},
        "status": node_status(name, index, pods_max, at),
    }


def node_status(name: str, index: int, pods_max: int, at: str) -> Obj:
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
            "architecture": "amd64",
            "operatingSystem": "linux",
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


def reports_ready(node: Obj) -> bool:
    """Whether somebody already reports on the node's readiness."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" for condition in conditions)
