"""From what a user's function returns to what is wanted; everything wrong with it makes one clear line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from oarlock.controllers.entries import Found
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.pods.events import NORMAL, Event
from oarlock.controllers.wanted import UserError, Wanted, WantedChild, wanted_child
from oarlock.sdk.children import Children
from oarlock.sdk.definitions import Definition, Result
from oarlock.sdk.kinds import Kind
from oarlock.sdk.objects import Object, to_json
from oarlock.sdk.types.typed import DoesNotFit, Typed

Json = dict[str, Any]
log = logging.getLogger("oarlock.controller")

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
        log.exception("controller=%s key=%s the function failed", definition.name, own.key)
        raise UserError(f"{definition.name}: {type(error).__name__}: {error}") from error
    return wanted_of(result, definition, kinds, own)


def own_type(definition: Definition) -> Typed[Any] | None:
    """What decodes its objects; None for plain dicts. Raises BadDefinition."""
    return None if definition.model is None else Typed(definition.model)


def own_object(definition: Definition, typed: Typed[Any] | None, own: Whole) -> Any:
    """The object as the function gets it. Raises UserError where it does not fit its type."""
    if typed is None:
        return msgspec.json.decode(own.body)
    try:
        return typed.decode(own.body)
    except DoesNotFit as misfit:
        raise UserError(f"{definition.kind.kind} {own.key} does not fit its type: {misfit}", never=True) from None


def children_of(owned: Found, others: Found) -> Children:
    """What the function gets beside its object."""
    return Children(
        [msgspec.json.decode(each.body) for _, each in owned], [msgspec.json.decode(each.body) for _, each in others]
    )


def wanted_of(result: Any, definition: Definition, kinds: Mapping[tuple[str, str], Kind], own: Whole) -> Wanted:
    """What a result wants of an object. Raises UserError, never to be tried again on the same object."""
    if not isinstance(result, Result):
        raise _never(definition, f"it returned {type(result).__name__}, not oarlock.Result")
    children = [_child(each, definition, kinds, own) for each in result.children]
    places: set[tuple[str, str, str]] = set()
    for child in children:
        if child.place in places:
            raise _never(definition, f"it wants two children {child.kind} {child.name}: each needs a name of its own")
        places.add(child.place)
    again_s = result.again_s
    if again_s is not None and not again_s > 0:
        raise _never(definition, f"again_s={again_s!r} has to be more than nothing")
    return Wanted(
        tuple(children),
        None if result.status is None else _encoded(result.status, definition, "its status"),
        None if again_s is None else max(1, round(again_s * 1000)),
        tuple(Event(NORMAL, str(reason), str(message)) for reason, message in result.events),
    )


def _child(given: Any, definition: Definition, kinds: Mapping[tuple[str, str], Kind], own: Whole) -> WantedChild:
    obj = to_json(given) if isinstance(given, Object) else given
    if not isinstance(obj, Mapping) or not isinstance(obj.get("metadata"), Mapping):
        raise _never(definition, "a child is an object with apiVersion, kind and metadata")
    which, meta = (obj.get("apiVersion"), obj.get("kind")), obj["metadata"]
    kind = kinds.get(which)  # type: ignore[arg-type]
    if kind is None:
        there = ", ".join(map(str, kinds.values())) or "none"
        raise _never(definition, f'it wants a child "{which[0]} {which[1]}" that is not in its children= ({there})')
    name = meta.get("name")
    if meta.get("generateName"):
        text = f"a {kind.kind} with generateName: a repeated create would make another one; give it a name"
        raise _never(definition, text)
    if not isinstance(name, str) or not name:
        raise _never(definition, f"a {kind.kind} without metadata.name")
    namespace = _namespace(meta.get("namespace") or "", kind, definition, own, name)
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
    try:
        return wanted_child(
            kind.resource, clean, namespace=namespace, owner_reference=reference, controller=definition.name
        )
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise _never(definition, f"{kind.kind} {name} is not JSON: {error}") from None


def _namespace(asked: str, kind: Kind, definition: Definition, own: Whole, name: str) -> str:
    what = f"{kind.kind} {name}"
    if not kind.namespaced:
        if own.namespace:
            raise _never(definition, f"{what} has no namespace: an object in a namespace cannot own it")
        if asked:
            raise _never(definition, f"{what} is in namespace {asked}, but its kind has none")
        return ""
    if own.namespace and asked not in ("", own.namespace):
        raise _never(definition, f"{what} is in namespace {asked}: children are in their owner's, {own.namespace}")
    if not (asked or own.namespace):
        raise _never(definition, f"{what} needs a metadata.namespace, as its owner has none")
    return asked or own.namespace


def _encoded(value: Any, definition: Definition, what: str) -> bytes:
    try:
        return msgspec.json.encode(to_json(value))
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise _never(definition, f"{what} is not JSON: {error}") from None


def _never(definition: Definition, text: str) -> UserError:
    return UserError(f"{definition.name}: {text}", never=True)
