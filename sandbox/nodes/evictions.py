"""NoExecute taints: which pods have to leave their node, and when. Pure: no I/O, no clock.

Upstream: pkg/controller/tainteviction/taint_eviction.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oarlock.sandbox.nodes.api.pod_api import PodRef
from oarlock.sandbox.nodes.scheduler.predicates import NO_EXECUTE, evict_after_s
from oarlock.sandbox.nodes.scheduler.scheduler import ref_of
from oarlock.sandbox.nodes.timers import Timers

Obj = dict[str, Any]


class Evictions:
    """Told of every change of nodes and of pods that have one; `due` says which to delete, with their grace."""

    def __init__(self) -> None:
        self._taints: dict[str, list[Obj]] = {}
        self._leaving: dict[str, tuple[float, PodRef]] = {}  # uid -> when, which
        self._timers: Timers[str] = Timers()

    def next_ms(self) -> float | None:
        return self._timers.next_ms()

    def node_changed(self, node: Obj, pods: Iterable[Obj], now_ms: float) -> None:
        """`pods` are those on the node."""
        name = node["metadata"]["name"]
        all_taints = (node.get("spec") or {}).get("taints") or ()
        taints = [taint for taint in all_taints if taint.get("effect") == NO_EXECUTE]
        if taints == self._taints.get(name, []):
            return
        if taints:
            self._taints[name] = taints
        else:
            self._taints.pop(name, None)
        for pod in pods:
            self._consider(pod, taints, now_ms)

    def node_gone(self, name: str) -> None:
        self._taints.pop(name, None)

    def pod_changed(self, pod: Obj, now_ms: float) -> None:
        taints = self._taints.get(pod["spec"].get("nodeName", ""))
        if taints:
            self._consider(pod, taints, now_ms)

    def pod_gone(self, uid: str) -> None:
        self._leaving.pop(uid, None)

    def due(self, now_ms: float, count_max: int = 512) -> list[PodRef]:
        """Pods whose time has come."""
        due = []
        for uid in self._timers.pop_due(now_ms, count_max):
            leaving = self._leaving.get(uid)
            if leaving is not None and leaving[0] <= now_ms:
                del self._leaving[uid]
                due.append(leaving[1])
        return due

    def _consider(self, pod: Obj, taints: list[Obj], now_ms: float) -> None:
        meta = pod["metadata"]
        uid = meta["uid"]
        after_s = evict_after_s(pod["spec"].get("tolerations") or (), taints)
        if after_s is None or meta.get("deletionTimestamp"):
            self._leaving.pop(uid, None)
            return
        due_ms = now_ms + 1000.0 * after_s
        known = self._leaving.get(uid)
        if known is None or due_ms < known[0]:
            self._leaving[uid] = (due_ms, ref_of(pod))
            self._timers.add(due_ms, uid)
