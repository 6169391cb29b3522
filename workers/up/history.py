"""What happened to the pods of every ReplicaSet, seen from outside: from the API's watch, by its revisions.

It asks nothing of the fleet, so what it counts is not the fleet's word for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass

from cluster.client import Client
from cluster.resources import PODS, REPLICASETS, Resource
from cluster.watch import Broken, Deaf, Expired
from controllers import wire
from controllers.model import FINISHED_PHASES, Pod, ReplicaSet, controller_of

AGAIN_S = 0.2


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod at a revision. ``active``: it counts for its owner (not terminating, not finished)."""

    rv: int
    uid: str
    owner_uid: str
    active: bool


@dataclass(frozen=True, slots=True)
class SetSeen:
    """A ReplicaSet at a revision; ``replicas`` 0 once it is gone."""

    rv: int
    uid: str
    key: str
    replicas: int
    generation: int = 0
    observed: int = 0
    ready: int = 0
    available: int = 0
    created: int = 0

    @property
    def settled(self) -> bool:
        """Its status says that all that is asked for is there and available."""
        full = self.created == self.ready == self.available == self.replicas
        return full and self.observed >= self.generation


Seen = PodSeen | SetSeen


class History:
    """Records both resources from now on. ``run`` on an event loop; everything else from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[Seen] = []
        self._sets: dict[str, SetSeen] = {}
        self._active: dict[str, set[str]] = {}
        self._owner_of: dict[str, str] = {}
        self.changed = threading.Event()
        self.started = threading.Event()
        self.complete = True
        """False once a part of the history could not be had: then nothing may be counted."""

    async def run(self, client: Client) -> None:
        """Until cancelled. ``started`` is set once nothing after it can be missed."""
        positions = [await _position(client, resource) for resource in (PODS, REPLICASETS)]
        self.started.set()
        await asyncio.gather(
            self._follow(client, PODS, positions[0]),
            self._follow(client, REPLICASETS, positions[1]),
        )

    async def _follow(self, client: Client, resource: Resource, rv: str) -> None:
        while True:
            try:
                async with aclosing(client.watch_batches(resource, rv)) as batches:
                    async for batch in batches:
                        for event in batch:
                            rv = event.rv
                            if event.type != "BOOKMARK":
                                self._note(resource, event.type == "DELETED", event.object)
                        self.changed.set()
            except Expired:
                self.complete = False
                rv = await _position(client, resource)
            except (Deaf, Broken):
                await asyncio.sleep(AGAIN_S)

    def _note(self, resource: Resource, gone: bool, raw: bytes) -> None:
        with self._lock:
            if resource is PODS:
                self._note_pod(gone, *wire.pod_from_json(raw))
            else:
                self._note_set(gone, *wire.replicaset_from_json(raw))

    def _note_pod(self, gone: bool, rv: str, pod: Pod) -> None:
        owner = controller_of(pod)
        active = not gone and not pod.deleting_ms and pod.phase not in FINISHED_PHASES
        seen = PodSeen(int(rv), pod.uid, owner.uid if owner is not None else "", active)
        before = self._owner_of.get(pod.uid, "")
        self._active.get(before, set()).discard(pod.uid)
        if active and seen.owner_uid:
            self._active.setdefault(seen.owner_uid, set()).add(pod.uid)
        self._owner_of[pod.uid] = seen.owner_uid
        self._events.append(seen)

    def _note_set(self, gone: bool, rv: str, owner: ReplicaSet) -> None:
        status = owner.status
        seen = SetSeen(
            int(rv),
            owner.uid,
            owner.key,
            0 if gone else owner.replicas,
            owner.generation,
            status.observed_generation,
            status.ready,
            status.available,
            status.replicas,
        )
        if gone:
            self._sets.pop(owner.uid, None)
        else:
            self._sets[owner.uid] = seen
        self._events.append(seen)

    def sets(self) -> dict[str, SetSeen]:
        """The newest of each living ReplicaSet, by "namespace/name"."""
        with self._lock:
            return {seen.key: seen for seen in sorted(self._sets.values(), key=lambda each: each.key)}

    def active(self, owner_uid: str) -> int:
        """Active pods of an owner, now."""
        with self._lock:
            return len(self._active.get(owner_uid, ()))

    def events(self) -> list[Seen]:
        """All so far, in the order of revisions."""
        with self._lock:
            return sorted(self._events, key=lambda seen: seen.rv)


def pods_too_many(events: Iterable[Seen]) -> dict[str, int]:
    """Per ReplicaSet ("namespace/name"), by how many its active pods exceeded what was allowed; {} is the promise.

    Allowed is the largest ``replicas`` since the set was last at rest: after a scale-down the pods above are on their
    way out, and creates may still be under way. A set is at rest when it has as many active pods as it asks for and its
    status says so. Counted are pods that became active above that bound. ``events`` in the order of revisions.
    """
    sets: dict[str, SetSeen] = {}
    bound: dict[str, int] = {}
    active: dict[str, set[str]] = {}
    owner_of: dict[str, str] = {}
    excess: dict[str, int] = {}

    for seen in events:
        if isinstance(seen, SetSeen):
            sets[seen.uid] = seen
            at_rest = seen.settled and len(active.get(seen.uid, ())) == seen.replicas
            bound[seen.uid] = seen.replicas if at_rest else max(bound.get(seen.uid, 0), seen.replicas)
            continue
        before = owner_of.get(seen.uid, "")
        was_active = seen.uid in active.get(before, ())
        if was_active:
            active[before].discard(seen.uid)
        owner_of[seen.uid] = seen.owner_uid
        if not seen.active or not seen.owner_uid:
            continue
        active.setdefault(seen.owner_uid, set()).add(seen.uid)
        over = len(active[seen.owner_uid]) - bound.get(seen.owner_uid, 0)
        if over > 0 and not (was_active and before == seen.owner_uid):
            key = sets[seen.owner_uid].key if seen.owner_uid in sets else seen.owner_uid
            excess[key] = max(excess.get(key, 0), over)
    return excess


async def _position(client: Client, resource: Resource) -> str:
    """The resourceVersion of now."""
    async with aclosing(client.list_pages(resource, limit=1)) as pages:
        async for page in pages:
            return page.rv
    raise AssertionError("a list has at least one page")
