"""Sets of field paths, in the JSON form of FieldsV1. All functions are pure.

A set is a tree of dicts. An edge is a path element: `f:name` (a field), `k:{...}` (a list's element by its keys),
`v:...` (an element of a set by its value). A node is in the set if it is empty or has the edge `.`; the root `{}` is
the empty set. Upstream: sigs.k8s.io/structured-merge-diff, fieldpath/serialize.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

FieldSet = dict[str, Any]
Path = tuple[str, ...]

SELF: Final = "."


def from_paths(paths: Iterable[Path]) -> FieldSet:
    """The set of these paths; none may be empty."""
    root: FieldSet = {}
    members: list[FieldSet] = []
    for path in paths:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        members.append(node)
    for node in members:
        if node:
            node[SELF] = {}
    return root


def paths_of(fields: FieldSet) -> Iterator[Path]:
    """The paths in the set, each once."""
    for element, node in fields.items():
        if element != SELF:
            if is_member(node):
                yield (element,)
            for rest in paths_of(node):
                yield (element, *rest)


def is_member(node: FieldSet) -> bool:
    """Whether a node that is not the root is in its set."""
    return not node or SELF in node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Paths in either set."""
    merged = dict(left)
    for element, node in right.items():
        if element == SELF:
            continue
        old = merged.get(element)
        merged[element] = node if old is None else _node(is_member(old) or is_member(node), union(old, node))
    return merged


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Paths of `left` that are not in `right`."""
    kept: FieldSet = {}
    for element, node in left.items():
        if element == SELF:
            continue
        other = right.get(element)
        if other is None:
            kept[element] = node
            continue
        below = difference(node, other)
        here = is_member(node) and not is_member(other)
        if here or below:
            kept[element] = _node(here, below)
    return kept


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Paths in both sets."""
    kept: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if element == SELF or other is None:
            continue
        below = intersection(node, other)
        here = is_member(node) and is_member(other)
        if here or below:
            kept[element] = _node(here, below)
    return kept


def _node(member: bool, below: FieldSet) -> FieldSet:
    """A node with these children. A node without any is a member, or its parent leaves it out."""
    children = {element: node for element, node in below.items() if element != SELF}
    return {SELF: {}, **children} if member and children else children


def with_parents(fields: FieldSet) -> FieldSet:
    """The set with every field above its paths (upstream: EnsureNamedFieldsAreMembers); elements of lists stay out."""
    grown: FieldSet = {}
    for element, node in fields.items():
        if element != SELF:
            here = is_member(node) or element.startswith("f:")
            grown[element] = _node(here, with_parents(node))
    return grown


def path_text(path: Path) -> str:
    """A path as messages show it: `.spec.containers[name="a"].image`."""
    shown = []
    for element in path:
        tag, _, rest = element.partition(":")
        if tag == "f":
            shown.append(f".{rest}")
        elif tag == "k":
            keys = orjson.loads(rest).items()
            shown.append("[" + ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in keys) + "]")
        else:
            shown.append(f"[={rest}]" if tag == "v" else f"[{rest}]")
    return "".join(shown)
