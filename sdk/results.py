"""From what a user's function returns to what is wanted; everything wrong with it makes one clear line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from oarlock.controllers.entries import Found
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.pods.events import NORMAL, Event
from oarlock.controllers.wanted import UserError, Wanted, WantedChild, said_by, wanted_child
from oarlock.sdk.checks import Wrong, as_events, as_json, as_list, as_ms, as_object, as_status
from oarlock.sdk.children import Children
from oarlock.sdk.definitions import Definition, Result
from oarlock.sdk.errors import Never
from oarlock.sdk.kinds import Kind, told
from oarlock.sdk.types.typed import DoesNotFit, Typed

Json = dict[str, Any]

_SERVERS_OWN = (
    *("uid", "resourceVersion", "generation", "managedFields", "selfLink"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
)
"""Of a child that was made from a live one, what only the server writes."""


def want(definition: Definition) -> Callable[[Whole, Found, Found], Wanted]:
    """The function of a DesiredController. It raises UserError."""
    kinds = {(kind.api_version, kind.kind): kind for kind in definition.children}
    return partial(_want, definition, own_type(definition), kinds)


def _want(
    definition: Definition,
    typed: Typed[Any] | None,
    kinds: Mapping[tuple[str, str], Kind],
    own: Whole,
    owned: Found,
    others: Found,
) -> Wanted:
    obj = own_object(definition, typed, own)
    try:
        result = definition(obj, children_of(owned, others))
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{definition.name}: {type(error).__name__}: {said_by(error)}") from error
    return wanted_of(result, definition, kinds, own)


def own_type(definition: Definition) -> Typed[Any] | None:
    """What decodes its objects; None for plain dicts. Raises BadDefinition."""
    return None if definition.model is None else Typed(definition.model)


def misfit(definition: Definition) -> Callable[[Whole], str]:
    """A function that says why an object does not fit the type of a controller; empty if it does."""
    typed = own_type(definition)
    return lambda own: "" if typed is None else typed.fault(own.body)


def own_object(definition: Definition, typed: Typed[Any] | None, own: Whole) -> Any:
    """The object as the function gets it. Raises Never where it does not fit its type."""
    if typed is None:
        return msgspec.json.decode(own.body)
    try:
        return typed.decode(own.body)
    except DoesNotFit as misfit:
        raise Never(f"{definition.kind.kind} {own.key} does not fit its type: {misfit}") from None


def children_of(owned: Found, others: Found) -> Children:
    """What the function gets beside its object."""
    return Children(
        [msgspec.json.decode(each.body) for _, each in owned], [msgspec.json.decode(each.body) for _, each in others]
    )


def wanted_of(result: Any, definition: Definition, kinds: Mapping[tuple[str, str], Kind], own: Whole) -> Wanted:
    """What a result wants of an object. Raises UserError, never to be tried again on the same object."""
    try:
        return _wanted(result, definition, kinds, own)
    except Wrong as wrong:
        raise UserError(f"{definition.name}: {definition.kind.kind} {own.key}: {wrong}", never=True) from None


def _wanted(result: Any, definition: Definition, kinds: Mapping[tuple[str, str], Kind], own: Whole) -> Wanted:
    if not isinstance(result, Result):
        raise Wrong(f"its function returned {type(result).__name__}, not oarlock.Result")
    given = as_list(result.children, "children=", "objects")
    children = [_child(each, at, definition, kinds, own) for at, each in enumerate(given)]
    places: set[tuple[str, str, str]] = set()
    for child in children:
        if child.place in places:
            raise Wrong(f"it wants two children {child.kind} {child.name}: each needs a name of its own")
        places.add(child.place)
    return Wanted(
        tuple(children),
        None if result.status is None else _encoded(as_status(result.status)),
        None if result.again_s is None else as_ms(result.again_s, "again_s"),
        tuple(Event(NORMAL, reason, message) for reason, message in as_events(result.events)),
    )


def _child(
    given: Any, at: int, definition: Definition, kinds: Mapping[tuple[str, str], Kind], own: Whole
) -> WantedChild:
    obj = as_object(given, f"children[{at}]")
    which, meta = (obj["apiVersion"], obj["kind"]), obj["metadata"]
    kind, name = kinds.get(which), meta["name"]
    if kind is None:
        raise Wrong(f'it wants a child "{which[0]} {which[1]}" that is not in its children= ({told(*kinds.values())})')
    namespace = _namespace(meta.get("namespace") or "", kind, own, name)
    clean = {
        **{part: value for part, value in obj.items() if part != "status"},
        "metadata": {part: value for part, value in meta.items() if part not in _SERVERS_OWN},
    }
    reference = {
        "apiVersion": definition.kind.api_version,
        "kind": definition.kind.kind,
        "name": own.name,
        "uid": own.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    clean = as_json(clean, f"{kind.kind} {name}")
    try:
        return wanted_child(
            kind.resource, clean, namespace=namespace, owner_reference=reference, controller=definition.name
        )
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise Wrong(f"{kind.kind} {name} is not JSON: {error}") from None


def _namespace(asked: str, kind: Kind, own: Whole, name: str) -> str:
    what = f"{kind.kind} {name}"
    if not kind.namespaced:
        if own.namespace:
            raise Wrong(f"{what} has no namespace: an object in a namespace cannot own it")
        if asked:
            raise Wrong(f"{what} is in namespace {asked}, but its kind has none")
        return ""
    if own.namespace and asked not in ("", own.namespace):
        raise Wrong(f"{what} is in namespace {asked}: children are in their owner's, {own.namespace}")
    if not (asked or own.namespace):
        raise Wrong(f"{what} needs a metadata.namespace, as its owner has none")
    return asked or own.namespace


def _encoded(status: Json) -> bytes:
    try:
        return msgspec.json.encode(status)
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise Wrong(f"the status is not JSON: {error}") from None
