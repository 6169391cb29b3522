"""The functions of `watch(names=)` and `watch(wakes=)`: from an object to the index entries of what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from oarlock.controllers.objects.whole import Index, IndexFault
from oarlock.controllers.whole_routes import concerns_entry, names_entry
from oarlock.sdk.definitions import Definition, Watch
from oarlock.sdk.kinds import Kind
from oarlock.sdk.types.typed import DoesNotFit, Typed

Json = dict[str, Any]


def wakes_index(definition: Definition, watch: Watch) -> Index:
    """From a watched object to the keys of the controller that it concerns."""
    assert watch.wakes is not None
    say = partial(
        _say, watch.wakes, None, f"{definition.name}: wakes={_name(watch.wakes)}", definition.kind, watch.kind
    )
    return lambda obj: [concerns_entry(definition.name, key) for key in say(obj)]


def names_index(definition: Definition, watch: Watch, typed: Typed[Any] | None) -> Index:
    """From an object of the controller to the keys of the watched objects that it names."""
    assert watch.names is not None
    say = partial(
        _say, watch.names, typed, f"{definition.name}: names={_name(watch.names)}", watch.kind, definition.kind
    )
    return lambda obj: [names_entry(definition.name, watch.kind.resource, key) for key in say(obj)]


def _say(
    function: Callable[[Any], Iterable[str]], typed: Typed[Any] | None, who: str, of: Kind, given: Kind, obj: Json
) -> list[str]:
    """The keys, of objects of the kind `of`, from one of the kind `given`. Raises IndexFault, whatever is wrong."""
    try:
        found = function(obj if typed is None else typed.from_json(obj))
        return keys(found, of, obj["metadata"].get("namespace") or "" if given.namespaced else "")
    except WrongKeys as wrong:
        raise IndexFault(f"{who} {wrong}") from None
    except DoesNotFit as misfit:
        raise IndexFault(f"{who} is not called: the {given.kind} does not fit its type: {misfit}") from None
    except Exception as error:
        raise IndexFault(f"{who} raised {type(error).__name__}: {error}") from error


class WrongKeys(ValueError):
    """What an index function returned instead, and the mend."""


def keys(found: Any, of: Kind, namespace: str) -> list[str]:
    """What an index function returned, as keys of objects of a kind. Of a kind with namespaces a bare name is one in
    `namespace`, that of the object which the function was given; empty texts and None in the list are no keys.

    Raises WrongKeys.
    """
    if not isinstance(found, Iterable) or isinstance(found, str | bytes | Mapping):
        none = "; return [] for none" if found is None else ""
        raise WrongKeys(f"returned {_type(found)}, not a list of keys{none}")
    return [_key(each, of, namespace) for each in found if each is not None and each != ""]


def _key(each: Any, of: Kind, namespace: str) -> str:
    if not isinstance(each, str):
        raise WrongKeys(f'returned a list that holds {_type(each)}: a key is a text, as "namespace/name"')
    within, slash, name = each.rpartition("/")
    if not name or "/" in within or (slash and not within) or not all(map(_may_be_in_a_key, each)):
        raise WrongKeys(f'returned {each!r}, which is no key: write "namespace/name"')
    if not of.namespaced:
        if slash:
            raise WrongKeys(f"returned {each!r}: a {of.kind} has no namespace; return its name alone")
        return name
    if not (within or namespace):
        raise WrongKeys(f'returned {each!r}: a {of.kind} is in a namespace; write "namespace/{each}"')
    return f"{within or namespace}/{name}"


def _may_be_in_a_key(letter: str) -> bool:
    """Whether it is no space, and no half of a letter, as JSON in an annotation may hold: that has no UTF-8."""
    return not letter.isspace() and not "\ud800" <= letter <= "\udfff"


def _type(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
