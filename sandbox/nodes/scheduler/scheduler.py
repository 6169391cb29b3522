"""The scheduler: gives pods without a node to the least loaded node that may take them. Pure: no I/O, no clock.

Of a large cluster it looks at a part for each pod, the next part for the next one, as upstream does
(numFeasibleNodesToFind in pkg/scheduler/schedule_one.go). A pod whose affinity names its node costs the same however
many nodes there are: only that node is looked at, and while none takes it, only changes of that node wake it.

What counts: nodeSelector, required node affinity, taints, cordons, the number of pods a node may hold, and
scheduling gates. What does not: compute resources, volumes, ports, pod affinity, topology spread, preferences
other than PreferNoSchedule. Upstream: pkg/scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.text.quantities import parse_quantity
from oarlock.sandbox.apiserver.text.times import rfc3339
from oarlock.sandbox.nodes.api.pod_api import PodRef
from oarlock.sandbox.nodes.scheduler.parked import Parked
from oarlock.sandbox.nodes.scheduler.predicates import PREFER_NO_SCHEDULE, pinned_to, untolerated, why_not

Obj = dict[str, Any]

DEFAULT_SCHEDULER: Final = "default-scheduler"
FULL: Final = "Too many pods"
_ENDED: Final = ("Succeeded", "Failed")
_ANSWERS_MAX: Final = 512  # distinct demands remembered between two changes of nodes
_LOOKED_AT_MAX: Final = 100  # nodes with room, for one pod


@dataclass(slots=True)
class Decisions:
    """`bindings`: (pod, node). `unschedulable`: (pod, status to write) for those that no node takes."""

    bindings: list[tuple[PodRef, str]] = field(default_factory=list)
    unschedulable: list[tuple[PodRef, Obj]] = field(default_factory=list)


@dataclass(slots=True)
class _Node:
    obj: Obj
    pods_max: int


@dataclass(slots=True)
class _Answer:
    """Nodes for one demand: the preferred ones, those only to be used in need, and the reasons against the rest."""

    good: list[str]
    poor: list[str]
    reasons: Counter[str]


def ref_of(pod: Obj) -> PodRef:
    """Which pod this is."""
    meta = pod["metadata"]
    return PodRef(meta["namespace"], meta["name"], meta["uid"])


class Scheduler:
    """Told of every change of nodes and pods; `schedule` decides for those that wait."""

    def __init__(self, name: str = DEFAULT_SCHEDULER) -> None:
        self._name = name
        self._nodes: dict[str, _Node] = {}
        self._node_of: dict[str, str] = {}  # uid of a pod that takes a place -> node
        self._pods_on: Counter[str] = Counter()  # places taken, also on nodes that are not there
        self._waiting: dict[str, Obj] = {}  # uid -> pod, in order of arrival
        self._parked = Parked()
        self._answers: dict[bytes, _Answer] = {}
        self._begin = 0  # where the next look at many nodes begins

    @property
    def waiting(self) -> int:
        """Pods to decide on."""
        return len(self._waiting)

    def node_changed(self, node: Obj) -> None:
        name = node["metadata"]["name"]
        known = self._nodes.get(name)
        pods_max = _pods_max(node)
        if known is not None and not _matters(known.obj, node) and known.pods_max == pods_max:
            known.obj = node
            return
        self._nodes[name] = _Node(node, pods_max)
        self._answers.clear()
        self._retry(name)

    def node_gone(self, name: str) -> None:
        if self._nodes.pop(name, None) is not None:
            self._answers.clear()

    def pod_changed(self, pod: Obj) -> None:
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        node = spec.get("nodeName")
        ended = (pod.get("status") or {}).get("phase") in _ENDED
        if node:
            self._waiting.pop(uid, None)
            self._parked.pop(uid)
            if ended:
                self._free(uid)
            else:
                self._take(uid, node)
        elif uid in self._node_of:
            return  # bound by us; the event that says so is on its way
        elif self._may_wait(pod) and not ended:
            if not self._parked.replace(uid, pod):
                self._waiting[uid] = pod
        else:
            self._waiting.pop(uid, None)
            self._parked.pop(uid)

    def pod_gone(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._parked.pop(uid)
        self._free(uid)

    def schedule(self, now_s: float, count_max: int = 512) -> Decisions:
        """Decide on up to `count_max` waiting pods. A bound pod takes its place at once."""
        decisions = Decisions()
        for uid in list(islice(self._waiting, count_max)):
            pod = self._waiting.pop(uid)
            pinned = pinned_to(pod["spec"])
            answer = self._answer(pod["spec"]) if pinned is None else self._ask(pod["spec"], sorted(pinned))
            node = self._emptiest(answer.good) or self._emptiest(answer.poor)
            if node is not None:
                self._take(uid, node)
                decisions.bindings.append((ref_of(pod), node))
                continue
            self._parked.add(uid, pod, pinned)
            condition = self._unschedulable(pod, answer, now_s)
            if condition is not None:
                decisions.unschedulable.append((ref_of(pod), {"conditions": [condition]}))
        return decisions

    # -- inside ----------------------------------------------------------------------------------

    def _may_wait(self, pod: Obj) -> bool:
        spec = pod["spec"]
        return (
            spec.get("schedulerName", DEFAULT_SCHEDULER) == self._name
            and not pod["metadata"].get("deletionTimestamp")
            and not spec.get("schedulingGates")
        )

    def _take(self, uid: str, node: str) -> None:
        before = self._node_of.get(uid)
        if before == node:
            return
        if before is not None:
            self._free(uid)
        self._node_of[uid] = node
        self._pods_on[node] += 1

    def _free(self, uid: str) -> None:
        name = self._node_of.pop(uid, None)
        if name is None:
            return
        pods = self._pods_on[name]
        if pods > 1:
            self._pods_on[name] = pods - 1
        else:
            del self._pods_on[name]
        node = self._nodes.get(name)
        if node is not None and pods >= node.pods_max:
            self._retry(name)

    def _retry(self, node: str) -> None:
        """Look again at those for whom a change of the node may mean something."""
        self._waiting.update(self._parked.take(node))

    def _emptiest(self, names: list[str]) -> str | None:
        best, best_pods, found = None, -1, 0
        begin = self._begin % len(names) if len(names) > _LOOKED_AT_MAX else 0
        for at in range(begin, begin + len(names)):
            name = names[at % len(names)]
            self._begin += 1
            pods = self._pods_on.get(name, 0)
            if pods >= self._nodes[name].pods_max:
                continue
            if best is None or pods < best_pods:
                best, best_pods = name, pods
            found += 1
            if found == _LOOKED_AT_MAX:
                break
        return best

    def _answer(self, spec: Obj) -> _Answer:
        """Which nodes may take a pod of this spec, remembered until a node changes."""
        demand = orjson.dumps([spec.get("nodeSelector"), spec.get("affinity"), spec.get("tolerations")])
        known = self._answers.get(demand)
        if known is None:
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            known = self._answers[demand] = self._ask(spec, self._nodes)
        return known

    def _ask(self, spec: Obj, names: Collection[str]) -> _Answer:
        answer = _Answer([], [], Counter())
        tolerations = spec.get("tolerations") or ()
        for name in names:
            if name not in self._nodes:
                continue
            node = self._nodes[name].obj
            reason = why_not(spec, node)
            if reason is not None:
                answer.reasons[reason] += 1
                continue
            taints = (node.get("spec") or {}).get("taints") or ()
            poor = untolerated(tolerations, taints, (PREFER_NO_SCHEDULE,)) is not None
            (answer.poor if poor else answer.good).append(name)
        return answer

    def _unschedulable(self, pod: Obj, answer: _Answer, now_s: float) -> Obj | None:
        """The condition to write, or None if the pod has it already."""
        reasons = Counter(answer.reasons)
        if full := len(answer.good) + len(answer.poor):
            reasons[FULL] = full
        told = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        message = f"0/{len(self._nodes)} nodes are available" + (f": {told}." if told else ".")
        for condition in (pod.get("status") or {}).get("conditions") or ():
            if condition.get("type") == "PodScheduled" and condition.get("message") == message:
                return None
        return {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": rfc3339(now_s),
        }


def _pods_max(node: Obj) -> int:
    status = node.get("status") or {}
    amounts = status.get("allocatable") or status.get("capacity") or {}
    try:
        return int(parse_quantity(amounts.get("pods", 0)))
    except ValueError:
        return 0


def _matters(old: Obj, new: Obj) -> bool:
    """Whether a change of a node can change where pods may go."""
    return old.get("spec") != new.get("spec") or old["metadata"].get("labels") != new["metadata"].get("labels")
