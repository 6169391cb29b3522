"""What `oarlock get` shows of each kind beside name, age and revision: heading -> the cell, read from a projection."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from oarlock.controllers.objects.model import Owned, Pod, controller_of
from oarlock.controllers.scheduling.model import Node

Columns = Mapping[str, Callable[[Any], object]]

LABELS_MAX = 6
"""Labels of a node that are shown; `-o json` has all."""


def _phase(pod: Pod) -> str:
    return "Terminating" if pod.deleting_ms else pod.phase


def _node(pod: Pod) -> str:
    return pod.node_name or (f"({pod.pinned_node})" if pod.pinned_node else "")


def _owner(obj: Owned) -> str:
    ref = controller_of(obj)
    return f"{ref.kind}/{ref.name}" if ref is not None else ""


def _taints(node: Node) -> str:
    return ",".join(f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}" for taint in node.taints)


def _labels(labels: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(labels.items())]


def _some_labels(node: Node) -> str:
    labels = _labels(node.labels)
    more = [f"+{len(labels) - LABELS_MAX}"] if len(labels) > LABELS_MAX else []
    return ",".join(labels[:LABELS_MAX] + more)


POD: Columns = {"PHASE": _phase, "READY": attrgetter("ready"), "NODE": _node, "OWNER": _owner}
NODE: Columns = {"TAINTS": _taints, "LABELS": _some_labels}
REVISION: Columns = {"CONTROLLER": _owner, "REVISION": attrgetter("revision"), "HASH": attrgetter("hash")}
REPLICAS: Columns = {
    "DESIRED": attrgetter("replicas"),
    "CURRENT": attrgetter("status.replicas"),
    "READY": attrgetter("status.ready"),
    "AVAILABLE": attrgetter("status.available"),
}
DAEMONSET: Columns = {
    "DESIRED": attrgetter("status.desired"),
    "CURRENT": attrgetter("status.current"),
    "READY": attrgetter("status.ready"),
    "UP-TO-DATE": attrgetter("status.updated"),
    "AVAILABLE": attrgetter("status.available"),
    "MISSCHEDULED": attrgetter("status.misscheduled"),
    "NODE SELECTOR": lambda owner: ",".join(_labels(owner.placement.node_selector)),
}
WHOLE: Columns = {"GENERATION": attrgetter("generation"), "OWNER": _owner}
DEPLOYMENT: Columns = {
    "DESIRED": attrgetter("replicas"),
    "CURRENT": attrgetter("status.replicas"),
    "READY": attrgetter("status.ready"),
    "UP-TO-DATE": attrgetter("status.updated"),
    "AVAILABLE": attrgetter("status.available"),
    "STRATEGY": attrgetter("strategy"),
    "PAUSED": attrgetter("paused"),
}
