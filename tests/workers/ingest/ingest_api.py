"""A scripted API server for the ingestor's tests: a complete history, and streams that do what the test says.

Nothing runs by itself. ``ScriptedSource.visible`` says up to which resourceVersion its streams have arrived.
"""

from __future__ import annotations

import random
from concurrent.futures import Future
from typing import Any

import orjson

from oarlock.cluster.answer import Answer
from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.lease import HeldLease, LeaseError, LeaseSpec, Swap
from oarlock.cluster.listing import Page
from oarlock.controllers.registry import WATCHED
from oarlock.workers.epoch.fleet_lease import Swapped
from oarlock.workers.ingest.lister_watcher import End, Ending

PODS, REPLICASETS = "pods", "replicasets"


def pod_json(
    namespace: str,
    name: str,
    uid: str,
    *,
    labels: dict[str, str],
    owner: str = "",
    owner_uid: str = "",
    restarts: int = 0,
    deleting: bool = False,
) -> dict[str, Any]:
    """A pod; ``owner``: name of its ReplicaSet."""
    meta: dict[str, Any] = {"namespace": namespace, "name": name, "uid": uid, "labels": labels}
    if owner:
        ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner_uid, "controller": True}
        meta["ownerReferences"] = [ref]
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    statuses = [{"name": "c", "restartCount": restarts}]
    return {"metadata": meta, "spec": {}, "status": {"phase": "Running", "containerStatuses": statuses}}


def replicaset_json(
    namespace: str, name: str, uid: str, *, labels: dict[str, str], replicas: int = 1
) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"namespace": namespace, "name": name, "uid": uid}, "spec": spec}


class ScriptedApi:
    """Objects of both resources under one counter, with their whole history."""

    def __init__(self, first_rv: int = 7) -> None:
        self.rv = first_rv
        self.events: dict[str, list[tuple[int, str, str, bytes]]] = {PODS: [], REPLICASETS: []}
        self.objects: dict[str, dict[str, dict[str, Any]]] = {PODS: {}, REPLICASETS: {}}
        self.floor: dict[str, int] = {PODS: 0, REPLICASETS: 0}
        """A watch from below is answered 410."""
        self.refuses_the_future = True
        """Whether a watch from a resourceVersion not reached yet is answered 410; else it is silent."""

    def put(self, resource: str, obj: dict[str, Any]) -> int:
        """Create or replace. Returns the resourceVersion."""
        key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        return self._commit(resource, "MODIFIED" if key in self.objects[resource] else "ADDED", key, obj)

    def delete(self, resource: str, key: str) -> int:
        return self._commit(resource, "DELETED", key, self.objects[resource][key])

    def _commit(self, resource: str, kind: str, key: str, obj: dict[str, Any]) -> int:
        self.rv += 1
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.rv)}}
        if kind == "DELETED":
            del self.objects[resource][key]
        else:
            self.objects[resource][key] = stored
        self.events[resource].append((self.rv, kind, key, orjson.dumps(stored)))
        return self.rv

    def restore(self, rv: int) -> None:
        """Go back, as after a restore of etcd's backup: later history never was."""
        for resource, events in self.events.items():
            self.events[resource] = [event for event in events if event[0] <= rv]
            self.objects[resource] = {key: orjson.loads(raw) for key, raw in self.raw_at(resource, rv).items()}
        self.rv = rv

    def raw_at(self, resource: str, rv: int) -> dict[str, bytes]:
        """Key -> JSON of every object there was at a resourceVersion."""
        found: dict[str, bytes] = {}
        for at, kind, key, raw in self.events[resource]:
            if at > rv:
                break
            found.pop(key, None)
            if kind != "DELETED":
                found[key] = raw
        return found

    def cached_at(self, resource: str, rv: int) -> dict[str, tuple[str, bytes]]:
        """Key -> (resourceVersion, blob): what the cache must be at this watermark."""
        kind = WATCHED[resource]
        found = {}
        for key, raw in self.raw_at(resource, rv).items():
            at, obj = kind.from_json(raw)
            found[key] = at, kind.encode(obj)
        return found


class ScriptedWatch:
    """Events after ``rv``, as far as its source has become visible."""

    def __init__(self, source: ScriptedSource, rv: str) -> None:
        self._source, self._at = source, int(rv)
        self._index = 0
        self.cut: End | None = None
        self.extra: list[WatchEvent] = []
        self.closed = False
        self.paced: list[bool] = []

    def take(self, most: int) -> list[WatchEvent]:
        api, resource = self._source.api, self._source.resource
        if self.cut is not None or self._expired():
            return []
        found, self.extra = self.extra[:most], self.extra[most:]
        for rv, kind, _, raw in api.events[resource]:
            if self._at < rv <= self._source.visible and len(found) < most:
                found.append(WatchEvent(kind, str(rv), raw))
                self._at = rv
        if len(found) < most and self._source.bookmarks and self._source.visible > self._at:
            self._at = self._source.visible
            found.append(WatchEvent("BOOKMARK", str(self._at), b"{}"))
        return found

    def _expired(self) -> bool:
        api = self._source.api
        ahead = self._at > api.rv and api.refuses_the_future
        return self._source.refuses or self._at < api.floor[self._source.resource] or ahead

    def end(self) -> End | None:
        if self.cut is None and self._expired():
            self.cut = End(Ending.EXPIRED, "410")
        return self.cut

    def close(self) -> None:
        self.closed = True

    def pace(self, awaited: bool) -> None:
        self.paced.append(awaited)


class ScriptedPages:
    """The list as it was when it was asked for."""

    def __init__(self, source: ScriptedSource, limit: int) -> None:
        self._source = source
        self.closed = False
        self.cut: End | None = None
        self._limit = min(limit, source.page_items)
        self._begin()

    def _begin(self) -> None:
        api = self._source.api
        self._rv = str(api.rv)
        items = [raw for _, raw in sorted(api.raw_at(self._source.resource, api.rv).items())]
        self._pages = [tuple(items[at : at + self._limit]) for at in range(0, len(items), self._limit)] or [()]
        self._next = 0

    def begin_afresh(self) -> None:
        """As after a 410 between two pages."""
        self._begin()

    def take(self, most: int) -> list[Page]:
        if self.cut is not None or not self._source.answers or self._next == len(self._pages):
            return []
        at, self._next = self._next, self._next + 1
        return [Page(self._rv, self._pages[at], first=at == 0, last=at == len(self._pages) - 1)]

    def end(self) -> End | None:
        return self.cut or (End(Ending.CLOSED) if self._next == len(self._pages) else None)

    def close(self) -> None:
        self.closed = True


class ScriptedSource:
    """One ingestor's way to one resource."""

    def __init__(self, api: ScriptedApi, resource: str, *, page_items: int = 3) -> None:
        self.api, self.resource, self.page_items = api, resource, page_items
        self.visible = api.rv
        self.answers = True
        self.refuses = False
        """Whether each of its watches is answered 410: the server's history is shorter than the fleet is behind."""
        self.bookmarks = False
        self.heard = 0
        self.watched_from: list[str] = []
        self.lists = 0
        self.watching: ScriptedWatch | None = None
        self.listing: ScriptedPages | None = None
        self.refusal: End | None = None
        """How every list ends, where one is set."""

    def heard_ms(self) -> int:
        return self.heard

    def watch(self, rv: str) -> ScriptedWatch:
        self.watched_from.append(rv)
        self.watching = ScriptedWatch(self, rv)
        return self.watching

    def pages(self, limit: int) -> ScriptedPages:
        self.lists += limit > 1
        self.listing = ScriptedPages(self, limit)
        self.listing.cut = self.refusal
        return self.listing

    def catch_up(self) -> None:
        self.visible = self.api.rv

    def cut(self, end: End) -> None:
        """End the watch that runs, if one does."""
        if self.watching is not None:
            self.watching.cut = end


class ScriptedLease:
    """A Lease by compare-and-swap. Answers are there at once, unless told otherwise."""

    def __init__(self, api: ScriptedApi) -> None:
        self._api = api
        self.held: HeldLease | None = None
        self.reads = self.swaps = 0
        self.reachable = True
        self.lose_answers = 0
        """So many of the next swaps are made, and their answers lost."""
        self.refuse = False
        self.delayed: list[tuple[Future[Any], Any]] | None = None
        """Where it is a list, answers wait in it until ``deliver``."""

    def deliver(self) -> None:
        assert self.delayed is not None
        waiting, self.delayed = self.delayed, []
        for future, result in waiting:
            future.set_result(result)

    def read(self) -> Future[HeldLease | None]:
        self.reads += 1
        if not self.reachable:
            future: Future[HeldLease | None] = Future()
            future.set_exception(LeaseError("cannot read Lease"))
            return future
        return self._answer(self.held)

    def swap(self, before: HeldLease | None, after: LeaseSpec) -> Future[Swapped]:
        self.swaps += 1
        if not self.reachable:
            return self._answer((Swap.UNKNOWN, None, Answer(0)))
        if self.refuse:
            return self._answer((Swap.REFUSED, None, Answer(403, error="forbidden")))
        now = self.held.resource_version if self.held is not None else None
        if now != (before.resource_version if before is not None else None):
            return self._answer((Swap.LOST, None, Answer(409)))
        self._api.rv += 1
        self.held = HeldLease(str(self._api.rv), after, b"{}")
        if self.lose_answers:
            self.lose_answers -= 1
            return self._answer((Swap.UNKNOWN, None, Answer(0)))
        return self._answer((Swap.WON, self.held, Answer(200)))

    def _answer(self, result: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.delayed is None:
            future.set_result(result)
        else:
            self.delayed.append((future, result))
        return future


class RandomCluster:
    """Random changes of a small cluster: owners, owned pods, orphans, labels that come and go."""

    def __init__(self, api: ScriptedApi, rng: random.Random) -> None:
        self.api, self._rng, self._count = api, rng, 0

    def change(self) -> None:
        """One commit."""
        rng, api = self._rng, self.api
        resource = rng.choice((PODS, PODS, PODS, REPLICASETS))
        objects = api.objects[resource]
        if objects and rng.random() < 0.25:
            api.delete(resource, rng.choice(sorted(objects)))
            return
        if objects and rng.random() < 0.4:
            self._alter(resource, objects[rng.choice(sorted(objects))])
            return
        self._count += 1
        namespace, app = rng.choice("xy"), rng.choice("abc")
        if resource == REPLICASETS:
            name = f"{app}{rng.randrange(3)}"
            api.put(resource, replicaset_json(namespace, name, f"rs{self._count}", labels={"app": app}))
            return
        owner = self._owner(namespace)
        about = {"owner": owner["metadata"]["name"], "owner_uid": owner["metadata"]["uid"]} if owner else {}
        name = f"p{rng.randrange(12)}"
        api.put(resource, pod_json(namespace, name, f"pod{self._count}", labels={"app": app}, **about))

    def _owner(self, namespace: str) -> dict[str, Any] | None:
        owners = [rs for key, rs in sorted(self.api.objects[REPLICASETS].items()) if key.startswith(f"{namespace}/")]
        return self._rng.choice(owners) if owners and self._rng.random() < 0.6 else None

    def _alter(self, resource: str, obj: dict[str, Any]) -> None:
        self._count += 1
        if resource == REPLICASETS:
            self.api.put(resource, {**obj, "spec": {**obj["spec"], "replicas": self._count}})
            return
        meta = {**obj["metadata"], "labels": {"app": self._rng.choice("abc")}}
        if self._rng.random() < 0.3:
            meta.pop("ownerReferences", None)
        statuses = [{"name": "c", "restartCount": self._count}]
        self.api.put(resource, {**obj, "metadata": meta, "status": {**obj["status"], "containerStatuses": statuses}})
