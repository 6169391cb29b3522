"""The owner of a plan and all that it controls, followed while the plan is played."""

from __future__ import annotations

from typing import Any

from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.objects.availability import is_available
from oarlock.controllers.objects.model import Pod, controller_of, is_active
from oarlock.controllers.registry import CONTROLLERS, QUEUE_OF_KIND
from oarlock.controllers.scheduling.model import Node


class Family:
    """``note`` keeps it up to date with every event. ``pods``: by name, of the owner or of its ReplicaSets."""

    def __init__(self, kind: str, owner: Any) -> None:
        self.queue = QUEUE_OF_KIND[kind]
        self.owner = owner
        self.pods: dict[str, Pod] = {}
        self._all_pods: dict[str, Pod] = {}
        self._active: set[str] = set()
        self._available: set[str] = set()
        self.replicasets: dict[str, Any] = {}
        """By UID; of a Deployment."""
        self.nodes: dict[str, Node] = {}

    @property
    def daemonset(self) -> DaemonSet | None:
        return self.owner if isinstance(self.owner, DaemonSet) else None

    @property
    def min_ready_seconds(self) -> int:
        return int(self.owner.min_ready_seconds)

    def has(self, task: str) -> bool:
        """Whether a key, as "queue:namespace/name", is one of this plan."""
        queue, _, key = task.partition(":")
        if queue == self.queue:
            return bool(key == self.owner.key)
        return queue in self.queues and any(each.key == key for each in self.replicasets.values())

    @property
    def queues(self) -> tuple[str, ...]:
        """That of the owner, and of a Deployment that of its ReplicaSets."""
        dependents = CONTROLLERS[self.queue].dependents
        below = [queue for queue, each in CONTROLLERS.items() if each.resource == dependents]
        return (self.queue, *below)

    def owner_of(self, pod: Pod) -> str:
        """The UID of its controller; empty for none."""
        ref = controller_of(pod)
        return ref.uid if ref is not None else ""

    def note(self, resource: str, obj: Any, gone: bool, now_ms: int) -> None:
        """An object has come, changed or gone."""
        if resource == "nodes":
            self.nodes[obj.name] = obj
        elif resource == CONTROLLERS[self.queue].resource and obj.uid == self.owner.uid:
            self.owner = obj
        elif resource == "pods":
            _keep(self._all_pods, obj.name, obj, not gone)
            self._note_pod(obj, gone, now_ms)
        elif resource == "replicasets":
            known = obj.uid in self.replicasets
            _keep(self.replicasets, obj.uid, obj, not gone and self.owner_of(obj) == self.owner.uid)
            if known != (obj.uid in self.replicasets):  # it was adopted, released or has gone, and its pods with it
                for pod in self._all_pods.values():
                    self._note_pod(pod, False, now_ms)

    def _is_ours(self, pod: Pod) -> bool:
        uid = self.owner_of(pod)
        return bool(uid) and (uid == self.owner.uid or uid in self.replicasets)

    def _note_pod(self, pod: Pod, gone: bool, now_ms: int) -> None:
        ours = not gone and self._is_ours(pod)
        _keep(self.pods, pod.name, pod, ours)
        for names, counted in (
            (self._active, ours and is_active(pod)),
            (self._available, ours and is_active(pod) and is_available(pod, self.min_ready_seconds, now_ms)),
        ):
            (names.add if counted else names.discard)(pod.name)

    def time_passed(self, now_ms: int) -> None:
        """Pods may have become available."""
        for pod in list(self.pods.values()):
            self._note_pod(pod, False, now_ms)

    @property
    def counts(self) -> tuple[int, int]:
        """Active pods, and those of them that are available."""
        return len(self._active), len(self._available)


def _keep(of: dict[str, Any], at: str, obj: Any, kept: bool) -> None:
    if kept:
        of[at] = obj
    else:
        of.pop(at, None)
