"""The order of a list after a strategic merge.

Upstream: strategicpatch/patch.go, normalizeElementOrder and mergeSortedSlice: the elements the patch
names, in the patch's order, and the ones only the server has, in theirs, are interleaved; where the
server's old list knows both, the one that stood first comes first, otherwise the patch's.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from oarlock.sandbox.apiserver.errors import does_not_apply


def key_of(element: Any, merge_key: str) -> Any:
    """What identifies a list element: its merge key's value, or itself when `merge_key` is empty.

    Raises ApiError 422 when an element has no such key.
    """
    if not merge_key:
        return element
    if not isinstance(element, dict):
        raise does_not_apply("list element types are not identical")
    if merge_key not in element:
        raise does_not_apply(f"map: {element} does not contain declared merge key: {merge_key}")
    return element[merge_key]


def in_order(merged: Sequence[Any], patch_order: Sequence[Any], old_order: Sequence[Any], merge_key: str) -> list[Any]:
    """`merged` sorted as said above; `patch_order` and `old_order` are elements, compared by merge key."""
    patch_place = _places(patch_order, merge_key)
    old_place = _places(old_order, merge_key)
    named: list[tuple[int, int, Any]] = []
    others: list[tuple[int, Any]] = []
    nowhere = len(old_place) + len(merged)
    for element in merged:
        key = _hashable(key_of(element, merge_key))
        if key in patch_place:
            named.append((patch_place[key], old_place.get(key, -1), element))
        else:
            others.append((old_place.get(key, nowhere), element))
    named.sort(key=lambda entry: entry[0])
    others.sort(key=lambda entry: entry[0])
    result: list[Any] = []
    position = 0
    for _, old_position, element in named:
        while position < len(others) and others[position][0] < old_position:
            result.append(others[position][1])
            position += 1
        result.append(element)
    result.extend(element for _, element in others[position:])
    return result


def _places(elements: Sequence[Any], merge_key: str) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for place, element in enumerate(elements):
        places.setdefault(_hashable(key_of(element, merge_key)), place)
    return places


def _hashable(key: Any) -> Hashable:
    """True and 1 are one key to Python's dict and two to JSON."""
    if isinstance(key, (dict, list)):
        raise does_not_apply("a merge key must be a plain value")
    return (type(key), key)
