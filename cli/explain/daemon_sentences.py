"""What is known about a DaemonSet, or about a node, as sentences. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from oarlock.cli.explain.sentences import Subject
from oarlock.cli.tables import listed, span
from oarlock.controllers.daemonset.backoff import BackOff, waiting_ms
from oarlock.controllers.daemonset.limits import max_surge, max_unavailable
from oarlock.controllers.daemonset.model import ROLLING_UPDATE, DaemonSet
from oarlock.controllers.daemonset.podmap import PodMap, is_updated, pod_map
from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.scheduling.eligibility import eligibility_of
from oarlock.controllers.scheduling.model import Node

NODES_MAX = 1_000
"""So many nodes are told by name; all are counted."""


@dataclass(frozen=True, slots=True)
class Daemons(Subject):
    """A DaemonSet as the cache has it, with its pods and revisions, and all nodes; ``back_offs``: text by node."""

    obj: DaemonSet
    rv: str
    nodes: Sequence[Node]
    pods: Sequence[Pod]
    revisions: Sequence[ControllerRevision]
    now_ms: int
    back_offs: Mapping[str, str] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        run, stay = self._eligible()
        podmap = self._podmap()
        old = [pod for pod in self._there() if not self._updated(pod)]
        behind = self.obj.status.observed_generation < self.obj.generation
        rolling = self.obj.strategy == ROLLING_UPDATE and bool(old)
        return behind or rolling or bool(set(run) - podmap.keys()) or bool(podmap.keys() - stay)

    def sentences(self, kind: str) -> list[str]:
        obj, status = self.obj, self.obj.status
        run, stay = self._eligible()
        podmap = self._podmap()
        missing, astray = [name for name in run if name not in podmap], sorted(podmap.keys() - stay)
        leaving = sum(1 for pod in self.pods if pod.deleting_ms)
        said = [
            f"{kind} {obj.key} belongs on {len(run)} of {len(self.nodes)} nodes and has {len(self._there())} pods in"
            f" the cache (resourceVersion {self.rv})"
            + (f", and {leaving} terminating" if leaving else "")
            + f"; its status says {status.current} of {status.desired} scheduled, {status.ready} ready,"
            f" {status.updated} up to date, {status.available} available."
        ]
        if obj.deleting_ms:
            return [*said, "It is being deleted: nothing more is done for it."]
        if missing:
            said.append(f"No pod is there for {listed(missing)}.")
        if astray:
            said.append(f"Pods are on {listed(astray)}, where they may not stay.")
        if tolerated := sorted((podmap.keys() & stay) - set(run)):
            said.append(f"Pods stay on {listed(tolerated)}, where none would be made now.")
        return [*said, *self._history(len(run)), *self._failed()]

    @property
    def facts(self) -> dict[str, Any]:
        run, stay = self._eligible()
        podmap = self._podmap()
        states = {name: self._state(podmap.get(name, ()), name in stay) for name in sorted({*run, *podmap})}
        return {"nodes": {"counts": Counter(states.values()), "each": dict(islice(states.items(), NODES_MAX))}}

    # -- inside

    def _eligible(self) -> tuple[list[str], set[str]]:
        """Nodes where a pod is to run, and those where one may stay."""
        eligible = eligibility_of(self.obj.placement).eligible
        answers = {node.name: eligible(node) for node in self.nodes}
        run = sorted(name for name, (should_run, _) in answers.items() if should_run)
        return run, {name for name, (_, may_stay) in answers.items() if may_stay}

    def _state(self, pods: Sequence[Pod], may_stay: bool) -> str:
        """Of a node: what its pods come to."""
        there = [pod for pod in pods if not pod.deleting_ms]
        if not there:
            return "ending" if pods else "none"
        if not may_stay:
            return "astray"
        if any(pod.phase == "Failed" for pod in there):
            return "failed"
        new = [pod for pod in there if self._updated(pod)]
        if len(new) == len(there):
            return "new" if any(pod.ready for pod in new) else "starting"
        return "both" if new else "old"

    def _podmap(self) -> PodMap:
        return pod_map(self.pods)

    def _there(self) -> list[Pod]:
        return [pod for pod in self.pods if not pod.deleting_ms]

    def _current(self) -> ControllerRevision | None:
        same = [each for each in self.revisions if each.digest == self.obj.template_digest]
        return max(same, key=lambda each: each.revision, default=None)

    def _updated(self, pod: Pod) -> bool:
        current = self._current()
        return is_updated(pod, current.hash if current is not None else "", self.obj.template_generation)

    def _history(self, desired: int) -> list[str]:
        current, there = self._current(), self._there()
        if current is None:
            return ["Its present template has no revision yet: that is the first thing a turn makes."]
        old = [pod for pod in there if not self._updated(pod)]
        said = f"Its present template is revision {current.revision} ({current.name})"
        if len(self.revisions) > 1:
            said += f" of {len(self.revisions)} that are kept"
        if not old:
            return [said + "; all its pods are of it." if there else said + "."]
        said += f"; {len(old)} of {len(there)} pods are older"
        if self.obj.strategy != ROLLING_UPDATE:
            return [said + f" and stay until somebody deletes them (strategy {self.obj.strategy})."]
        try:
            surge, limit = max_surge(self.obj, desired), max_unavailable(self.obj, desired)
        except ValueError as error:
            return [said + f" and cannot be replaced: {error}."]
        way = f"{surge} nodes with a second pod" if surge else f"{limit} nodes without an available pod"
        return [said + f" and are replaced with at most {way} at a time."]

    def _failed(self) -> list[str]:
        said = []
        failed = {pod.target_node for pod in self.pods if pod.phase == "Failed" and not pod.deleting_ms}
        for node, text in sorted(self.back_offs.items()):
            left_ms = waiting_ms(BackOff.parse(text), self.obj.status.observed_generation, self.now_ms)
            if left_ms and node in failed:
                said.append(f"The failed pod of {node} is left alone for another {span(left_ms)} (back-off).")
            elif left_ms:
                said.append(f"Should its pod on {node} fail again, that waits for another {span(left_ms)} (back-off).")
        return said


@dataclass(frozen=True, slots=True)
class NodeSubject(Subject):
    """A node, and the keys of DaemonSets that have a pod there, that should have one, and whose pods may stay."""

    obj: Node
    rv: str
    have: Sequence[str]
    belong: Sequence[str]
    may_stay: Sequence[str]

    @property
    def differs(self) -> bool:
        return bool(self._missing() or self._astray())

    def sentences(self, kind: str) -> list[str]:
        said = [
            f"{kind} {self.obj.name} is to have pods of {len(self.belong)} DaemonSets and has pods of {len(self.have)}"
            f" in the cache (resourceVersion {self.rv})."
        ]
        if missing := self._missing():
            said.append(f"No pod is there of {listed(missing)}; explain these with -c daemonset.")
        if astray := self._astray():
            said.append(f"Pods of {listed(astray)} may not stay; explain these with -c daemonset.")
        return said

    def _missing(self) -> list[str]:
        return sorted(set(self.belong) - set(self.have))

    def _astray(self) -> list[str]:
        return sorted(set(self.have) - set(self.may_stay))
