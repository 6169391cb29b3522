"""What the server writes into a CustomResourceDefinition: stored versions, conditions, and the mark of its deletion.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition (strategy.go, etcd.go).
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.text.times import rfc3339

Obj = dict[str, Any]

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"


def first_status(definition: Obj) -> Obj:
    """The status of a new definition: which version its objects will be stored in."""
    return {"conditions": [], "storedVersions": _storage_versions(definition)}


def with_stored_versions(definition: Obj) -> Obj:
    """`definition` with its storage version among those in which objects may be stored."""
    status = definition.get("status") or {}
    stored = status.get("storedVersions") or []
    added = [version for version in _storage_versions(definition) if version not in stored]
    return {**definition, "status": {**status, "storedVersions": [*stored, *added]}} if added else definition


def marked(definition: Obj, now_s: float) -> Obj:
    """`definition` at its first delete: held until its objects are gone."""
    finalizers = definition["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        finalizers = [*finalizers, FINALIZER]
    status = with_condition(
        definition.get("status") or {},
        "Terminating",
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
        rfc3339(now_s),
    )
    return {**definition, "metadata": {**definition["metadata"], "finalizers": finalizers}, "status": status}


def with_condition(status: Obj, type_: str, value: str, reason: str, message: str, now: str) -> Obj:
    """`status` with one condition; it keeps its time if its value does not change."""
    conditions = status.get("conditions") or []
    old = next((each for each in conditions if each.get("type") == type_), None)
    moved = old.get("lastTransitionTime", now) if old is not None and old.get("status") == value else now
    made = {"type": type_, "status": value, "lastTransitionTime": moved, "reason": reason, "message": message}
    if old is None:
        return {**status, "conditions": [*conditions, made]}
    return {**status, "conditions": [made if each is old else each for each in conditions]}


def _storage_versions(definition: Obj) -> list[str]:
    versions = (definition.get("spec") or {}).get("versions") or ()
    return [version["name"] for version in versions if version.get("storage") and version.get("name")]
