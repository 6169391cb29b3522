"""Which sightings are changes that a key depends on: what has to be followed by a claim that has read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from oarlock.chaos.judge.evidence.sightings import (
    NODE_QUEUE,
    QUEUE_OF_KIND,
    DaemonSetSeen,
    DeploymentSeen,
    NodeSeen,
    OwnerSeen,
    PodSeen,
    RevisionSeen,
    Seen,
    note,
)

RESOURCE_OF_QUEUE = {
    QUEUE_OF_KIND["ReplicaSet"]: "replicasets",
    QUEUE_OF_KIND["ReplicationController"]: "replicationcontrollers",
    QUEUE_OF_KIND["DaemonSet"]: "daemonsets",
    QUEUE_OF_KIND["Deployment"]: "deployments",
    NODE_QUEUE: "nodes",
}


class Change(NamedTuple):
    """Something a decision or a status depends on."""

    at_s: float
    rv: int
    resource: str
    what: str


def changes_of(history: Iterable[Seen]) -> dict[str, list[Change]]:
    """The changes of every owner and node that is there in the end, by task, since it appeared; in revision order."""
    found = _Changes()
    for seen in history:
        match seen:
            case OwnerSeen():
                found.owner(seen)
                found.replicaset(seen)
            case DaemonSetSeen() | DeploymentSeen():
                found.owner(seen)
            case PodSeen():
                found.pod(seen)
            case RevisionSeen():
                found.revision(seen)
            case NodeSeen():
                found.node(seen)
    return found.by_task


class _Changes:
    def __init__(self) -> None:
        self.by_task: dict[str, list[Change]] = defaultdict(list)
        self._owners: dict[str, OwnerSeen | DaemonSetSeen | DeploymentSeen] = {}
        self._replicasets: dict[str, OwnerSeen] = {}
        self._pods: dict[str, PodSeen] = {}
        self._revisions: dict[str, RevisionSeen] = {}
        self._nodes: dict[str, NodeSeen] = {}

    def owner(self, seen: OwnerSeen | DaemonSetSeen | DeploymentSeen) -> None:
        before = self._owners.get(seen.task)
        if seen.gone:
            self._owners.pop(seen.task, None)
            self.by_task.pop(seen.task, None)
            return
        self._owners[seen.task] = seen
        resource = RESOURCE_OF_QUEUE[seen.task.partition(":")[0]]
        if before is None or before.uid != seen.uid:
            self.by_task[seen.task] = [Change(seen.at_s, seen.rv, resource, "was created")]
        elif (before.generation, before.deleting) != (seen.generation, seen.deleting):
            self._add(seen.task, Change(seen.at_s, seen.rv, resource, f"generation {seen.generation}"))

    def replicaset(self, seen: OwnerSeen) -> None:
        """What happens to a ReplicaSet concerns its Deployment."""
        was = note(self._replicasets, seen.uid, seen)
        if was is not None and not seen.gone and _counted(was) == _counted(seen):
            return
        name = seen.task.partition("/")[2]
        what = f"ReplicaSet {name} {'has gone' if seen.gone else 'appeared' if was is None else 'changed'}"
        for task, uid in dict.fromkeys((each.owner_task, each.owner) for each in (was or seen, seen)):
            self._concerns(task, uid, Change(seen.at_s, seen.rv, "replicasets", what))

    def pod(self, seen: PodSeen) -> None:
        was = note(self._pods, seen.uid, seen)
        if was is not None and not seen.gone and _judged(was) == _judged(seen):
            return
        what = f"pod {seen.name} {'has gone' if seen.gone else 'appeared' if was is None else 'changed'}"
        for each in dict.fromkeys((was or seen, seen)):
            self._concerns(each.task, each.owner, Change(seen.at_s, seen.rv, "pods", what))

    def revision(self, seen: RevisionSeen) -> None:
        """A new revision concerns no key: its creator knows of it (upstream: daemon_controller.go, addHistory)."""
        was = note(self._revisions, seen.uid, seen)
        same = was is not None and (was.owner, was.label, was.number) == (seen.owner, seen.label, seen.number)
        if was is None or (same and not seen.gone):
            return
        what = f"revision {seen.name} {'has gone' if seen.gone else 'changed'}"
        for each in dict.fromkeys((was, seen)):
            self._concerns(each.task, each.owner, Change(seen.at_s, seen.rv, "controllerrevisions", what))

    def node(self, seen: NodeSeen) -> None:
        """A node that goes concerns no key; of the others only labels and taints matter."""
        was = note(self._nodes, seen.name, seen)
        task = f"{NODE_QUEUE}:{seen.name}"
        if seen.gone:
            self.by_task.pop(task, None)
            return
        if was is None:
            self._add(task, Change(seen.at_s, seen.rv, "nodes", "appeared"))
        elif (was.labels, was.taints) != (seen.labels, seen.taints):
            self._add(task, Change(seen.at_s, seen.rv, "nodes", "changed its labels or taints"))

    def _concerns(self, task: str, uid: str, change: Change) -> None:
        owner = self._owners.get(task)
        if uid and owner is not None and owner.uid == uid:
            self._add(task, change)

    def _add(self, task: str, change: Change) -> None:
        of_task = self.by_task[task]
        if not (of_task and of_task[-1].rv == change.rv):
            of_task.append(change)


def _counted(seen: OwnerSeen) -> tuple[object, ...]:
    return seen.owner, seen.generation, seen.deleting, seen.observed, seen.status_replicas, seen.status_ready


def _judged(pod: PodSeen) -> tuple[object, ...]:
    return pod.owner, pod.labels, pod.deleting, pod.phase, pod.ready, pod.node
