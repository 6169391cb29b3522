"""A copy of what the turns over an owner read, and an API over it that turns write to.

There is no connection here: whatever a turn does, it does to dicts. The rules of the API server are kept as far as
turns rest on them: names that are taken, UIDs and resourceVersions that have to match, generations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec
import orjson

from oarlock.cluster.answer import Answer
from oarlock.cluster.http.frames import WatchEvent
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects.selector import LabelSelector
from oarlock.controllers.objects.wire_parts import rfc3339
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.pods.events import Event
from oarlock.controllers.registry import WATCHED
from oarlock.sandbox.apiserver.errors import OBJECT_MODIFIED, ApiError, already_exists, conflict, not_found
from oarlock.sandbox.apiserver.patches import apply_merge_patch, apply_strategic_patch, schema_of
from oarlock.workers.turn.steps import Grant, Listed, Write

Obj = dict[str, Any]
Place = tuple[str, str, str]
"""Resource, namespace and name."""
PLANNED = "planned-"
"""How the UIDs of objects begin that the plan has created."""
T = TypeVar("T")


class ClusterCopy:
    """``wall_ms``: the time by which objects are stamped. Objects are never changed in place."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._wall_ms, self.rv = wall_ms, 0
        self.objects: dict[Place, Obj] = {}
        self._happened: list[tuple[str, WatchEvent]] = []

    def load(self, resource: str, objects: Iterable[Obj]) -> None:
        """Have these, as a list of the API brought them."""
        kind = WATCHED[resource]
        for each in objects:
            self.keep(resource, {**each, "apiVersion": kind.api_version, "kind": kind.kind})

    def of(self, resource: str) -> list[Obj]:
        """All objects of a resource."""
        return [obj for place, obj in self.objects.items() if place[0] == resource]

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        return self.objects.get((resource, namespace, name))

    def keep(self, resource: str, obj: Obj) -> Obj:
        """Create or replace an object."""
        self.rv += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.rv)}}
        place = _place(resource, obj)
        self._tell("MODIFIED" if place in self.objects else "ADDED", resource, obj)
        self.objects[place] = obj
        return obj

    def remove(self, resource: str, obj: Obj) -> None:
        """It has gone."""
        self.rv += 1
        gone = self.objects.pop(_place(resource, obj))
        self._tell("DELETED", resource, {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.rv)}})

    def happened(self) -> list[tuple[str, WatchEvent]]:
        """The watch events since the last call, in order, each with its resource."""
        found, self._happened = self._happened, []
        return found

    def _tell(self, type_: str, resource: str, obj: Obj) -> None:
        self._happened.append((resource, WatchEvent(type_, str(self.rv), orjson.dumps(obj))))

    # -- writes ------------------------------------------------------------------------------------------------------

    def write(self, write: Write) -> Answer:
        """Carry it out, or say why not, as the API server would."""
        try:
            return self._carry_out(write)
        except ApiError as error:
            return Answer(error.code, msgspec.json.encode(error.status()))

    def _carry_out(self, write: Write) -> Answer:
        kind = WATCHED[write.resource]
        live = self.objects.get((write.resource, write.namespace, write.name))
        if write.verb == "create":
            if live is not None:
                raise already_exists(kind.plural, kind.group, write.name)
            return Answer(201, orjson.dumps(self.keep(write.resource, self._new(write))))
        if live is None:
            raise not_found(kind.plural, kind.group, write.name)
        patch: Obj = orjson.loads(write.body) if write.body else {}
        named = patch.get("metadata", {})
        uid, rv = write.uid or named.get("uid", ""), write.rv or named.get("resourceVersion", "")
        meta = live["metadata"]
        if (uid and uid != meta["uid"]) or (rv and rv != meta["resourceVersion"]):
            raise conflict(kind.plural, kind.group, write.name, OBJECT_MODIFIED)
        if write.verb == "delete":
            return self._delete(write.resource, live)
        return self._change(write, live, patch)

    def _new(self, write: Write) -> Obj:
        body: Obj = orjson.loads(write.body)
        meta = {
            **body["metadata"],
            "namespace": write.namespace,
            "uid": f"{PLANNED}{self.rv + 1}",
            "creationTimestamp": rfc3339(self._wall_ms()),
            "generation": 1,
        }
        kind = WATCHED[write.resource]
        status = {"status": {"phase": "Pending"}} if write.resource == "pods" else {}
        return {**body, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **status}

    def _delete(self, resource: str, live: Obj) -> Answer:
        meta = live["metadata"]
        waits = resource == "pods" or meta.get("finalizers")
        if not waits:
            self.remove(resource, live)
        elif not meta.get("deletionTimestamp"):
            live = self.keep(resource, {**live, "metadata": {**meta, "deletionTimestamp": rfc3339(self._wall_ms())}})
        return Answer(200, orjson.dumps(live))

    def _change(self, write: Write, live: Obj, patch: Obj) -> Answer:
        kind = WATCHED[write.resource].kind
        if write.verb == "patch":
            after = apply_strategic_patch(live, patch, schema_of(kind))
        else:
            after = apply_merge_patch(live, patch)
        if write.verb == "status":
            after = {**after, "spec": live.get("spec")}
        meta = after["metadata"] = {**after["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
        if after == live:
            return Answer(200, orjson.dumps(live))
        if after.get("spec") != live.get("spec") and "generation" in meta:
            meta["generation"] += 1
        return Answer(200, orjson.dumps(self.keep(write.resource, after)))


class CopyApi:
    """The API as an engine uses it (``workers.turn.engine.api.KubeApi``), over the copy. ``carry_out`` answers the
    writes of a step; ``told`` is shown the events of a turn.
    """

    is_proven = True

    def __init__(
        self,
        copy: ClusterCopy,
        carry_out: Callable[[tuple[Write, ...]], list[Answer]],
        told: Callable[[Event], None],
    ) -> None:
        self._copy, self._carry_out, self._told = copy, carry_out, told

    def read(self, resource: str, namespace: str, names: tuple[str, ...]) -> Future[list[Answer]]:
        return _arrived([self._read(resource, namespace, name) for name in names])

    def _read(self, resource: str, namespace: str, name: str) -> Answer:
        found, kind = self._copy.get(resource, namespace, name), WATCHED[resource]
        if found is None:
            return Answer(404, msgspec.json.encode(not_found(kind.plural, kind.group, name).status()))
        return Answer(200, orjson.dumps(found))

    def list_live(self, resource: str, namespace: str, selector: LabelSelector | None = None) -> Future[Listed]:
        meant = [each for each in self._copy.of(resource) if each["metadata"]["namespace"] == namespace]
        if selector is not None:
            meant = [each for each in meant if selector.matches(each["metadata"].get("labels") or {})]
        items = [orjson.dumps(each) for each in meant]
        return _arrived(Listed(str(self._copy.rv), items))

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        return _arrived(self._carry_out(writes))

    def tell(self, owner: Claimer, owner_rv: str, flavour: Flavour, events: Iterable[Event]) -> None:
        for each in events:
            self._told(each)

    def reserve(self, count: int, behind: int = 0) -> Grant:
        return Grant(count, 0)

    def probe(self) -> bool:
        return True

    def close(self) -> None:
        """There is nothing to close."""


def _place(resource: str, obj: Obj) -> Place:
    meta = obj["metadata"]
    return resource, meta.get("namespace", ""), meta["name"]


def _arrived(answer: T) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(answer)
    return future
