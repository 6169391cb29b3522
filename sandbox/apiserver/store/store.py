"""The store of all objects: one resourceVersion counter, immutable objects, events in commit order.

Single-threaded by design: every method runs to its end inside one event loop, so a method is a
transaction. An object handed in or out is never changed afterwards; a change is a new dict (inner
parts may be shared). Each committed change

1. gets the next resourceVersion,
2. is encoded once (`Stored.raw`, `Event.parts`); reads and all watchers share those bytes,
3. is appended to its kind's `Log`, from which watches are served,
4. is given to every subscriber, synchronously and in resourceVersion order. A subscriber may write to
   the store; the events of its writes are delivered after the one it is looking at.

The rules of the REST layer (validation, defaulting, admission, who may write status) are not here.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from oarlock.sandbox.apiserver.errors import OBJECT_MODIFIED, already_exists, conflict, not_found
from oarlock.sandbox.apiserver.kinds.kinds import KINDS, Kind
from oarlock.sandbox.apiserver.store.events import Event, EventType, Listing, Stored
from oarlock.sandbox.apiserver.store.history import EVENTS_MAX, Log
from oarlock.sandbox.apiserver.store.owner_index import Key, OwnerIndex
from oarlock.sandbox.apiserver.text.names import Naming
from oarlock.sandbox.apiserver.text.times import rfc3339
from oarlock.sandbox.apiserver.verbs import deletion
from oarlock.sandbox.apiserver.verbs.deletion import DeleteOptions

Obj = dict[str, Any]
Objs = list[Obj]
Subscriber = Callable[[Event], None]


class Store:
    """All objects of all kinds. `clock` gives unix seconds; `history_events_max` bounds each kind's log."""

    def __init__(
        self,
        kinds: Mapping[str, Kind] = KINDS,
        *,
        clock: Callable[[], float] = time.time,
        history_events_max: int = EVENTS_MAX,
        seed: int | None = None,
    ) -> None:
        self._history_events_max = history_events_max
        self.kinds = dict(kinds)
        self.kinds_changed = 0  # how often kinds were served or withdrawn
        self.clock = clock
        self.rv = 1
        self._objects: dict[str, dict[str, dict[str, Stored]]] = {name: {} for name in kinds}
        self.logs: dict[str, Log] = {name: Log(history_events_max) for name in kinds}
        self.owners = OwnerIndex()
        self._subscribers: tuple[Subscriber, ...] = ()
        self._undelivered: deque[Event] = deque()
        self._delivering = False
        self._naming = Naming(seed)

    # -- reading ---------------------------------------------------------------------------------

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        """The object, or None. `namespace` is "" for cluster-scoped kinds."""
        stored = self.stored(kind, namespace, name)
        return stored.obj if stored is not None else None

    def stored(self, kind: str, namespace: str, name: str) -> Stored | None:
        of_namespace = self._objects[kind].get(namespace)
        return of_namespace.get(name) if of_namespace is not None else None

    def require(self, kind: str, namespace: str, name: str) -> Stored:
        """The object. Raises ApiError 404 if there is none."""
        stored = self.stored(kind, namespace, name)
        if stored is None:
            entry = self.kinds[kind]
            raise not_found(entry.plural, entry.group, name)
        return stored

    def list(self, kind: str, namespace: str | None = None) -> Objs:
        """Every object of a kind, of one namespace or of all (None), by namespace and name."""
        return [stored.obj for _, stored in self.sorted(kind, namespace)]

    def sorted(self, kind: str, namespace: str | None = None) -> Listing:
        """((namespace, name), stored) in the order lists have."""
        spaces = self._objects[kind]
        names = sorted(spaces) if namespace is None else [namespace] if namespace in spaces else []
        return [((ns, name), of_ns[name]) for ns in names for of_ns in (spaces[ns],) for name in sorted(of_ns)]

    def count(self, kind: str, namespace: str | None = None) -> int:
        spaces = self._objects[kind]
        if namespace is not None:
            return len(spaces.get(namespace, ()))
        return sum(map(len, spaces.values()))

    def keys_in(self, namespace: str) -> Iterator[Key]:
        """Every object of namespaced kinds in `namespace`; safe to delete from while iterating."""
        for kind, spaces in self._objects.items():
            if self.kinds[kind].namespaced:
                for name in list(spaces.get(namespace, ())):
                    yield kind, namespace, name

    # -- kinds -----------------------------------------------------------------------------------

    def serve(self, kind: Kind) -> None:
        """Serve a kind from now on, or serve it in another way. Running watches of it end."""
        self.kinds[kind.name] = kind
        self.kinds_changed += 1
        if kind.name in self.logs:
            self.logs[kind.name].end_watches()
            return
        self._objects[kind.name] = {}
        log = self.logs[kind.name] = Log(self._history_events_max)
        log.floor_rv = self.rv

    def withdraw(self, name: str) -> None:
        """Serve a kind no longer; what there is of it is forgotten without an event."""
        for stored in [stored for _, stored in self.sorted(name)]:
            meta = stored.obj["metadata"]
            self.owners.change((name, meta.get("namespace", ""), meta["name"]), stored.obj, None)
        del self.kinds[name], self._objects[name]
        self.kinds_changed += 1
        self.logs.pop(name).end_watches()

    def kind_of(self, api_version: str, kind: str) -> Kind | None:
        """The kind an owner reference names, in any served version of its group; None if it is not served."""
        group = api_version.rpartition("/")[0]
        found = self.kinds.get(kind)
        if found is None or found.group != group:
            found = self.kinds.get(f"{kind}.{group}")
        return found

    # -- writing ---------------------------------------------------------------------------------

    def create(self, kind: str, obj: Obj) -> Obj:
        """Store a new object; fills uid, resourceVersion, creationTimestamp, generation and the name.

        Raises ApiError 409 AlreadyExists. The object returned is the stored one.
        """
        return self.create_stored(kind, obj).obj

    def create_stored(self, kind: str, obj: Obj, *, dry_run: bool = False) -> Stored:
        """As `create`. With `dry_run` nothing is stored; what would have been is returned."""
        entry = self.kinds[kind]
        meta = dict(obj["metadata"])
        namespace = meta.get("namespace", "") if entry.namespaced else ""
        of_namespace = self._objects[kind].setdefault(namespace, {})
        name = meta.get("name") or self._naming.name(meta.get("generateName", ""), of_namespace)
        if name in of_namespace:
            raise already_exists(entry.plural, entry.group, name)
        for absent in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            meta.pop(absent, None)
        meta["name"] = name
        meta["uid"] = self._naming.uid()
        meta["creationTimestamp"] = rfc3339(self.clock())
        if entry.has_generation:
            meta["generation"] = 1
        else:
            meta.pop("generation", None)
        if dry_run:
            made = {**obj, "metadata": meta}
            return Stored(made, orjson.dumps(made), self.rv)
        return self._commit("ADDED", entry, (namespace, name), {**obj, "metadata": meta}, None)

    def update(self, kind: str, obj: Obj, expected_rv: str | None = None) -> Obj:
        """Replace the object of this name. uid, creationTimestamp and generation are kept by the store.

        A write that changes nothing commits nothing. An object that is being deleted and that nothing
        holds any longer (see `deletion.may_leave`) leaves the store instead. Raises ApiError 404; 409 if
        `expected_rv` is given and the object has another resourceVersion.
        """
        return self.update_stored(kind, obj, expected_rv).obj

    def update_stored(self, kind: str, obj: Obj, expected_rv: str | None = None, *, dry_run: bool = False) -> Stored:
        """As `update`. With `dry_run` nothing is stored; what would have been is returned."""
        entry = self.kinds[kind]
        given = obj["metadata"]
        name = given["name"]
        namespace = given.get("namespace", "") if entry.namespaced else ""
        previous = self.require(kind, namespace, name)
        before = previous.obj["metadata"]
        if expected_rv is not None and expected_rv != before["resourceVersion"]:
            raise conflict(entry.plural, entry.group, name, OBJECT_MODIFIED)
        meta = dict(given)
        # A writer inside the server need not hand on the managers; an empty list is how to be rid of them.
        if not meta.setdefault("managedFields", before.get("managedFields")):
            del meta["managedFields"]
        meta.pop("selfLink", None)
        meta["resourceVersion"] = before["resourceVersion"]
        meta["uid"] = before["uid"]
        meta["creationTimestamp"] = before["creationTimestamp"]
        if entry.has_generation:
            # A deletion in `obj` has counted itself already, so an advance is kept.
            generation = max(before["generation"], meta.get("generation") or 0)
            spec, old_spec = obj.get("spec"), previous.obj.get("spec")
            if (
                spec is not old_spec and spec != old_spec
                if entry.custom is None
                else entry.custom.is_other_content(obj, previous.obj)
            ):
                generation = before["generation"] + 1
            meta["generation"] = generation
        changed = {**obj, "metadata": meta}
        if dry_run:
            return Stored(changed, orjson.dumps(changed), previous.rv)
        if deletion.may_leave(entry, changed):
            self._forget(entry, namespace, name, changed)
            return Stored(changed, orjson.dumps(changed), previous.rv)
        if changed == previous.obj:
            return previous
        return self._commit("MODIFIED", entry, (namespace, name), changed, previous)

    def delete(
        self, kind: str, namespace: str, name: str, options: DeleteOptions = deletion.UNSAID
    ) -> tuple[Obj, bool]:
        """Delete as the API does: grace, finalizers and propagation may keep the object for a while.

        Returns the object as it is now, or as it left, and whether it has left. Raises ApiError 404; 409
        when a precondition does not hold.
        """
        stored, gone = self.delete_stored(kind, namespace, name, options)
        return stored.obj, gone

    def delete_stored(self, kind: str, namespace: str, name: str, options: DeleteOptions) -> tuple[Stored, bool]:
        entry = self.kinds[kind]
        current = self.require(kind, namespace, name)
        step = deletion.plan(entry, current.obj, options, self.clock())
        if options.dry_run:
            return current, step.remove
        if step.write is not None:
            current = self._commit("MODIFIED", entry, (namespace, name), step.write, current)
        if step.remove and self.stored(kind, namespace, name) is current:
            return self._forget(entry, namespace, name, current.obj), True
        # Kept; or a subscriber has already taken it out on seeing the mark.
        return current, step.remove

    def remove(self, kind: str, namespace: str, name: str) -> Obj | None:
        """Remove the object at once, despite finalizers and grace. Returns it as it left; None if there is none."""
        stored = self.stored(kind, namespace, name)
        if stored is None:
            return None
        return self._forget(self.kinds[kind], namespace, name, stored.obj).obj

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Have every later event given to `subscriber`. Returns the call that ends it."""
        self._subscribers = (*self._subscribers, subscriber)

        def unsubscribe() -> None:
            self._subscribers = tuple(s for s in self._subscribers if s is not subscriber)

        return unsubscribe

    # -- inside ----------------------------------------------------------------------------------

    def _commit(
        self, type_: EventType, kind: Kind, where: tuple[str, str], obj: Obj, previous: Stored | None
    ) -> Stored:
        """Store `obj`, whose metadata nobody else may hold: the resourceVersion is written into it."""
        self.rv = rv = self.rv + 1
        obj["metadata"]["resourceVersion"] = str(rv)
        stored = Stored(obj, orjson.dumps(obj), rv)
        namespace, name = where
        self._objects[kind.name].setdefault(namespace, {})[name] = stored
        self.owners.change((kind.name, namespace, name), previous.obj if previous else None, obj)
        self._publish(Event(type_, kind, where, stored, previous, self.clock()))
        return stored

    def _forget(self, kind: Kind, namespace: str, name: str, last: Obj) -> Stored:
        of_namespace = self._objects[kind.name][namespace]
        previous = of_namespace.pop(name)
        if not of_namespace:
            del self._objects[kind.name][namespace]
        self.rv = rv = self.rv + 1
        obj = {**last, "metadata": {**last["metadata"], "resourceVersion": str(rv)}}
        stored = Stored(obj, orjson.dumps(obj), rv)
        self.owners.change((kind.name, namespace, name), previous.obj, None)
        self._publish(Event("DELETED", kind, (namespace, name), stored, previous, self.clock()))
        return stored

    def _publish(self, event: Event) -> None:
        self.logs[event.kind.name].append(event)
        if not self._subscribers:
            return
        self._undelivered.append(event)
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                current = self._undelivered.popleft()
                for subscriber in self._subscribers:
                    subscriber(current)
        finally:
            self._delivering = False
