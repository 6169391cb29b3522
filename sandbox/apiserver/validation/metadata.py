"""metadata: names, labels, annotations, owner references, finalizers, and what an update may not change.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.text import names

Obj = dict[str, Any]

ANNOTATIONS_BYTES_MAX: Final = 256 * 1024
IMMUTABLE: Final = "field is immutable"
_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", _ORPHAN, _FOREGROUND})
_EVENT_OWNERS: Final = frozenset({("v1", "Event"), ("events.k8s.io/v1", "Event")})


def metadata_errors(meta: Mapping[str, Any], namespaced: bool, check_name: names.Checker) -> Iterator[FieldError]:
    """What is wrong with the metadata of a new object. `name` may be absent if there is a generateName."""
    prefix = meta.get("generateName")
    if prefix:
        problems = names.generated_prefix(prefix, check_name)
        yield from (FieldError.invalid("metadata.generateName", prefix, problem) for problem in problems)
    name = meta.get("name")
    if name:
        yield from (FieldError.invalid("metadata.name", name, problem) for problem in check_name(name))
    elif not prefix:
        yield FieldError.required("metadata.name", "name or generateName is required")
    namespace = meta.get("namespace")
    if not namespaced:
        if namespace:
            yield FieldError.forbidden("metadata.namespace", "not allowed on this type")
    elif not namespace:
        yield FieldError.required("metadata.namespace")
    else:
        problems = names.dns_label(namespace)
        yield from (FieldError.invalid("metadata.namespace", namespace, problem) for problem in problems)
    yield from _common_errors(meta)


def metadata_update_errors(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[FieldError]:
    """What is wrong with replacing the metadata `old` by `new`."""
    if new is old:
        return
    for field in ("name", "namespace", "uid", "creationTimestamp"):
        value = new.get(field)
        if value and value != old.get(field):
            yield FieldError.invalid(f"metadata.{field}", value, IMMUTABLE)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        value = new.get(field)
        if value is not None and value != old.get(field):
            yield FieldError.invalid(f"metadata.{field}", value, f"{IMMUTABLE}; may only be changed via deletion")
    if old.get("deletionTimestamp"):
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{finalizer}"' for finalizer in added)
            yield FieldError.forbidden(
                "metadata.finalizers",
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}",
            )
    yield from _common_errors(new, old)


def _common_errors(meta: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> Iterator[FieldError]:
    """Rules of every write. What is the very same as in `old` has been checked before."""
    for field, check in _PARTS:
        value = meta.get(field)
        if value and (old is None or value is not old.get(field)):
            yield from check(value, f"metadata.{field}")


def label_errors(labels: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Bad label keys and values."""
    for key, value in labels.items():
        yield from (FieldError.invalid(path, key, problem) for problem in names.qualified_name(key))
        yield from (FieldError.invalid(path, value, problem) for problem in names.label_value(value))


def annotation_errors(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Bad annotation keys, or too much of them; values are free."""
    size = 0
    for key, value in annotations.items():
        yield from (FieldError.invalid(path, key, problem) for problem in names.qualified_name(key.lower()))
        size += len(key) + len(value)
    # Only texts near the limit are measured in bytes: no character has more than four.
    if size * 4 > ANNOTATIONS_BYTES_MAX:
        size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
        if size > ANNOTATIONS_BYTES_MAX:
            yield FieldError.too_long(path, ANNOTATIONS_BYTES_MAX)


def owner_errors(owners: list[Obj], path: str) -> Iterator[FieldError]:
    """Incomplete owner references, and more than one that controls."""
    controller: Obj | None = None
    for owner in owners:
        version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
        if not version.rpartition("/")[2]:
            yield FieldError.invalid(f"{path}.apiVersion", version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield FieldError.invalid(f"{path}.{field}", "", "must not be empty")
        if (version, kind) in _EVENT_OWNERS:
            yield FieldError.invalid(path, owner, f"{version}, Kind={kind} is disallowed from being an owner")
        if owner.get("controller"):
            if controller is not None:
                first, second = (f"{o.get('kind')}/{o.get('name')}" for o in (controller, owner))
                yield FieldError.invalid(
                    path,
                    owners,
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {first} and {second}',
                )
            controller = owner


def finalizer_errors(finalizers: list[str], path: str) -> Iterator[FieldError]:
    """Names that are neither standard nor qualified, and two deletion policies at once."""
    for finalizer in finalizers:
        problems = names.qualified_name(finalizer)
        yield from (FieldError.invalid(path, finalizer, problem) for problem in problems)
        if not problems and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            yield FieldError.invalid(
                path, finalizer, "name is neither a standard finalizer name nor is it fully qualified"
            )
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        yield FieldError.invalid(path, finalizers, f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set")


_PARTS: Final = (
    ("labels", label_errors),
    ("annotations", annotation_errors),
    ("ownerReferences", owner_errors),
    ("finalizers", finalizer_errors),
)
