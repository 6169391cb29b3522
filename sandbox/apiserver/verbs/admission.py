"""Admission: a well-formed write may be refused for its namespace's sake, then by the checks that were registered.

Namespace rules follow upstream's NamespaceLifecycle
(staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import definition_terminating, forbidden, not_found
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.store.store import Store

Obj = dict[str, Any]
CreateCheck = Callable[[Store, Kind, Obj], None]
Completion = Callable[[Kind, Obj], Obj]

PROTECTED_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})


class Admission:
    """Checks of creates run in the order of registration; each raises ApiError to refuse."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._create_checks: list[CreateCheck] = []
        self._completions: list[Completion] = []

    def on_create(self, check: CreateCheck) -> None:
        self._create_checks.append(check)

    def on_completion(self, complete: Completion) -> None:
        """Have `complete` fill in what only the server knows, after all checks."""
        self._completions.append(complete)

    def complete(self, kind: Kind, obj: Obj) -> Obj:
        """A new object with what was registered for its kind. Raises ApiError 422."""
        for complete in self._completions:
            obj = complete(kind, obj)
        return obj

    def enter(self, kind: Kind, obj: Obj) -> None:
        """Before validation: raises ApiError 404 (no such namespace), 403 (it is going away) or 405 (the kind is)."""
        if kind.custom is not None and kind.custom.terminating:
            raise definition_terminating("create")
        if kind.namespaced:
            self._namespace_lives(kind, obj["metadata"])

    def create(self, kind: Kind, obj: Obj) -> None:
        """After validation: raises ApiError 403 (quota), so that a bad object is never told it is one too many."""
        for check in self._create_checks:
            check(self._store, kind, obj)

    def delete(self, kind: Kind, name: str) -> None:
        """Raises ApiError 403 for a namespace the cluster cannot do without."""
        if kind.name == "Namespace" and name in PROTECTED_NAMESPACES:
            raise forbidden(kind.plural, kind.group, name, "this namespace may not be deleted")

    def _namespace_lives(self, kind: Kind, meta: Obj) -> None:
        name = meta["namespace"]
        stored = self._store.stored("Namespace", "", name)
        if stored is None:
            raise not_found("namespaces", "", name)
        if "deletionTimestamp" in stored.obj["metadata"]:
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
            why = f"unable to create new content in namespace {name} because it is being terminated"
            raise forbidden(kind.plural, kind.group, meta.get("name", ""), why, [cause])
