"""Where the pods of a DaemonSet belong: its nodeSelector and its tolerations against a node's labels and taints.

Written for the checker alone, from the API's own words; the load asks for nothing else, neither for a node by name nor
for node affinity. Upstream: pkg/controller/daemon/daemon_controller.go (NodeShouldRunDaemonPod) and
pkg/controller/daemon/util/daemonset_util.go (AddOrUpdateDaemonPodTolerations).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from oarlock.chaos.judge.evidence.sightings import DaemonSetSeen, NodeSeen, TaintSeen, Tolerance

_OWN = "node.kubernetes.io/"
ADDED = (
    Tolerance(_OWN + "not-ready", "Exists", "", "NoExecute"),
    Tolerance(_OWN + "unreachable", "Exists", "", "NoExecute"),
    Tolerance(_OWN + "disk-pressure", "Exists", "", "NoSchedule"),
    Tolerance(_OWN + "memory-pressure", "Exists", "", "NoSchedule"),
    Tolerance(_OWN + "pid-pressure", "Exists", "", "NoSchedule"),
    Tolerance(_OWN + "unschedulable", "Exists", "", "NoSchedule"),
)
"""What every daemon pod tolerates."""


class Place(NamedTuple):
    """``runs``: a pod belongs there; ``stays``: one that is there may stay."""

    runs: bool
    stays: bool


NOWHERE = Place(False, False)


def place(daemons: DaemonSetSeen, node: NodeSeen) -> Place:
    """Whether a node is one of this DaemonSet's."""
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in daemons.node_selector):
        return NOWHERE
    untolerated = {taint.effect for taint in node.taints if not _tolerated(taint, (*daemons.tolerations, *ADDED))}
    if "NoExecute" in untolerated:
        return NOWHERE
    return Place("NoSchedule" not in untolerated, True)


def _tolerated(taint: TaintSeen, by: Iterable[Tolerance]) -> bool:
    return any(
        each.effect in ("", taint.effect)
        and each.key in ("", taint.key)
        and (each.operator == "Exists" or each.value == taint.value)
        for each in by
    )


def limit_of(daemons: DaemonSetSeen, nodes: int) -> int:
    """How many of its ``nodes`` a rolling update may take down: 0 where it surges or leaves old pods alone."""
    if daemons.strategy != "RollingUpdate":
        return 0
    surge, limit = _share(daemons.surge, nodes), _share(daemons.limit, nodes)
    return max(limit, 1) if not surge and nodes else limit


def _share(text: str, whole: int) -> int:
    """A number, or a percentage of the whole, rounded up."""
    if text.endswith("%"):
        return math.ceil(int(text[:-1]) * whole / 100)
    return int(text or 0)
