"""Strategic merge patch: a merge patch that knows which lists are keyed.

Upstream: apimachinery/pkg/util/strategicpatch/patch.go, the applying half, with its directives:
`$patch: replace|delete|merge` in an object or a list element, `$retainKeys`,
`$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`. Of a merged list, elements named by
the patch stand in the patch's order (or that of `$setElementOrder`), all others in their old order,
interleaved so that old neighbours stay neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oarlock.sandbox.apiserver.errors import bad_request, does_not_apply
from oarlock.sandbox.apiserver.patches.list_order import in_order, key_of
from oarlock.sandbox.apiserver.patches.schema import PRIMITIVES, Schema

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"
ELEMENT_ORDER = "$setElementOrder"

Obj = dict[str, Any]


def apply_strategic_patch(document: Mapping[str, Any], patch: Any, schema: Schema) -> Obj:
    """`document` with `patch` merged by the keys of `schema`; neither argument is changed.

    Raises ApiError 400 for a malformed patch or directive, 422 for one that does not fit the document
    (an element without its merge key, mixed lists).
    """
    if not isinstance(patch, dict):
        raise bad_request("Invalid JSON document: a strategic merge patch must be an object")
    return _merge_object(document, patch, schema)


def _merge_object(original: Mapping[str, Any], patch: Obj, schema: Schema) -> Obj:
    if DIRECTIVE in patch:
        directive = patch[DIRECTIVE]
        if directive == "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        if directive == "delete":
            return {}
        if directive != "merge":
            raise _bad_directive(directive)
    merged = dict(original)
    if RETAIN_KEYS in patch:
        _retain(merged, patch)
    ordered: set[str] = set()
    for key, value in patch.items():
        if key.startswith(ELEMENT_ORDER):
            ordered.add(_order_list(merged, patch, key, value, schema))
    for key, value in patch.items():
        if key[:1] == "$":
            if key.startswith(DELETE_FROM_LIST):
                _delete_from_list(merged, key, value)
        elif key not in ordered:
            _merge_field(merged, key, value, schema)
    return merged


def _merge_field(merged: Obj, key: str, value: Any, schema: Schema) -> None:
    if value is None:
        merged.pop(key, None)
        return
    old = merged.get(key)
    if isinstance(value, dict) and isinstance(old, dict):
        merged[key] = _merge_object(old, value, schema.under(key))
    elif isinstance(value, list) and isinstance(old, list):
        merge_key = schema.lists.get(key)
        merged[key] = value if merge_key is None else _merge_list(old, value, merge_key, schema.under(key))
    elif not (isinstance(value, dict) and DIRECTIVE in value):
        merged[key] = _plain(value)
    else:  # a directive with nothing to act upon leaves nothing
        merged.pop(key, None)


def _plain(value: Any) -> Any:
    """A new value without nulls, and without whatever a directive in it would act upon."""
    if isinstance(value, dict):
        return {
            key: _plain(item)
            for key, item in value.items()
            if item is not None and not (isinstance(item, dict) and DIRECTIVE in item) and key[:1] != "$"
        }
    if isinstance(value, list):
        return [_plain(item) for item in value if not (isinstance(item, dict) and DIRECTIVE in item)]
    return value


def _bad_directive(directive: Any) -> Exception:
    return does_not_apply(f"unknown patch type: {directive}")


def _retain(merged: Obj, patch: Obj) -> None:
    keep = patch[RETAIN_KEYS]
    if not isinstance(keep, list):
        raise bad_request("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and key[:1] != "$" and key not in keep:
            raise bad_request("invalid patch format of retainKeys")
    for key in [key for key in merged if key not in keep]:
        del merged[key]


def _delete_from_list(merged: Obj, directive: str, values: Any) -> None:
    field = _field_of(directive, DELETE_FROM_LIST, "primitive list")
    if values is None:
        merged.pop(field, None)
        return
    old = merged.get(field)
    if old is None:
        return
    if not isinstance(values, list) or not isinstance(old, list):
        raise bad_request("invalid patch format of primitive list")
    merged[field] = [item for item in old if item not in values]


def _field_of(directive: str, prefix: str, what: str) -> str:
    head, slash, field = directive.partition("/")
    if head != prefix or not slash or not field:
        raise bad_request(f"invalid patch format of {what}")
    return field


def _merge_list(old: list[Any], new: list[Any], merge_key: str, schema: Schema) -> list[Any]:
    """`old` with `new` merged into it, in the order described at the head of this module."""
    if not new:
        return old
    if merge_key == PRIMITIVES:
        _all_strings(old, new)
        merged = list(dict.fromkeys([*old, *new]))
        return in_order(merged, new, old, merge_key)
    base, rest = _special_elements(old, new, merge_key)
    merged = _merge_elements(base, rest, merge_key, schema)
    return in_order(merged, rest, base, merge_key)


def _all_strings(*lists: list[Any]) -> None:
    if any(isinstance(item, (dict, list)) for items in lists for item in items):
        raise does_not_apply("list element types are not identical")


def _special_elements(old: list[Any], new: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The old list after the deletes and replaces of `new`, and `new` without them."""
    rest: list[Any] = []
    replace = False
    for element in new:
        if not isinstance(element, dict):
            raise does_not_apply("list element types are not identical")
        if DIRECTIVE not in element:
            rest.append(element)
        elif element[DIRECTIVE] == "delete":
            gone = key_of(element, merge_key)
            old = [item for item in old if not (isinstance(item, dict) and _same(item.get(merge_key), gone))]
        elif element[DIRECTIVE] == "replace":
            replace = True
        else:
            raise _bad_directive(element[DIRECTIVE])
    return ([], rest) if replace else (old, rest)


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def _merge_elements(base: list[Any], rest: list[Any], merge_key: str, schema: Schema) -> list[Any]:
    merged = list(base)
    for element in rest:
        wanted = key_of(element, merge_key)
        for position, item in enumerate(merged):
            if not isinstance(item, dict):
                raise does_not_apply("list element types are not identical")
            if _same(item.get(merge_key), wanted):
                merged[position] = _merge_object(item, element, schema)
                break
        else:
            merged.append(_plain(element))
    return merged


def _order_list(merged: Obj, patch: Obj, directive: str, order: Any, schema: Schema) -> str:
    """Merges the list that `$setElementOrder/<field>` speaks of, in that order; the field's name."""
    field = _field_of(directive, ELEMENT_ORDER, "setElementOrder list")
    merge_key = schema.lists.get(field)
    old, new = merged.get(field), patch.get(field)
    lists_only = all(value is None or isinstance(value, list) for value in (old, new))
    if not isinstance(order, list) or not lists_only:
        raise bad_request("invalid patch format of setElementOrder list")
    if merge_key is None:  # an atomic list: the patch's own is the order
        if new is not None:
            merged[field] = new
        return field
    _check_order(new or [], order, merge_key)
    if old is None and new is None:
        return field
    if old is None:
        contents: list[Any] = _plain(new)
    else:
        contents = _merge_list(old, new or [], merge_key, schema.under(field))
    merged[field] = in_order(contents, order, old or [], merge_key)
    return field


def _check_order(new: list[Any], order: list[Any], merge_key: str) -> None:
    """Every element of the patch must be in the order list, in that order (deletes aside)."""
    if not order or not new:
        return
    kept = [item for item in new if not (isinstance(item, dict) and DIRECTIVE in item)]
    places = iter([key_of(item, merge_key) for item in order])
    for item in kept:
        wanted = key_of(item, merge_key)
        if not any(_same(place, wanted) for place in places):
            raise does_not_apply(f"The order in patch list doesn't match {ELEMENT_ORDER} list")
