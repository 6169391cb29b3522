"""Objects read, compared, merged and cut by the types of their fields. All functions are pure.

Upstream: structured-merge-diff, typed/ (tofieldset.go, merge.go, compare.go, remove.go).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from oarlock.sandbox.apiserver.apply.field_sets import FieldSet, Path, from_paths, is_member
from oarlock.sandbox.apiserver.apply.field_types import FieldType


class NotTyped(ValueError):
    """A list that cannot be read by its type; the message names the path and the mend."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two objects, as sets of paths."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet


def element_of(item: Any, list_type: FieldType) -> str:
    """The path element of a list's item. Raises NotTyped if it lacks its key."""
    if list_type.is_set:
        return "v:" + orjson.dumps(item).decode()
    if not isinstance(item, dict):
        raise NotTyped("an element of a list with keys must be an object")
    keys = {}
    for key in sorted(list_type.keys):
        value = item.get(key, list_type.defaults.get(key))
        if value is None and len(list_type.keys) == 1:
            raise NotTyped(f"associative list with keys has an element that omits key field {key!r}")
        if value is not None:
            keys[key] = value
    return "k:" + orjson.dumps(keys).decode()


def _parts(value: Any, type_: FieldType) -> dict[str, tuple[Any, FieldType]] | None:
    """The parts of a value that are managed apart, by path element; None for one that is managed as a whole."""
    if type_.atomic:
        return None
    if isinstance(value, dict):
        return {f"f:{name}": (part, type_.under(name)) for name, part in value.items()}
    if isinstance(value, list) and (type_.keys or type_.is_set):
        below = type_.elements or FieldType(atomic=True)
        found: dict[str, tuple[Any, FieldType]] = {}
        for item in value:
            found.setdefault(element_of(item, type_), (item, below))
        return found
    return None


def fields_of(obj: Any, type_: FieldType) -> FieldSet:
    """The paths that an applied object names: its leaves, and the elements of its lists."""
    paths: list[Path] = []

    def walk(value: Any, type_: FieldType, path: Path) -> None:
        parts = _parts(value, type_)
        if path and (not parts or path[-1][0] != "f"):
            paths.append(path)
        for element, (part, part_type) in (parts or {}).items():
            walk(part, part_type, (*path, element))

    walk(obj, type_, ())
    return from_paths(paths)


def compare(old: Any, new: Any, type_: FieldType) -> Comparison:
    """What `new` has other than `old`. Parts that are equal are passed over at once."""
    removed: list[Path] = []
    modified: list[Path] = []
    added: list[Path] = []

    def every(value: Any, type_: FieldType, path: Path, found: list[Path]) -> None:
        found.append(path)
        for element, (part, part_type) in (_parts(value, type_) or {}).items():
            every(part, part_type, (*path, element), found)

    def walk(old: Any, new: Any, type_: FieldType, path: Path) -> None:
        if old is new or old == new:
            return
        before, after = _parts(old, type_), _parts(new, type_)
        if before is None or after is None:
            modified.append(path)
            return
        for element, (part, part_type) in before.items():
            if element not in after:
                every(part, part_type, (*path, element), removed)
            else:
                walk(part, after[element][0], part_type, (*path, element))
        for element, (part, part_type) in after.items():
            if element not in before:
                every(part, part_type, (*path, element), added)

    walk(old, new, type_, ())
    return Comparison(from_paths(removed), from_paths(modified), from_paths(added))


def merge(live: Any, applied: Any, type_: FieldType) -> Any:
    """`live` with `applied` merged into it. Elements of a list keep their order, new ones follow."""
    if type_.atomic or type(live) is not type(applied):
        return applied
    if isinstance(applied, dict):
        merged = dict(live)
        for name, part in applied.items():
            merged[name] = merge(merged[name], part, type_.under(name)) if name in merged else part
        return merged
    if isinstance(applied, list) and (type_.keys or type_.is_set):
        items = {element_of(item, type_): item for item in live}
        for item in applied:
            element = element_of(item, type_)
            old = items.get(element)
            items[element] = item if old is None else merge(old, item, type_.elements or type_)
        return list(items.values())
    return applied


def without(value: Any, fields: FieldSet, type_: FieldType) -> Any:
    """`value` without what stands at the paths of `fields`."""
    if not fields or type_.atomic:
        return value
    if isinstance(value, dict):
        kept: dict[str, Any] = {}
        for name, part in value.items():
            node = fields.get(f"f:{name}")
            if node is None:
                kept[name] = part
            elif not is_member(node):
                kept[name] = without(part, node, type_.under(name))
        return kept
    if isinstance(value, list) and (type_.keys or type_.is_set):
        items: list[Any] = []
        for item in value:
            node = fields.get(element_of(item, type_))
            if node is None:
                items.append(item)
            elif not is_member(node):
                items.append(without(item, node, type_.elements or type_))
        return items
    return value
