"""Deletion of namespaces: everything in one is deleted, then the namespace itself.

Upstream: pkg/controller/namespace/deletion/namespaced_resources_deleter.go. Creates in a terminating namespace
and deletes of the protected ones are refused by `admission`; that a deleted namespace is Terminating is written
by `deletion`. This part empties it and then takes the finalizer `kubernetes` away, upon which it leaves.

Wiring: `NamespaceCollector(store)`, then `start()` inside the running loop and `await stop()`.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.loops.background import StoreFollower, Worklist
from oarlock.sandbox.apiserver.store.events import Event
from oarlock.sandbox.apiserver.store.owner_index import Key
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.verbs.deletion import DeleteOptions

Obj = dict[str, Any]

FINALIZER: Final = "kubernetes"
_BACKGROUND: Final = DeleteOptions(propagation="Background")


class NamespaceCollector(StoreFollower):
    """Empties terminating namespaces in the background; `collect()` does all pending work at once."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._contents: Worklist[Key] = Worklist("namespace contents", self._delete_content)
        self._namespaces: Worklist[str] = Worklist("namespaces", self._finish)
        self._work = (self._contents, self._namespaces)

    def collect(self) -> None:
        """Work until nothing is left to do."""
        while self._contents.work() + self._namespaces.work():
            pass

    def _seen(self, event: Event) -> None:
        if event.kind.name == "Namespace":
            was_leaving = event.old is not None and "deletionTimestamp" in event.old["metadata"]
            if event.type == "MODIFIED" and not was_leaving and self._is_leaving(event.name):
                self._contents.add_all(self._store.keys_in(event.name))
                self._namespaces.add(event.name)
        elif event.namespace and event.type != "MODIFIED" and self._is_leaving(event.namespace):
            if event.type == "DELETED":
                self._namespaces.add(event.namespace)
            else:  # nothing may stay behind, however it got in
                self._contents.add((event.kind.name, event.namespace, event.name))

    def _is_leaving(self, name: str) -> bool:
        namespace = self._store.get("Namespace", "", name)
        return namespace is not None and "deletionTimestamp" in namespace["metadata"]

    def _delete_content(self, key: Key) -> None:
        obj = self._store.get(*key)
        if obj is not None and "deletionTimestamp" not in obj["metadata"]:
            self._store.delete(*key, _BACKGROUND)

    def _finish(self, name: str) -> None:
        namespace = self._store.get("Namespace", "", name)
        if namespace is None or not self._is_leaving(name):
            return
        if any(True for _ in self._store.keys_in(name)):
            return  # the event of the last object's end brings us back
        spec = namespace.get("spec") or {}
        left = [finalizer for finalizer in spec.get("finalizers") or () if finalizer != FINALIZER]
        self._store.update("Namespace", {**namespace, "spec": {**spec, "finalizers": left}})
