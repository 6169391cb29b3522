"""What happened to the owners of pods and to their pods, seen from outside: from the API's watch, by its revisions.

It asks the fleet nothing, so a count made from it does not rest on the fleet's own word.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import aclosing
from typing import Any

from oarlock.cluster.client import Client
from oarlock.cluster.watch import Expired
from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.deployment.progress import PROGRESSING, TIMED_OUT
from oarlock.controllers.deployment.sizing.limits import max_surge, max_unavailable
from oarlock.controllers.entries import Watched
from oarlock.controllers.objects.model import FINISHED_PHASES, Pod, ReplicaSet, controller_of
from oarlock.controllers.objects.status import get_condition
from oarlock.controllers.registry import CONTROLLERS, WATCHED
from oarlock.sandbox.demo.seen import DaemonsSeen, DeploymentSeen, OwnerSeen, PodSeen, Seen, SetSeen
from oarlock.sandbox.reflector import follow
from oarlock.workers.process.kinds import cluster_resource


class History:
    """Records pods and all owners from now on. ``run`` on an event loop; everything else from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[Seen] = []
        self._owners: dict[str, OwnerSeen] = {}
        self._active: dict[str, set[str]] = {}
        self._owner_of: dict[str, str] = {}
        self.changed = threading.Event()
        self.started = threading.Event()
        self.complete = True
        """False once a part of the history was lost: then nothing may be counted."""

    async def run(self, client: Client) -> None:
        """Record until cancelled. ``started`` is set once no later event can be missed."""
        resources = _followed()
        positions = [await _position(client, resource) for resource in resources]
        self.started.set()
        await asyncio.gather(
            *(self._follow(client, resource, rv) for resource, rv in zip(resources, positions, strict=True))
        )

    async def _follow(self, client: Client, resource: Watched[Any], rv: str) -> None:
        while True:
            try:
                async with aclosing(follow(client, cluster_resource(resource), rv)) as events:
                    async for event in events:
                        if event.type != "BOOKMARK":
                            self._note(resource, event.type == "DELETED", event.object)
                        self.changed.set()
            except Expired:
                self.complete = False
                rv = await _position(client, resource)

    def _note(self, resource: Watched[Any], gone: bool, raw: bytes) -> None:
        rv, obj = resource.from_json(raw)
        with self._lock:
            if isinstance(obj, Pod):
                self._note_pod(gone, int(rv), obj)
            else:
                self._note_owner(gone, owner_seen(int(rv), obj, resource.kind, gone))

    def _note_pod(self, gone: bool, rv: int, pod: Pod) -> None:
        seen = pod_seen(rv, pod, gone, time.time_ns() // 1_000_000)
        before = self._owner_of.get(pod.uid, "")
        self._active.get(before, set()).discard(pod.uid)
        if seen.active and seen.owner_uid:
            self._active.setdefault(seen.owner_uid, set()).add(pod.uid)
        self._owner_of[pod.uid] = seen.owner_uid
        self._events.append(seen)

    def _note_owner(self, gone: bool, seen: OwnerSeen) -> None:
        if gone:
            self._owners.pop(seen.uid, None)
        else:
            self._owners[seen.uid] = seen
        self._events.append(seen)

    def owners(self) -> dict[str, OwnerSeen]:
        """The newest of each living owner, by title ("ReplicaSet shop/cart")."""
        with self._lock:
            return {seen.title: seen for seen in sorted(self._owners.values(), key=lambda each: (each.key, each.kind))}

    def active(self, owner_uid: str) -> int:
        """Active pods of an owner, now."""
        with self._lock:
            return len(self._active.get(owner_uid, ()))

    def events(self) -> list[Seen]:
        """All events so far, in the order of revisions."""
        with self._lock:
            return sorted(self._events, key=lambda seen: seen.rv)


def pod_seen(rv: int, pod: Pod, gone: bool, at_ms: int) -> PodSeen:
    """What is counted of a pod."""
    owner, present = controller_of(pod), not gone and not pod.deleting_ms
    return PodSeen(
        rv,
        pod.uid,
        owner.uid if owner is not None else "",
        present and pod.phase not in FINISHED_PHASES,
        pod.target_node,
        present,
        pod.ready,
        pod.ready_since_ms,
        at_ms,
    )


def owner_seen(rv: int, obj: ReplicaSet | DaemonSet | Deployment, kind: str, gone: bool) -> OwnerSeen:
    """What is counted of an owner."""
    if isinstance(obj, DaemonSet):
        return _daemons_seen(rv, obj, gone)
    if isinstance(obj, Deployment):
        return _deployment_seen(rv, obj, gone)
    status, owner = obj.status, controller_of(obj)
    return SetSeen(
        rv,
        obj.uid,
        obj.key,
        wanted=0 if gone else obj.replicas,
        generation=obj.generation,
        observed=status.observed_generation,
        created=status.replicas,
        ready=status.ready,
        updated=status.replicas,
        available=status.available,
        kind=kind,
        owner_uid=owner.uid if owner is not None else "",
    )


def _deployment_seen(rv: int, obj: Deployment, gone: bool) -> DeploymentSeen:
    status = obj.status
    progress = get_condition(status.conditions, PROGRESSING)
    return DeploymentSeen(
        rv,
        obj.uid,
        obj.key,
        wanted=0 if gone else obj.replicas,
        generation=obj.generation,
        observed=status.observed_generation,
        created=status.replicas,
        ready=status.ready,
        updated=status.updated,
        available=status.available,
        surge=max_surge(obj),
        unavailable=max_unavailable(obj),
        min_ready_s=obj.min_ready_seconds,
        stuck=progress is not None and progress.reason == TIMED_OUT,
    )


def _daemons_seen(rv: int, obj: DaemonSet, gone: bool) -> DaemonsSeen:
    status = obj.status
    return DaemonsSeen(
        rv,
        obj.uid,
        obj.key,
        wanted=0 if gone else status.desired,
        generation=obj.generation,
        observed=status.observed_generation,
        created=status.current,
        ready=status.ready,
        updated=status.updated,
        available=status.available,
        misplaced=status.misscheduled,
        strategy=obj.strategy,
        limit=obj.max_unavailable,
        surge=obj.max_surge,
        min_ready_s=obj.min_ready_seconds,
    )


async def _position(client: Client, resource: Watched[Any]) -> str:
    """The present resourceVersion."""
    async with aclosing(client.list_pages(cluster_resource(resource), limit=1)) as pages:
        async for page in pages:
            return page.rv
    raise AssertionError("a list has at least one page")


def _followed() -> tuple[Watched[Any], ...]:
    """The kinds that a demo looks at: pods, and all whose objects have a controller."""
    return (WATCHED["pods"], *(WATCHED[controller.resource] for controller in CONTROLLERS.values()))
