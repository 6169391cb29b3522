"""The columns of `oarlock get`, for each resource of the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oarlock.broker.values import Cached
from oarlock.cli.tables import Row, span
from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.objects.model import Owned, Pod, ReplicaSet, controller_of
from oarlock.controllers.scheduling.model import Node

LABELS_MAX = 6
"""Labels of a node that are shown; `-o json` has all."""

_NAMES = {"namespace": "NAMESPACE", "name": "NAME"}
_END = {"age": "AGE", "rv": "RV"}
_SET = {**_NAMES, "desired": "DESIRED", "current": "CURRENT", "ready": "READY", "available": "AVAILABLE", **_END}

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "pods": {**_NAMES, "phase": "PHASE", "ready": "READY", "node": "NODE", "owner": "OWNER", **_END},
    "nodes": {"name": "NAME", "taints": "TAINTS", "labels": "LABELS", "rv": "RV"},
    "replicasets": _SET,
    "replicationcontrollers": _SET,
    "daemonsets": {
        **_NAMES,
        **{"desired": "DESIRED", "current": "CURRENT", "ready": "READY", "updated": "UP-TO-DATE"},
        **{"available": "AVAILABLE", "misscheduled": "MISSCHEDULED", "selector": "NODE SELECTOR"},
        **_END,
    },
    "controllerrevisions": {**_NAMES, "owner": "CONTROLLER", "revision": "REVISION", "hash": "HASH", **_END},
}
"""plural -> key of the row -> heading"""


def row(cached: Cached, obj: Any, now_ms: int) -> Row:
    """One object as a row of its table."""
    cells: dict[str, Any] = {"namespace": obj.namespace, "name": obj.name, "rv": cached.rv}
    if hasattr(obj, "created_ms"):
        cells["age"] = span(now_ms - obj.created_ms)
    return {**cells, **_CELLS[type(obj)](obj)}


def _pod(pod: Pod) -> Row:
    return {
        "phase": "Terminating" if pod.deleting_ms else pod.phase,
        "ready": pod.ready,
        "node": pod.node_name or (f"({pod.pinned_node})" if pod.pinned_node else ""),
        "owner": _owner(pod),
    }


def _node(node: Node) -> Row:
    labels = [f"{key}={value}" for key, value in sorted(node.labels.items())]
    more = [f"+{len(labels) - LABELS_MAX}"] if len(labels) > LABELS_MAX else []
    taints = [f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}" for taint in node.taints]
    return {"taints": ",".join(taints), "labels": ",".join(labels[:LABELS_MAX] + more)}


def _set(owner: ReplicaSet) -> Row:
    status = owner.status
    counts = {"current": status.replicas, "ready": status.ready, "available": status.available}
    return {"desired": owner.replicas, **counts}


def _daemonset(owner: DaemonSet) -> Row:
    status = owner.status
    return {
        "desired": status.desired,
        "current": status.current,
        "ready": status.ready,
        "updated": status.updated,
        "available": status.available,
        "misscheduled": status.misscheduled,
        "selector": ",".join(f"{key}={value}" for key, value in sorted(owner.placement.node_selector.items())),
    }


def _revision(revision: ControllerRevision) -> Row:
    return {"owner": _owner(revision), "revision": revision.revision, "hash": revision.hash}


def _owner(obj: Owned) -> str:
    ref = controller_of(obj)
    return f"{ref.kind}/{ref.name}" if ref is not None else ""


_CELLS: Mapping[type, Callable[[Any], Row]] = {
    Pod: _pod,
    Node: _node,
    ReplicaSet: _set,
    DaemonSet: _daemonset,
    ControllerRevision: _revision,
}
