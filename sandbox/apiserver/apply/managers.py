"""metadata.managedFields: which manager set which field, kept by every tracked write.

Upstream: apimachinery/pkg/util/managedfields and structured-merge-diff's merge/update.go.
Pods, nodes, events and leases are written thousands of times a second here, and hardly ever applied. So their managers
are tracked from the first apply on, which counts what stood before as `before-first-apply` (upstream:
skipnonapplied.go; it tracked every kind so before 1.18). All other kinds are tracked from their creation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from oarlock.sandbox.apiserver.apply.field_sets import (
    FieldSet,
    difference,
    from_paths,
    intersection,
    path_text,
    paths_of,
    union,
    with_parents,
)
from oarlock.sandbox.apiserver.apply.field_types import FieldType
from oarlock.sandbox.apiserver.apply.typed import compare, fields_of, merge, without
from oarlock.sandbox.apiserver.errors import ApiError

Obj = dict[str, Any]

BEFORE_FIRST_APPLY: Final = "before-first-apply"
TRACKED_ONCE_APPLIED: Final = frozenset({"Pod", "Node", "Event", "Lease"})
MANAGER_CHARS_MAX: Final = 128

# Upstream: managedfields/internal/stripmeta.go.
_UNMANAGED: Final = from_paths(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",)]
    + [
        ("f:metadata", f"f:{name}")
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "generation",
            "managedFields",
            "resourceVersion",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        )
    ]
)
# What upstream's Go types always have, so that it is not new in a new object.
_EMPTY: Final[Obj] = {
    "metadata": {},
    "spec": {"template": {"metadata": {}, "spec": {}}, "strategy": {}, "updateStrategy": {}},
    "status": {},
}


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: the manager, the version and the part of the object it writes to, and when (RFC 3339)."""

    manager: str
    api_version: str
    subresource: str
    time: str

    def entry(self, operation: str, fields: FieldSet) -> Obj:
        """Its entry in managedFields."""
        entry = {
            "manager": self.manager,
            "operation": operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        return {**entry, "subresource": self.subresource} if self.subresource else entry

    def wrote(self, entry: Mapping[str, Any], operation: str) -> bool:
        """Whether an entry is this writer's. An applier keeps one entry over all versions."""
        return (
            entry.get("manager") == self.manager
            and entry.get("operation") == operation
            and entry.get("subresource", "") == self.subresource
            and (operation == "Apply" or entry.get("apiVersion") == self.api_version)
        )


def manager_of_agent(user_agent: str) -> str:
    """The manager that a User-Agent names: what stands before its first slash."""
    name = user_agent.partition("/")[0]
    return "".join(char for char in name if char.isprintable())[:MANAGER_CHARS_MAX] or "unknown"


def is_tracked(kind: str, entries: Any) -> bool:
    """Whether a write of this kind keeps managers; `entries` are those that the object has."""
    return bool(entries) or kind not in TRACKED_ONCE_APPLIED


def entries_after_write(
    old: Obj | None, new: Obj, entries: list[Obj], writer: Writer, type_: FieldType, reset: FieldSet
) -> list[Obj]:
    """The managers after a create, update or patch: `writer` manages what it changed.

    `reset`: what the part of the object that is written to cannot change. Raises NotTyped.
    """
    found = compare(old if old is not None else _EMPTY, new, type_)
    changed = _outside(difference(union(found.modified, found.added), _UNMANAGED), reset)
    gone = union(changed, found.removed)
    kept: list[Obj] = []
    own: FieldSet = {}
    before: Obj | None = None
    for entry in entries:
        if writer.wrote(entry, "Update"):
            own, before = entry.get("fieldsV1") or {}, entry
        elif fields := difference(entry.get("fieldsV1") or {}, gone):
            kept.append({**entry, "fieldsV1": fields})
    if own_now := difference(union(own, changed), found.removed):
        same = before is not None and own_now == own
        kept.append(before if before is not None and same else writer.entry("Update", own_now))
    return _ordered(kept)


def applied(
    live: Obj | None,
    config: Obj,
    writer: Writer,
    type_: FieldType,
    *,
    force: bool,
    reset: FieldSet,
    allowed: FieldSet | None = None,
) -> tuple[Obj, list[Obj]]:
    """The object after `writer` has applied `config`, and its managers. `live` None: there is no object yet.

    `reset`: what the part of the object that is written to cannot change, and so nobody manages by it.
    `allowed`: fields that the writer may take over unforced.
    Raises ApiError 409 for fields that others manage with other values, unless forced; NotTyped.
    """
    entries = list((live or {}).get("metadata", {}).get("managedFields") or ())
    if live is not None and not entries:
        since = difference(fields_of(live, type_), _UNMANAGED)
        everyone = Writer(BEFORE_FIRST_APPLY, writer.api_version, "", writer.time)
        entries = [everyone.entry("Update", since)]
    named = fields_of(config, type_)
    fields = _outside(difference(named, _UNMANAGED), reset)
    last: FieldSet = {}
    before: Obj | None = None
    others: list[Obj] = []
    for entry in entries:
        if writer.wrote(entry, "Apply"):
            last, before = entry.get("fieldsV1") or {}, entry
        else:
            others.append(entry)
    base = live if live is not None else {}
    owned = with_parents(named)  # with its name, and so the metadata, which nobody manages
    for entry in others:
        owned = union(owned, with_parents(entry.get("fieldsV1") or {}))
    merged = without(merge(base, config, type_), difference(with_parents(last), owned), type_)
    found = compare(base, merged, type_)
    changed = _outside(difference(union(found.modified, found.added), _UNMANAGED), reset)
    clashes = [] if force else _clashes(others, difference(changed, allowed or {}))
    if clashes:
        raise conflicting(clashes)
    kept = []
    for entry in others:
        if left := difference(entry.get("fieldsV1") or {}, union(changed, found.removed)):
            kept.append({**entry, "fieldsV1": left})
    if fields:
        same = before is not None and last == fields and kept == others
        unchanged = same and not changed and not found.removed
        kept.append(before if before is not None and unchanged else writer.entry("Apply", fields))
    return merged, _ordered(kept)


def _clashes(others: list[Obj], changed: FieldSet) -> list[tuple[Obj, FieldSet]]:
    """Which of the changed fields others manage."""
    found = [(entry, intersection(entry.get("fieldsV1") or {}, changed)) for entry in others]
    return [(entry, fields) for entry, fields in found if fields]


def _outside(fields: FieldSet, reset: FieldSet) -> FieldSet:
    """`fields` without everything at and below the top-level fields of `reset`."""
    return {element: node for element, node in fields.items() if element not in reset}


def _ordered(entries: list[Obj]) -> list[Obj]:
    """As upstream lists them: appliers first, then by time, name, version and part."""
    return sorted(
        entries,
        key=lambda each: (
            each.get("operation") != "Apply",
            each.get("time") or "",
            each.get("manager", ""),
            each.get("apiVersion", ""),
            each.get("subresource", ""),
        ),
    )


def _shown(entry: Mapping[str, Any]) -> str:
    text = f'"{entry.get("manager", "")}"'
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    return f"{text} using {entry.get('apiVersion', '')}" if entry.get("operation") == "Update" else text


def conflicting(clashes: list[tuple[Obj, FieldSet]]) -> ApiError:
    """409 with a cause for each field (upstream: managedfields/internal/conflict.go)."""
    told = sorted((_shown(entry), path_text(path)) for entry, fields in clashes for path in paths_of(fields))
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
        for manager, path in told
    ]
    if len(told) == 1:
        message = f"Apply failed with 1 conflict: conflict with {told[0][0]}: {told[0][1]}"
    else:
        groups: dict[str, list[str]] = {}
        for manager, path in told:
            groups.setdefault(manager, []).append(f"- {path}")
        listed = [f"conflicts with {manager}:\n" + "\n".join(paths) for manager, paths in groups.items()]
        message = f"Apply failed with {len(told)} conflicts: " + "\n".join(listed)
    return ApiError(409, "Conflict", message, {"causes": causes})
