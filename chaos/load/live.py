"""The cluster as the journal shows it now: for the load to choose from, and to see when all has come to rest."""

from __future__ import annotations

from collections import defaultdict
from typing import TypeVar

from oarlock.chaos.judge.daemons_at_rest import Converged
from oarlock.chaos.judge.evidence.placing import place
from oarlock.chaos.judge.evidence.sightings import (
    DaemonSetSeen,
    DeploymentSeen,
    NamespaceSeen,
    NodeSeen,
    OwnerSeen,
    PodSeen,
    RevisionSeen,
    Seen,
    note,
)
from oarlock.chaos.judge.rollouts_at_rest import why_not_at_rest

T = TypeVar("T", OwnerSeen, DaemonSetSeen, DeploymentSeen, NodeSeen)


class Live:
    """Told of everything seen. ``owners``, ``daemon_sets`` and ``deployments`` by task, ``pods`` by uid, the others by
    name.
    """

    def __init__(self) -> None:
        self.owners: dict[str, OwnerSeen] = {}
        self.daemon_sets: dict[str, DaemonSetSeen] = {}
        self.deployments: dict[str, DeploymentSeen] = {}
        self.pods: dict[str, PodSeen] = {}
        self.nodes: dict[str, NodeSeen] = {}
        self.namespaces: dict[str, NamespaceSeen] = {}
        self._of_owner: dict[str, set[str]] = defaultdict(set)
        self._converged = Converged()
        self.created = 0

    def take(self, seen: Seen) -> None:
        """One event."""
        match seen:
            case PodSeen():
                self._take_pod(seen)
            case OwnerSeen():
                _keep(self.owners, seen.task, seen)
            case DaemonSetSeen():
                _keep(self.daemon_sets, seen.task, seen)
            case DeploymentSeen():
                _keep(self.deployments, seen.task, seen)
            case NodeSeen():
                _keep(self.nodes, seen.name, seen)
            case RevisionSeen():
                self._converged.revision(seen)
            case NamespaceSeen():
                note(self.namespaces, seen.name, seen)

    def _take_pod(self, seen: PodSeen) -> None:
        before = note(self.pods, seen.uid, seen)
        if before is not None:
            self._of_owner[before.owner].discard(seen.uid)
        if seen.gone:
            return
        self.created += before is None
        self._of_owner[seen.owner].add(seen.uid)

    def pods_of(self, owner_uid: str) -> list[PodSeen]:
        """The pods it controls, by name; "" for orphans."""
        return sorted((self.pods[uid] for uid in self._of_owner[owner_uid]), key=lambda pod: pod.name)

    def replicasets_of(self, owner_uid: str) -> list[OwnerSeen]:
        """Those that a Deployment controls, by name."""
        return sorted((each for each in self.owners.values() if each.owner == owner_uid), key=lambda each: each.task)

    def unsettled(self) -> list[str]:
        """Owners that are not yet as they should be, each in a few words."""
        found = []
        for owner in self.owners.values():
            pods = [pod for pod in self.pods_of(owner.uid) if pod.active or pod.deleting]
            active = [pod for pod in pods if pod.active]
            ready = sum(pod.ready for pod in active)
            right = (
                not owner.deleting
                and owner.observed == owner.generation
                and len(pods) == len(active) == owner.replicas == owner.status_replicas
                and ready == owner.status_ready == owner.replicas
            )
            if not right:
                found.append(f"{owner.task}: {len(active)} of {owner.replicas} active, {ready} ready, {len(pods)} pods")
        for daemons in self.daemon_sets.values():
            places = {node.name: place(daemons, node) for node in self.nodes.values()}
            why = self._converged.why_not(daemons, places, self.pods_of(daemons.uid))
            if why:
                found.append(f"{daemons.task}: {why}")
        for deployment in self.deployments.values():
            sets = self.replicasets_of(deployment.uid)
            why = why_not_at_rest(deployment, sets, [pod for each in sets for pod in self.pods_of(each.uid)])
            if why:
                found.append(f"{deployment.task}: {why}")
        uids = {owner.uid for owner in self.owners.values()} | {each.uid for each in self.daemon_sets.values()}
        found += [f"{pod.task}: {pod.name} has no owner any more" for pod in self.pods.values() if _stray(pod, uids)]
        return found


def _keep(known: dict[str, T], key: str, seen: T) -> None:
    if not seen.gone:
        known[key] = seen
    elif key in known and known[key].uid == seen.uid:
        del known[key]


def _stray(pod: PodSeen, uids: set[str]) -> bool:
    return bool(pod.owner) and pod.owner not in uids
