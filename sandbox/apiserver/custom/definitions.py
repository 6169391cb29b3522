"""The CustomResourceDefinitions of a store: accept their names, serve what they define, clean up behind them.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/controller (status/naming_controller.go,
establish/establishing_controller.go, finalizer/crd_finalizer.go). Names are decided, and the kind is served, with
the very event of the definition: a client that has the answer to its create may use the kind at once.

Wiring: `Definitions(store)`, then `start()` inside the running loop and `await stop()`.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.custom.kinds import DEFINITION, kind_of, store_name
from oarlock.sandbox.apiserver.custom.lifecycle import FINALIZER, with_condition
from oarlock.sandbox.apiserver.loops.background import StoreFollower, Worklist
from oarlock.sandbox.apiserver.store.events import Event
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.text.times import rfc3339
from oarlock.sandbox.apiserver.verbs.deletion import DeleteOptions

Obj = dict[str, Any]

_BACKGROUND: Final = DeleteOptions(propagation="Background")


class Definitions(StoreFollower):
    """Serves custom kinds. `collect()` does all pending clean-up at once (for tests)."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._leaving: Worklist[str] = Worklist("custom resource clean-up", self._clean_up)
        self._work = (self._leaving,)

    def collect(self) -> int:
        """Work until nothing is left to do."""
        return self._leaving.work()

    def _begin(self) -> None:
        for definition in self._store.list(DEFINITION):
            self._settle(definition)

    def _seen(self, event: Event) -> None:
        if event.kind.custom is not None:
            if event.type == "DELETED" and event.kind.custom.terminating:
                self._leaving.add(f"{event.kind.plural}.{event.kind.group}")
            return
        if event.kind.name != DEFINITION:
            return
        if event.type == "DELETED":
            self._gone(event.obj)
        else:
            self._settle(event.obj, event.old)

    # -- names and kinds --------------------------------------------------------------------------

    def _settle(self, definition: Obj, old: Obj | None = None) -> None:
        """Decide on the names, and serve the kind if they are its own."""
        current = self._store.get(DEFINITION, "", definition["metadata"]["name"])
        if current is None:
            return
        definition = current
        status = self._with_names(definition)
        if status != definition.get("status"):
            self._store.update(DEFINITION, {**definition, "status": status})
            return  # its event comes back here
        if _is(status, "Established"):
            was_serving = self._store.kinds.get(store_name(definition))
            if was_serving is None or old is None or _shape(definition) != _shape(old):
                self._store.serve(kind_of(definition))
        if definition["metadata"].get("deletionTimestamp"):
            self._leaving.add(definition["metadata"]["name"])

    def _with_names(self, definition: Obj) -> Obj:
        """The status that follows from which names other definitions have."""
        status = definition.get("status") or {}
        wanted = definition["spec"]["names"]
        clash = self._clash(definition)
        now = rfc3339(self._store.clock())
        if clash is None:
            status = {**status, "acceptedNames": wanted}
            status = with_condition(status, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
            if not _is(status, "Established"):
                why = "the initial names have been accepted"
                status = with_condition(status, "Established", "True", "InitialNamesAccepted", why, now)
            return status
        reason, message = clash
        status = with_condition(status, "NamesAccepted", "False", reason, message, now)
        if not _is(status, "Established"):
            why = "not all names are accepted"
            status = with_condition(status, "Established", "False", "NotAccepted", why, now)
        return status

    def _clash(self, definition: Obj) -> tuple[str, str] | None:
        """(reason, message) of a name that another definition of the group has; None if there is none."""
        spec, own = definition["spec"], definition["metadata"]["name"]
        resources: set[str | None] = set()
        kinds: set[str | None] = set()
        for other in self._store.list(DEFINITION):
            accepted = (other.get("status") or {}).get("acceptedNames") or {}
            if other["metadata"]["name"] == own or other["spec"]["group"] != spec["group"]:
                continue
            resources |= {accepted.get("plural"), accepted.get("singular"), *(accepted.get("shortNames") or ())}
            kinds |= {accepted.get("kind"), accepted.get("listKind")}
        given = spec["names"]
        for field, taken, names in (
            ("Plural", resources, [given["plural"]]),
            ("Singular", resources, [given["singular"]]),
            ("ShortNames", resources, given.get("shortNames") or []),
            ("Kind", kinds, [given["kind"]]),
            ("ListKind", kinds, [given["listKind"]]),
        ):
            for name in names:
                if name in taken:
                    return f"{field}Conflict", f'"{name}" is already in use'
        return None

    # -- the end ----------------------------------------------------------------------------------

    def _clean_up(self, name: str) -> None:
        """Delete the objects of a definition that is being deleted; once none is left, let it go."""
        definition = self._store.get(DEFINITION, "", name)
        if definition is None or not definition["metadata"].get("deletionTimestamp"):
            return
        finalizers = definition["metadata"].get("finalizers") or []
        kind = store_name(definition)
        if FINALIZER not in finalizers:
            return
        if _is(definition.get("status") or {}, "Established") and kind in self._store.kinds:
            for (namespace, object_name), stored in self._store.sorted(kind):
                if "deletionTimestamp" not in stored.obj["metadata"]:
                    self._store.delete(kind, namespace, object_name, _BACKGROUND)
            if self._store.count(kind):
                return  # the event of the last object's end brings us back
        left = [each for each in finalizers if each != FINALIZER]
        status = with_condition(
            definition.get("status") or {},
            "Terminating",
            "False",
            "InstanceDeletionCompleted",
            "removed all instances",
            rfc3339(self._store.clock()),
        )
        meta = {**definition["metadata"], "finalizers": left}
        self._store.update(DEFINITION, {**definition, "metadata": meta, "status": status})

    def _gone(self, definition: Obj) -> None:
        """Serve its kind no longer; another definition may now have the names."""
        if _is(definition.get("status") or {}, "Established") and store_name(definition) in self._store.kinds:
            self._store.withdraw(store_name(definition))
        for other in self._store.list(DEFINITION):
            if other["spec"]["group"] == definition["spec"]["group"]:
                self._settle(other)


def _is(status: Obj, condition: str) -> bool:
    return any(
        each.get("type") == condition and each.get("status") == "True" for each in status.get("conditions") or ()
    )


def _shape(definition: Obj) -> tuple[Any, ...]:
    """What of a definition the served kind depends on."""
    accepted = (definition.get("status") or {}).get("acceptedNames")
    return definition["spec"], accepted, bool(definition["metadata"].get("deletionTimestamp"))
