"""What a function of a user gives us, looked at before it is used. What is wrong is said in one line, with the mend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from oarlock.sdk.objects import Object, to_json

Json = dict[str, Any]

SECONDS_MAX = 1e9
_REASON = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,127}")
_HALF = re.compile(r"[\ud800-\udfff]")
"""A surrogate, which UTF-8 cannot say."""
_NOT_JSON = (TypeError, ValueError, NotImplementedError, RecursionError)


class Wrong(ValueError):
    """What is wrong, and the mend. Whoever catches it says whose it is."""


def as_list(given: Any, what: str, of: str) -> list[Any]:
    """A list that an option of a Result holds."""
    if isinstance(given, list | tuple):
        return list(given)
    none = "; write [] for none" if given is None else ""
    raise Wrong(f"{what} has to be a list of {of}, not {_type(given)}{none}")


def as_object(given: Any, what: str) -> Json:
    """An object with its kind and a name of its own, as JSON that may be changed at its top."""
    obj = as_json(given, what) if isinstance(given, Object) else given
    if not isinstance(obj, Mapping):
        raise Wrong(f"{what} has to be a dict or an oarlock.Object, not {_type(obj)}")
    which = f"{obj.get('kind') or 'object'}"
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str) or not obj[field]:
            raise Wrong(f"{what} has no {field}: write it as a text, such as apiVersion: v1, kind: ConfigMap")
    meta = obj.get("metadata")
    if not isinstance(meta, Mapping):
        raise Wrong(f"{what}, a {which}, has no metadata: it has to be a dict with a name")
    if meta.get("generateName"):
        raise Wrong(
            f"{what}, a {which}, has generateName, a name that nobody knows before the answer: a repeated request would"
            " make a second one; give it a name, as f'{obj.name}-web'"
        )
    name = meta.get("name")
    if not isinstance(name, str) or not name or "/" in name:
        raise Wrong(f"{what}, a {which}, has the name {name!r}: write metadata.name as a text without a slash")
    as_text(name, f"the name of {what}, a {which}")
    as_text(meta.get("namespace") or "", f"{which} {name}: metadata.namespace")
    for field in ("labels", "annotations"):
        if not isinstance(meta.get(field) or {}, Mapping):
            raise Wrong(f"{which} {name}: metadata.{field} has to be a dict, not {_type(meta[field])}")
    if not _are_dicts(meta.get("ownerReferences") or ()):
        raise Wrong(f"{which} {name}: metadata.ownerReferences has to be a list of dicts; leave it out, it is set")
    return {**obj}


def as_json(value: Any, what: str) -> Any:
    """A typed value as dicts, lists and scalars."""
    try:
        return to_json(value)
    except _NOT_JSON as error:
        raise Wrong(f"{what} is not JSON: {error}; write dicts, lists, texts and numbers") from None


def as_bytes(value: Any, what: str) -> bytes:
    """As what is sent to the API."""
    try:
        return orjson.dumps(as_json(value, what))
    except TypeError as error:  # such as a number of more than 64 bits, or half of a character
        raise Wrong(f"{what} is not JSON: {error}; write dicts, lists, texts and numbers") from None


def as_text(given: Any, what: str) -> str:
    """A text that can be sent."""
    if not isinstance(given, str):
        raise Wrong(f"{what} has to be a text, not {_type(given)}")
    if _HALF.search(given):
        raise Wrong(f"{what}, {given!r}, has half of a character in it: write a text of whole ones")
    return given


def as_status(value: Any) -> Json:
    """A status as JSON."""
    status = as_json(value, "the status")
    if not isinstance(status, Mapping):
        raise Wrong(f"the status has to be a dict or a Struct, not {_type(value)}; write {{}} for an empty one")
    return {**status}


def as_event(reason: Any, message: Any) -> tuple[str, str]:
    """The reason and the message of an event."""
    if not isinstance(reason, str) or not _REASON.fullmatch(reason):
        raise Wrong(f"an event has the reason {reason!r}: write one word of letters and digits, such as RecordCreated")
    if not isinstance(message, str):
        raise Wrong(f"the event {reason} has a message that is {_type(message)}: write a text, as str(...)")
    return reason, message


def as_events(given: Any) -> Iterable[tuple[str, str]]:
    """Of a Result."""
    for each in as_list(given, "events=", "(reason, message)"):
        if not isinstance(each, tuple | list) or len(each) != 2:
            raise Wrong(f"events= holds {_type(each)}: each event is a pair (reason, message)")
        yield as_event(*each)


def as_ms(seconds: Any, what: str, *, or_now: bool = False) -> int:
    """A time to come, of more than nothing; with ``or_now`` also of nothing."""
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        if or_now and seconds == 0:
            return 0
        if 0 < seconds < SECONDS_MAX:
            return max(1, round(seconds * 1000))
    least = "from 0 on" if or_now else "more than 0"
    raise Wrong(f"{what}={seconds!r} has to be a number of seconds, {least} and less than {SECONDS_MAX:g}")


def _are_dicts(given: Any) -> bool:
    return isinstance(given, Sequence) and all(isinstance(each, Mapping) for each in given)


def _type(value: Any) -> str:
    """The type as a user calls it: a str or list with its items would be too long to tell, and may be secret."""
    return "None" if value is None else type(value).__name__
