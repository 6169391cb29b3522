"""The patch that `kubectl apply` would send: what the file says, and what it says no more.

kubectl compares three texts: the file, what it applied last (an annotation of the object), and the live object. A field
that was applied and is not in the file any more goes; one that somebody else has set stays.
Upstream: kubectl/pkg/cmd/apply/patcher.go; apimachinery/pkg/util/strategicpatch/patch.go (CreateThreeWayMergePatch).
"""

from __future__ import annotations

from typing import Any

import orjson

from oarlock.sandbox.apiserver.apply.last_applied import annotation_of
from oarlock.sandbox.apiserver.patches import schema_of
from oarlock.sandbox.apiserver.patches.schema import PRIMITIVES, Schema
from oarlock.sandbox.apiserver.patches.strategic import DELETE_FROM_LIST, DIRECTIVE, RETAIN_KEYS

Obj = dict[str, Any]

_RETAINED = ("strategy", "volumes")
"""Fields tagged retainKeys: of several members only one may be set, so one that is not named goes when others change.
"""


def kubectl_patch(kind: str, given: Obj, live: Obj) -> Obj:
    """A strategic merge patch of ``live``. It names every field of the file, changed or not: the effect is the same."""
    try:
        last = orjson.loads(annotation_of(live) or b"{}")
    except orjson.JSONDecodeError:
        last = {}  # it was edited by hand; as if nothing had been applied
    return _object(given, last if isinstance(last, dict) else {}, live, schema_of(kind), "")


def _object(given: Obj, last: Obj, live: Obj, schema: Schema, field: str) -> Obj:
    patch: Obj = {}
    for key, value in given.items():
        was, has, under = last.get(key), live.get(key), schema.under(key)
        if isinstance(value, dict) and isinstance(has, dict):
            patch[key] = _object(value, was if isinstance(was, dict) else {}, has, under, key)
        elif isinstance(value, list) and isinstance(has, list) and key in schema.lists:
            _merge_list(patch, key, value, was if isinstance(was, list) else [], has, schema.lists[key], under)
        else:
            patch[key] = value
    patch |= {key: None for key in last if key not in given and key in live}
    if field in _RETAINED and not _is_within(given, live):
        patch[RETAIN_KEYS] = sorted(given)
    return patch


def _merge_list(
    patch: Obj, field: str, given: list[Any], last: list[Any], live: list[Any], merge_key: str, schema: Schema
) -> None:
    if merge_key == PRIMITIVES:
        patch[field] = given
        if gone := [each for each in last if each not in given]:
            patch[f"{DELETE_FROM_LIST}/{field}"] = gone
        return
    before, there = _by_key(last, merge_key), _by_key(live, merge_key)
    named = [each.get(merge_key) if isinstance(each, dict) else None for each in given]
    patch[field] = [
        _object(each, before.get(name, {}), there[name], schema, field) if name in there else each
        for name, each in zip(named, given, strict=True)
    ] + [{DIRECTIVE: "delete", merge_key: name} for name in before if name not in named and name in there]


def _by_key(elements: list[Any], merge_key: str) -> dict[Any, Obj]:
    return {each[merge_key]: each for each in elements if isinstance(each, dict) and merge_key in each}


def _is_within(given: Any, live: Any) -> bool:
    """Whether all that the file says is there already, whatever else is."""
    if isinstance(given, dict):
        return isinstance(live, dict) and all(key in live and _is_within(given[key], live[key]) for key in given)
    if isinstance(given, list):
        return (
            isinstance(live, list)
            and len(given) == len(live)
            and all(_is_within(one, other) for one, other in zip(given, live, strict=True))
        )
    return bool(given == live)
