"""The taints that follow from a node's state: cordoned, not ready, unreachable, under pressure. Pure.

Upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go (nodeConditionToTaintKeyStatusMap,
doNoScheduleTaintingPass, processTaintBaseEviction) and pkg/controller/util/node/controller_utils.go
(SwapNodeControllerTaint). Unlike there, NoExecute taints are set at once and on any number of nodes: zones and
eviction rates are not simulated. A node whose readiness nobody reports is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.nodes.scheduler.predicates import NO_EXECUTE, NO_SCHEDULE

Obj = dict[str, Any]

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_BY_CONDITION: Final[Mapping[tuple[str, str], str]] = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_EVICTING: Final = (NOT_READY, UNREACHABLE)
_OURS: Final = frozenset(
    {(key, NO_SCHEDULE) for key in (*_BY_CONDITION.values(), UNSCHEDULABLE)} | {(key, NO_EXECUTE) for key in _EVICTING}
)


def readiness(node: Obj) -> str | None:
    """Status of the Ready condition: "True", "False" or "Unknown"; None if nobody reports it."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            return str(condition.get("status"))
    return None


def wants_taints(node: Obj) -> bool:
    """Whether the node's taints are not those that follow from its state."""
    if readiness(node) is None:
        return False
    taints = (node.get("spec") or {}).get("taints") or ()
    have = [mark for taint in taints if (mark := _mark(taint)) in _OURS]
    return len(have) != len(set(have)) or set(have) != _due(node)


def tainted(node: Obj, at: str) -> Obj:
    """The node with the taints that follow from its state, those new since `at` (RFC 3339); others stay."""
    due = _due(node)
    taints: list[Obj] = []
    for taint in (node.get("spec") or {}).get("taints") or ():
        mark = _mark(taint)
        if mark not in _OURS:
            taints.append(taint)
        elif mark in due:
            due.discard(mark)
            taints.append(taint)
    taints += [{"key": key, "effect": effect, "timeAdded": at} for key, effect in sorted(due)]
    spec = {name: value for name, value in (node.get("spec") or {}).items() if name != "taints"}
    return {**node, "spec": {**spec, "taints": taints} if taints else spec}


def _due(node: Obj) -> set[tuple[str, str]]:
    due = {(UNSCHEDULABLE, NO_SCHEDULE)} if (node.get("spec") or {}).get("unschedulable") else set()
    for condition in (node.get("status") or {}).get("conditions") or ():
        key = _BY_CONDITION.get((condition.get("type"), condition.get("status")))
        if key is not None:
            due.add((key, NO_SCHEDULE))
            if key in _EVICTING:
                due.add((key, NO_EXECUTE))
    return due


def _mark(taint: Obj) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")
