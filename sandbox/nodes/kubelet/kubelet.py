"""All kubelets in one: starts pods that have a node, makes them ready, ends them. Pure: no I/O, no clock.

With no delay to wait for, one status write takes a pod from bound to running and ready.

A pod is ready only on a node that is (upstream: the node lifecycle controller, MarkPodsNotReady). A kubelet that
reports NotReady starts and ends pods all the same; one that cannot be reached (Ready is Unknown) does neither until
it can, so a deleted pod stays there, as it would.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from oarlock.sandbox.nodes.kubelet import pod_status
from oarlock.sandbox.nodes.kubelet.images import pause_ms, unpullable, waiting
from oarlock.sandbox.nodes.kubelet.known_pod import Actions, Do, KnownPod
from oarlock.sandbox.nodes.kubelet.pod_status import host_ip, pod_ips
from oarlock.sandbox.nodes.lifecycle import readiness
from oarlock.sandbox.nodes.scheduler.scheduler import ref_of
from oarlock.sandbox.nodes.settings import FAIL, REJECT, NodeSettings, annotation, is_never_ready, ready_after_ms
from oarlock.sandbox.nodes.timers import Timers

Obj = dict[str, Any]

_ENDED: Final = ("Succeeded", "Failed")


class Kubelet:
    """Told of every change of nodes and pods; `due` says what to write."""

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._random = random.Random(settings.seed)
        self._nodes: dict[str, Obj] = {}
        self._pods: dict[str, KnownPod] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._timers: Timers[tuple[Do, str]] = Timers()
        self._failing: dict[str, tuple[str, str]] = {}
        self._held: dict[str, list[tuple[Do, str]]] = {}  # what has come due on nodes out of reach
        self._ips = pod_ips()

    def next_ms(self) -> float | None:
        """When `due` is to be asked again, if nothing else happens."""
        return 0.0 if self._failing else self._timers.next_ms()

    def node_changed(self, node: Obj, now_ms: float) -> None:
        name = node["metadata"]["name"]
        known = self._nodes.get(name)
        self._nodes[name] = node
        if known is None:
            for uid in self._on_node.get(name, ()):
                self._timers.add(now_ms, (Do.READY if self._pods[uid].started else Do.START, uid))
        elif _is_ready(node) is not _is_ready(known):
            for uid in self._on_node.get(name, ()):
                self._timers.add(now_ms, (Do.READY, uid))
        if not _is_out_of_reach(node):
            for held in self._held.pop(name, ()):
                self._timers.add(now_ms, held)

    def node_gone(self, name: str, now_ms: float) -> None:
        self._held.pop(name, None)
        if self._nodes.pop(name, None) is not None and self._settings.lifecycle:
            for uid in self._on_node.get(name, ()):
                self._timers.add(now_ms + self._settings.gone_node_ms, (Do.LOSE, uid))

    def pods_on(self, node: str) -> Iterator[Obj]:
        """The pods of one node, as last seen."""
        return (self._pods[uid].obj for uid in self._on_node.get(node, ()))

    def pod_changed(self, pod: Obj, now_ms: float) -> None:
        node = pod["spec"].get("nodeName")
        if not node:
            return
        uid = pod["metadata"]["uid"]
        known = self._pods.get(uid)
        if known is None:
            known = self._pods[uid] = KnownPod(pod)
            self._on_node.setdefault(node, {})[uid] = None
            self._resume(known)
            self._begin(uid, known, node, now_ms)
        known.seen(pod)
        known.over = (pod.get("status") or {}).get("phase") in _ENDED
        meta = pod["metadata"]
        if meta.get("deletionTimestamp"):
            grace_ms = 1000.0 * (meta.get("deletionGracePeriodSeconds") or 0)
            end_ms = now_ms + (0.0 if known.over else min(self._settings.terminate_ms, grace_ms))
            if known.end_ms is None or end_ms < known.end_ms:
                known.end_ms = end_ms
                self._timers.add(end_ms, (Do.END, uid))
            return
        if known.over:
            return
        reason = annotation(pod, FAIL)
        if reason is not None:
            self.fail(uid, "Failed" if reason in ("", "true") else reason)
        elif known.started:
            self._review_readiness(uid, known, now_ms)
        elif known.looks and not unpullable(pod, self._settings.unpullable):
            known.look_ms = now_ms  # it has been given other images
            self._timers.add(now_ms, (Do.START, uid))

    def pod_gone(self, uid: str) -> None:
        known = self._pods.pop(uid, None)
        self._failing.pop(uid, None)
        if known is not None:
            node = known.obj["spec"]["nodeName"]
            others = self._on_node[node]
            del others[uid]
            if not others:
                del self._on_node[node]

    def fail(self, uid: str, reason: str, message: str = "") -> bool:
        """Have a pod fail. False if there is no such pod on a node, or it is over."""
        known = self._pods.get(uid)
        if known is None or known.over:
            return False
        self._failing[uid] = (reason, message)
        return True

    def due(self, now_ms: float, at: str, count_max: int = 512) -> Actions:
        """What is to be written now, with `at` (RFC 3339) as the time of day; at most `count_max` timers count.

        `now_ms` is of the same clock as in the other calls, which need not be that of the day.
        """
        actions = Actions()
        for what, uid in self._timers.pop_due(now_ms, count_max):
            known = self._pods.get(uid)
            if known is None or self._holds(what, uid, known):
                continue
            if what is Do.END:
                self._end(known, actions, at)
            elif what is Do.LOSE:
                self._lose(known, actions, at)
            elif known.over or known.end_ms is not None or uid in self._failing:
                continue  # its end has begun
            elif what is Do.START:
                self._start(uid, known, actions, now_ms, at)
            elif known.started and (ready := self._may_be_ready(known, now_ms)) is not known.ready:
                self._set_ready(known, actions, at, ready=ready)
        for uid, (reason, message) in self._failing.items():
            known = self._pods[uid]
            status = pod_status.ended(known.present, "Failed", reason, message, at)
            actions.statuses.append((ref_of(known.obj), status))
            known.over = True
        self._failing.clear()
        return actions

    # -- inside ----------------------------------------------------------------------------------

    def _resume(self, known: KnownPod) -> None:
        """Take over a pod that was running before we looked."""
        status = known.obj.get("status") or {}
        known.started = status.get("phase") == "Running"
        known.ready = any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in status.get("conditions") or ()
        )
        if known.ready:
            known.ready_ms = 0.0

    def _begin(self, uid: str, known: KnownPod, node: str, now_ms: float) -> None:
        if node not in self._nodes:
            if self._settings.lifecycle:
                self._timers.add(now_ms + self._settings.gone_node_ms, (Do.LOSE, uid))
        elif not known.started:
            self._timers.add(now_ms, (Do.START, uid))

    def _holds(self, what: Do, uid: str, known: KnownPod) -> bool:
        """Whether a kubelet out of reach would have to do this; it will, once it is back."""
        if what not in (Do.START, Do.END):
            return False
        name = known.obj["spec"]["nodeName"]
        node = self._nodes.get(name)
        if node is None or not _is_out_of_reach(node):
            return False
        self._held.setdefault(name, []).append((what, uid))
        return True

    def _may_be_ready(self, known: KnownPod, now_ms: float) -> bool:
        node = self._nodes.get(known.obj["spec"]["nodeName"])
        is_up = node is None or _is_ready(node)
        return is_up and known.ready_ms is not None and known.ready_ms <= now_ms

    def _start(self, uid: str, known: KnownPod, actions: Actions, now_ms: float, at: str) -> None:
        node = self._nodes.get(known.obj["spec"]["nodeName"])
        if node is None or known.started or now_ms < known.look_ms:
            return
        reason = annotation(node, REJECT)
        if reason is not None:
            self._reject(known, "Rejected" if reason in ("", "true") else reason, actions, at)
            return
        pod_ip = (known.obj.get("status") or {}).get("podIP") or next(self._ips)
        if images := unpullable(known.obj, self._settings.unpullable):
            why = {name: waiting(image, known.looks) for name, image in images.items()}
            actions.statuses.append((ref_of(known.obj), pod_status.pending(known.obj, why, pod_ip, host_ip(node), at)))
            self._look_again(uid, known, now_ms)
            return
        known.started = True
        self._foresee_ready(known, now_ms)
        known.ready = self._may_be_ready(known, now_ms)
        status = pod_status.running(known.obj, pod_ip, host_ip(node), at, ready=known.ready)
        known.unseen = status
        actions.statuses.append((ref_of(known.obj), status))
        if known.ready_ms is not None and known.ready_ms > now_ms:
            self._timers.add(known.ready_ms, (Do.READY, uid))

    def _look_again(self, uid: str, known: KnownPod, now_ms: float) -> None:
        """The images of a pod could not be pulled."""
        known.look_ms = now_ms + pause_ms(known.looks)
        known.looks += 1
        self._timers.add(known.look_ms, (Do.START, uid))

    def _reject(self, known: KnownPod, reason: str, actions: Actions, at: str) -> None:
        """Refuse to run a pod (upstream: pkg/kubelet/kubelet.go, rejectPod)."""
        status = pod_status.ended(known.obj, "Failed", reason, f"Pod was rejected: {reason}", at)
        actions.statuses.append((ref_of(known.obj), status))
        known.over = True

    def _foresee_ready(self, known: KnownPod, now_ms: float) -> None:
        if is_never_ready(known.obj):
            known.ready_ms = None
            return
        delay_ms = ready_after_ms(known.obj)
        if delay_ms is None:
            settings = self._settings
            delay_ms = settings.ready_ms
            if settings.ready_jitter_ms:
                delay_ms += self._random.uniform(0.0, settings.ready_jitter_ms)
        known.ready_ms = now_ms + delay_ms

    def _review_readiness(self, uid: str, known: KnownPod, now_ms: float) -> None:
        """The pod may have been asked to stop being ready, or to become so after all."""
        if is_never_ready(known.obj):
            known.ready_ms = None
            if known.ready:
                self._timers.add(now_ms, (Do.READY, uid))
        elif known.ready_ms is None and not known.ready:
            self._foresee_ready(known, now_ms)
            if known.ready_ms is not None:
                self._timers.add(known.ready_ms, (Do.READY, uid))

    def _set_ready(self, known: KnownPod, actions: Actions, at: str, *, ready: bool) -> None:
        known.ready = ready
        actions.statuses.append((ref_of(known.obj), pod_status.changed_readiness(known.present, at, ready=ready)))

    def _end(self, known: KnownPod, actions: Actions, at: str) -> None:
        """The containers of a deleted pod have ended."""
        ref = ref_of(known.obj)
        if known.obj["metadata"].get("finalizers") and not known.over:
            # Somebody will still look at it: leave word how it ended.
            actions.statuses.append((ref, pod_status.ended(known.present, "Succeeded", "", "", at)))
            known.over = True
        actions.removals.append(ref)

    def _lose(self, known: KnownPod, actions: Actions, at: str) -> None:
        """A pod on a node that is gone is given up."""
        if known.obj["spec"]["nodeName"] in self._nodes:
            return
        ref = ref_of(known.obj)
        if not known.over:
            actions.statuses.append((ref, pod_status.given_up(known.present, at)))
            known.over = True
        actions.removals.append(ref)


def _is_ready(node: Obj) -> bool:
    """A node whose kubelet has not reported yet is about to."""
    return readiness(node) in (None, "True")


def _is_out_of_reach(node: Obj) -> bool:
    return readiness(node) == "Unknown"
