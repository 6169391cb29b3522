"""What is wrong with a field, in words that say how to mend it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oarlock.sandbox.apiserver.errors import FieldError

Obj = dict[str, Any]

_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
_REPLICAS = ("replicas", "minReadySeconds", "selector", "template")
SPEC_FIELDS: Mapping[str, Sequence[str]] = {
    "ReplicaSet": _REPLICAS,
    "ReplicationController": _REPLICAS,
    "Deployment": (*_REPLICAS, "strategy", "revisionHistoryLimit", "paused", "progressDeadlineSeconds"),
    "DaemonSet": ("selector", "template", "updateStrategy", "minReadySeconds", "revisionHistoryLimit"),
}
"""Fields of spec of every kind with a controller: small enough to tell a slip of the pen from what we do not read."""

_MENDS = (
    (
        re.compile(r"^spec\.template\.metadata\.labels$"),
        re.compile("does not match template"),
        "give the template every label that spec.selector asks for",
    ),
    (
        re.compile(r"^spec\.selector$"),
        re.compile("Required"),
        "give spec.selector.matchLabels what the template's labels say",
    ),
    (re.compile(r"replicas$"), re.compile("Invalid value"), "give 0 or more"),
    (re.compile(r"\.image$"), re.compile("Required"), "name the container's image"),
    (re.compile(r"\.containers$"), re.compile("Required"), "give the pod at least one container"),
)


def unknown_fields(kind: str, obj: Obj) -> Iterator[FieldError]:
    """Fields that the server would not know, of a kind with a controller."""
    spec, known = obj.get("spec"), SPEC_FIELDS.get(kind)
    if known is None:
        return
    yield from _unknown("", obj, _TOP)
    if isinstance(spec, dict):
        yield from _unknown("spec.", spec, known)


def _unknown(prefix: str, given: Obj, known: Sequence[str]) -> Iterator[FieldError]:
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            mend = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            yield FieldError(f"{prefix}{name}", "FieldValueInvalid", f"unknown field; {mend}")


def of_shape(message: str) -> FieldError:
    """The field and the problem in the server's refusal of a value of the wrong type."""
    told = message.rpartition("cannot unmarshal: ")[2].replace("`", "")
    problem, _, path = told.partition(" - at $")
    for words, plain in _PLAIN_TYPES:
        problem = problem.replace(words, plain)
    mend = next((mend for word, mend in _TYPE_MENDS if word in problem), "")
    return FieldError(path.lstrip(".") or "metadata", "FieldValueInvalid", problem + mend)


_PLAIN_TYPES = (
    ("Expected", "expected"),
    (" | null", ""),
    ("expected int", "expected a whole number"),
    ("expected str", "expected text"),
    ("expected bool", "expected true or false"),
    ("expected object", "expected a mapping"),
    ("expected array", "expected a list"),
    ("got str", "got text"),
    ("got bool", "got true or false"),
    ("got int", "got a number"),
    ("got float", "got a number with a fraction"),
    ("got object", "got a mapping"),
    ("got array", "got a list"),
    ("got null", "got nothing"),
)
_TYPE_MENDS = (
    ("expected a whole number, got text", "; leave the quotes out"),
    ("expected text", "; put the value in quotes"),
)


def mended(error: FieldError) -> str:
    """What is wrong, and how to mend it where that is known."""
    for on_field, on_message, mend in _MENDS:
        if on_field.search(error.field) and on_message.search(error.message):
            return f"{error.message}; {mend}"
    return error.message
