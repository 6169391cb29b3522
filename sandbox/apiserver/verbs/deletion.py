"""What one DELETE does to one object. Pure: options, object and moment in, a `Step` out.

Follows upstream's BeforeDelete (staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go), the finalizer
rules of registry/generic/registry/store.go, the pod strategy's CheckGracefulDelete and the namespace
storage's Delete. The order matters: a delete first writes its intent (timestamp, grace, finalizers) and
removes only what nothing holds any longer, so a watch shows MODIFIED before DELETED.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from oarlock.sandbox.apiserver.custom import lifecycle
from oarlock.sandbox.apiserver.errors import FieldError, bad_request, conflict, invalid
from oarlock.sandbox.apiserver.kinds.kinds import Cascade, Kind
from oarlock.sandbox.apiserver.text.times import rfc3339, unix_seconds

Obj = dict[str, Any]

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
_COLLECTOR_FINALIZERS: Final = (ORPHAN, FOREGROUND)
_POLICIES: Final = ("Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """metav1.DeleteOptions. `grace_period_s` in seconds; None everywhere means not said."""

    grace_period_s: int | None = None
    propagation: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


UNSAID: Final = DeleteOptions()
NOW: Final = DeleteOptions(grace_period_s=0)


@dataclass(frozen=True, slots=True)
class Step:
    """`write`: the object to store first, or None. `remove`: whether it then leaves the store."""

    write: Obj | None
    remove: bool


def options_from(body: dict[str, Any]) -> DeleteOptions:
    """Options from a DELETE body or from query parameters turned into one. Raises ApiError (400, 422)."""
    grace = body.get("gracePeriodSeconds")
    orphan = body.get("orphanDependents")
    propagation = body.get("propagationPolicy")
    preconditions = body.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise bad_request("DeleteOptions.preconditions: expected an object")
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise bad_request("DeleteOptions.gracePeriodSeconds: expected an integer")
    if orphan is not None and not isinstance(orphan, bool):
        raise bad_request("DeleteOptions.orphanDependents: expected a boolean")
    for name in ("uid", "resourceVersion"):
        if not isinstance(preconditions.get(name), str | None):
            raise bad_request(f"DeleteOptions.preconditions.{name}: expected a string")
    errors = []
    if propagation is not None and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(FieldError.invalid("propagationPolicy", propagation, why))
    if propagation is not None and propagation not in _POLICIES:
        errors.append(FieldError.unsupported("propagationPolicy", propagation, [*_POLICIES, "nil"]))
    dry_run = body.get("dryRun") or []
    if dry_run not in ([], ["All"]):
        errors.append(FieldError.unsupported("dryRun", dry_run, ["All"]))
    if errors:
        raise invalid("DeleteOptions", "meta.k8s.io", "", errors)
    return DeleteOptions(
        grace_period_s=grace,
        propagation=propagation,
        orphan_dependents=orphan,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=bool(dry_run),
    )


def plan(kind: Kind, obj: Obj, options: DeleteOptions, now_s: float) -> Step:
    """What the DELETE of `obj` has to do. Raises ApiError 409 when a precondition does not hold."""
    _check_preconditions(kind, obj, options)
    if options.grace_period_s is not None and options.grace_period_s < 0:
        options = replace(options, grace_period_s=1)
    if kind.name == "Namespace":
        return _plan_namespace(obj, now_s)
    if kind.graceful:
        return _plan_graceful(kind, obj, options, now_s)
    meta = obj["metadata"]
    if kind.name == "CustomResourceDefinition" and not meta.get("deletionTimestamp"):
        obj = lifecycle.marked(obj, now_s)
        meta = obj["metadata"]
    finalizers = _finalizers_after(kind, meta, options)
    if not finalizers:
        return Step(None, True)
    return Step(_marked(obj, finalizers, now_s), False)


def may_leave(kind: Kind, obj: Obj) -> bool:
    """Whether `obj`, after an update, has nothing left that holds it: deleted, no finalizers, no grace.

    Upstream: ShouldDeleteDuringUpdate and its namespace variant.
    """
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return kind.name != "Namespace" or not (obj.get("spec") or {}).get("finalizers")


def _check_preconditions(kind: Kind, obj: Obj, options: DeleteOptions) -> None:
    meta = obj["metadata"]
    for what, asked, has, guess in (
        ("UID", options.uid, meta["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, meta["resourceVersion"], "modified"),
    ):
        if asked not in (None, has):
            why = f"the {what} in the precondition ({asked}) does not match the {what} in record ({has})."
            # Upstream names the kind here where other conflicts name the resource.
            raise conflict(kind.kind, kind.group, meta["name"], f"{why} The object might have been {guess}")


def _finalizers_after(kind: Kind, meta: dict[str, Any], options: DeleteOptions) -> list[str]:
    """The finalizers once the propagation policy has been written into them."""
    finalizers: list[str] = meta.get("finalizers") or []
    orphan = foreground = False
    if kind.cascade is not Cascade.UNSUPPORTED:
        if options.orphan_dependents is not None:
            orphan = options.orphan_dependents
        elif options.propagation is not None:
            orphan = options.propagation == "Orphan"
            foreground = options.propagation == "Foreground"
        else:
            said = next((f for f in finalizers if f in _COLLECTOR_FINALIZERS), None)
            orphan = said == ORPHAN or (said is None and kind.cascade is Cascade.ORPHAN)
            foreground = said == FOREGROUND
        finalizers = [f for f in finalizers if f not in _COLLECTOR_FINALIZERS]
    return finalizers + [ORPHAN] * orphan + [FOREGROUND] * foreground


def _marked(obj: Obj, finalizers: list[str], now_s: float) -> Obj:
    """`obj` of a kind without grace, being deleted and held by `finalizers`."""
    meta = dict(obj["metadata"])
    if "deletionGracePeriodSeconds" not in meta and meta.get("generation"):
        meta["generation"] += 1
    meta.setdefault("deletionTimestamp", rfc3339(now_s))
    meta["deletionGracePeriodSeconds"] = 0
    meta["finalizers"] = finalizers
    return {**obj, "metadata": meta}


def _plan_graceful(kind: Kind, obj: Obj, options: DeleteOptions, now_s: float) -> Step:
    meta = dict(obj["metadata"])
    if meta.get("deletionTimestamp"):
        current_s = meta.get("deletionGracePeriodSeconds") or 0
        asked_s = options.grace_period_s
        if current_s:
            if asked_s is None or asked_s >= current_s:
                return Step(None, False)  # under way already; a delete may only shorten the wait
            moved_s = unix_seconds(meta["deletionTimestamp"]) - current_s + asked_s
            meta["deletionTimestamp"] = rfc3339(moved_s)
            meta["deletionGracePeriodSeconds"] = current_s = asked_s
    else:
        current_s = _grace_s(obj, options)
        meta["deletionTimestamp"] = rfc3339(now_s + current_s)
        meta["deletionGracePeriodSeconds"] = current_s
        if meta.get("generation"):
            meta["generation"] += 1
    finalizers = _finalizers_after(kind, meta, options)
    if finalizers != (meta.get("finalizers") or []):
        meta["finalizers"] = finalizers
    changed = {**obj, "metadata": meta} if meta != obj["metadata"] else None
    return Step(changed, not finalizers and not current_s)


def _grace_s(pod: Obj, options: DeleteOptions) -> int:
    """How many seconds a pod gets to end; 0 where none of its containers can be running."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    asked_s = options.grace_period_s
    period_s = asked_s if asked_s is not None else spec.get("terminationGracePeriodSeconds", 0)
    return 1 if period_s < 0 else int(period_s)


def _plan_namespace(obj: Obj, now_s: float) -> Step:
    meta = obj["metadata"]
    held = bool((obj.get("spec") or {}).get("finalizers") or meta.get("finalizers"))
    if meta.get("deletionTimestamp"):
        return Step(None, not held)
    marked = {
        **obj,
        "metadata": {**meta, "deletionTimestamp": rfc3339(now_s)},
        "status": {**(obj.get("status") or {}), "phase": "Terminating"},
    }
    return Step(marked, not held)
