"""The cluster as the journal shows it now: for the load to choose from, and to see when all has come to rest."""

from __future__ import annotations

from collections import defaultdict

from workers.chaos.evidence import NamespaceSeen, OwnerSeen, PodSeen, Seen


class Live:
    """Told of everything seen."""

    def __init__(self) -> None:
        self.owners: dict[str, OwnerSeen] = {}
        self.pods: dict[str, PodSeen] = {}
        self.namespaces: dict[str, NamespaceSeen] = {}
        self._of_owner: dict[str, set[str]] = defaultdict(set)
        self.created = self.removed = 0

    def take(self, seen: Seen) -> None:
        """One event."""
        if isinstance(seen, OwnerSeen):
            if not seen.gone:
                self.owners[seen.task] = seen
            elif (known := self.owners.get(seen.task)) is not None and known.uid == seen.uid:
                del self.owners[seen.task]
        elif isinstance(seen, NamespaceSeen):
            if seen.gone:
                self.namespaces.pop(seen.name, None)
            else:
                self.namespaces[seen.name] = seen
        else:
            self._take_pod(seen)

    def _take_pod(self, seen: PodSeen) -> None:
        before = self.pods.pop(seen.uid, None)
        if before is not None:
            self._of_owner[before.owner].discard(seen.uid)
        if seen.gone:
            self.removed += 1
            return
        self.created += before is None
        self.pods[seen.uid] = seen
        self._of_owner[seen.owner].add(seen.uid)

    def pods_of(self, owner_uid: str) -> list[PodSeen]:
        """The pods it controls, by name; "" for orphans."""
        return sorted((self.pods[uid] for uid in self._of_owner[owner_uid]), key=lambda pod: pod.name)

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
        uids = {owner.uid for owner in self.owners.values()}
        found += [f"{pod.task}: {pod.name} has no owner any more" for pod in self.pods.values() if _stray(pod, uids)]
        return found


def _stray(pod: PodSeen, uids: set[str]) -> bool:
    return bool(pod.owner) and pod.owner not in uids
