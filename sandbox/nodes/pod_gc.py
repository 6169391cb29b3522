"""The collector of pods that nobody else removes: deleted ones that have no kubelet to end them, and the oldest of too
many finished ones. Pure: no I/O, no clock.

A DELETE first writes its intent and then removes the pod; a request that is cancelled in between leaves a pod without a
node Terminating for ever. Upstream: pkg/controller/podgc/gc_controller.go (gcUnscheduledTerminating, gcTerminating,
gcTerminated); its gcOrphaned is `kubelet.Kubelet`'s, which knows the pods of every node.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from oarlock.sandbox.nodes.kubelet.known_pod import Actions
from oarlock.sandbox.nodes.lifecycle import readiness
from oarlock.sandbox.nodes.scheduler.scheduler import ref_of

Obj = dict[str, Any]

EVERY_MS: Final = 20_000.0
ENDED_MAX: Final = 12_500
"""Pods that are over and may stay: --terminated-pod-gc-threshold of kube-controller-manager."""
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_ENDED: Final = ("Succeeded", "Failed")


class PodCollector:
    """Told of every change of nodes and pods; `due` says which pods to give up, every 20 s while there may be any."""

    def __init__(self, ended_max: int = ENDED_MAX) -> None:
        self._ended_max = ended_max
        self._leaving: dict[str, Obj] = {}  # by uid, as the next two
        self._ended: dict[str, Obj] = {}
        self._given_up: dict[str, Obj] = {}
        self._out_of_service: set[str] = set()
        self._look_ms: float | None = None

    def next_ms(self) -> float | None:
        """When `due` is to be asked again, if nothing else happens."""
        return 0.0 if self._given_up else self._look_ms

    def node_changed(self, node: Obj) -> None:
        taints = (node.get("spec") or {}).get("taints") or ()
        is_out = readiness(node) != "True" and any(taint.get("key") == OUT_OF_SERVICE for taint in taints)
        (self._out_of_service.add if is_out else self._out_of_service.discard)(node["metadata"]["name"])

    def node_gone(self, name: str) -> None:
        self._out_of_service.discard(name)

    def pod_changed(self, pod: Obj, now_ms: float) -> None:
        uid = pod["metadata"]["uid"]
        if pod["metadata"].get("deletionTimestamp"):
            self._leaving[uid] = pod
        if _is_over(pod):
            self._ended[uid] = pod
        else:
            self._ended.pop(uid, None)
        if self._look_ms is None and self._may_have_work():
            self._look_ms = now_ms + EVERY_MS

    def pod_gone(self, uid: str) -> None:
        for pods in (self._leaving, self._ended, self._given_up):
            pods.pop(uid, None)

    def due(self, now_ms: float, count_max: int = 512) -> Actions:
        """Pods to mark as failed and to remove without grace, at most `count_max`."""
        if self._look_ms is not None and self._look_ms <= now_ms:
            self._given_up |= {pod["metadata"]["uid"]: pod for pod in (*self._stuck(), *self._surplus())}
            self._look_ms = now_ms + EVERY_MS if self._may_have_work() else None  # also for what is not done by then
        actions = Actions()
        for uid in list(islice(self._given_up, count_max)):
            pod = self._given_up.pop(uid)
            if not _is_over(pod):
                actions.statuses.append((ref_of(pod), {"phase": "Failed"}))
            actions.removals.append(ref_of(pod))
        return actions

    def _may_have_work(self) -> bool:
        return bool(self._leaving) or len(self._ended) > self._ended_max

    def _stuck(self) -> Iterator[Obj]:
        """Deleted, and on no node that could end them."""
        for pod in self._leaving.values():
            node = pod["spec"].get("nodeName")
            if not node or node in self._out_of_service:
                yield pod

    def _surplus(self) -> list[Obj]:
        """The finished pods beyond the number that may stay: evicted ones first, then the oldest."""
        count = len(self._ended) - self._ended_max
        return sorted(self._ended.values(), key=_rank)[:count] if count > 0 else []


def _is_over(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in _ENDED


def _rank(pod: Obj) -> tuple[bool, str, str]:
    meta = pod["metadata"]
    return (pod.get("status") or {}).get("reason") != "Evicted", meta["creationTimestamp"], meta["name"]
