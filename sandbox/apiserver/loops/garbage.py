"""The garbage collector: dependents go when their owners are gone, in the manner the delete asked for.

Upstream: pkg/controller/garbagecollector/garbagecollector.go (attemptToDeleteItem, classifyReferences,
processDeletingDependentsItem, orphanDependents). An owner is gone if no object of that kind, name *and uid*
exists. Driven by the store's events and its index of dependents; nothing is ever scanned.

Wiring: `GarbageCollector(store)`, then `start()` inside the running loop and `await stop()`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from oarlock.sandbox.apiserver.loops.background import StoreFollower, Worklist
from oarlock.sandbox.apiserver.store.events import Event
from oarlock.sandbox.apiserver.store.owner_index import Key
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.verbs.deletion import FOREGROUND, ORPHAN, DeleteOptions

Obj = dict[str, Any]

_ORPHANS_MAX: Final = 200  # dependents released in one go


class Owner(Enum):
    """What an owner reference points at."""

    SOLID = "solid"  # it is there, or we cannot tell: keep the dependent
    WAITING = "waiting"  # in foreground deletion: it waits for its dependents to go first
    GONE = "gone"  # not there, or another object under its name


class GarbageCollector(StoreFollower):
    """Collects in the background; `collect()` does all pending work at once (for tests)."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._keys: Worklist[Key] = Worklist("garbage collector", self._look)
        self._work = (self._keys,)

    def collect(self) -> int:
        """Work until nothing is left to do. Returns how many keys were looked at."""
        return self._keys.work()

    # -- events ----------------------------------------------------------------------------------

    def _seen(self, event: Event) -> None:
        meta = event.obj["metadata"]
        refs = meta.get("ownerReferences")
        old_refs = event.old["metadata"].get("ownerReferences") if event.old is not None else None
        if event.type == "DELETED":
            self._keys.add_all(self._store.owners.dependents(meta["uid"]))
            self._add_waiting_owners(refs or (), event.namespace)
            return
        key = (event.kind.name, event.namespace, event.name)
        new_refs = refs if refs is not old_refs and refs != old_refs else None
        if any(self._state(ref, event.namespace) is not Owner.SOLID for ref in new_refs or ()):
            self._keys.add(key)
        if old_refs and refs is not old_refs:
            self._add_waiting_owners(old_refs, event.namespace)
        if meta.get("deletionTimestamp") and event.type == "MODIFIED":
            finalizers = meta.get("finalizers") or ()
            if ORPHAN in finalizers:
                self._keys.add(key)
            elif FOREGROUND in finalizers:
                self._keys.add(key)
                if event.old is not None and not _waits_for_dependents(event.old):
                    self._keys.add_all(self._store.owners.dependents(meta["uid"]))

    def _add_waiting_owners(self, refs: Iterable[Obj], namespace: str) -> None:
        """Owners that may have waited for the dependent that held these references."""
        for ref in refs:
            if self._state(ref, namespace) is Owner.WAITING:
                key = self._owner_key(ref, namespace)
                if key is not None:
                    self._keys.add(key)

    def _state(self, ref: Obj, namespace: str) -> Owner:
        key = self._owner_key(ref, namespace)
        if key is None:
            return Owner.SOLID
        owner = self._store.get(*key)
        if owner is None or owner["metadata"]["uid"] != ref["uid"]:
            return Owner.GONE
        return Owner.WAITING if _waits_for_dependents(owner) else Owner.SOLID

    def _owner_key(self, ref: Obj, namespace: str) -> Key | None:
        """The key that the owner would have; None for a kind that is not served or cannot own from there."""
        kind = self._store.kind_of(ref["apiVersion"], ref["kind"])
        if kind is None or (kind.namespaced and not namespace):
            return None
        return kind.name, namespace if kind.namespaced else "", ref["name"]

    # -- work ------------------------------------------------------------------------------------

    def _look(self, key: Key) -> None:
        obj = self._store.get(*key)
        if obj is None:
            return
        meta = obj["metadata"]
        if meta.get("deletionTimestamp"):
            finalizers = meta.get("finalizers") or ()
            if ORPHAN in finalizers:
                self._orphan_dependents(key, obj)
            elif FOREGROUND in finalizers and not self._is_blocked(meta["uid"]):
                self._drop_finalizer(key[0], obj, FOREGROUND)
            return
        refs = meta.get("ownerReferences") or []
        if refs:
            self._delete_unless_owned(key, obj, refs)

    def _delete_unless_owned(self, key: Key, obj: Obj, refs: list[Obj]) -> None:
        states = [self._state(ref, key[1]) for ref in refs]
        if Owner.SOLID in states:
            kept = [ref for ref, state in zip(refs, states, strict=True) if state is Owner.SOLID]
            if len(kept) < len(refs):
                self._store.update(key[0], _with_owners(obj, kept))
            return
        meta = obj["metadata"]
        finalizers = meta.get("finalizers") or ()
        policy = "Background"
        if Owner.WAITING in states and (dependents := self._store.owners.dependents(meta["uid"])):
            if any(_is_waiting(self._store.get(*dependent)) for dependent in dependents):
                # A circle of owners would wait for itself for ever.
                unblocked = [{**ref, "blockOwnerDeletion": False} for ref in refs]
                self._store.update(key[0], _with_owners(obj, unblocked))
            policy = "Foreground"
        elif ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers:
            policy = "Foreground"
        self._store.delete(*key, DeleteOptions(propagation=policy, uid=meta["uid"]))

    def _is_blocked(self, uid: str) -> bool:
        """Whether a dependent must be gone before its owner (blockOwnerDeletion)."""
        for dependent in self._store.owners.each(uid):
            obj = self._store.get(*dependent)
            if obj is not None and any(
                ref["uid"] == uid and ref.get("blockOwnerDeletion")
                for ref in obj["metadata"].get("ownerReferences") or ()
            ):
                return True
        return False

    def _orphan_dependents(self, key: Key, owner: Obj) -> None:
        uid = owner["metadata"]["uid"]
        for dependent in self._store.owners.dependents(uid, _ORPHANS_MAX):
            obj = self._store.get(*dependent)
            if obj is not None:
                refs = obj["metadata"].get("ownerReferences") or ()
                self._store.update(dependent[0], _with_owners(obj, [r for r in refs if r["uid"] != uid]))
        if self._store.owners.count(uid):
            self._keys.add(key)
        else:
            self._drop_finalizer(key[0], owner, ORPHAN)

    def _drop_finalizer(self, kind: str, obj: Obj, finalizer: str) -> None:
        meta = obj["metadata"]
        left = [name for name in meta.get("finalizers") or () if name != finalizer]
        self._store.update(kind, {**obj, "metadata": {**meta, "finalizers": left}})


def _waits_for_dependents(obj: Obj) -> bool:
    meta = obj["metadata"]
    return bool(meta.get("deletionTimestamp")) and FOREGROUND in (meta.get("finalizers") or ())


def _is_waiting(obj: Obj | None) -> bool:
    return obj is not None and _waits_for_dependents(obj)


def _with_owners(obj: Obj, refs: list[Obj]) -> Obj:
    meta = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
    if refs:
        meta["ownerReferences"] = refs
    return {**obj, "metadata": meta}
