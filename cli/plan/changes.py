"""Which fields of an owner the file changes, one line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from oarlock.controllers.deployment.annotations import REVISION
from oarlock.sandbox.apiserver.apply.last_applied import LAST_APPLIED

Obj = dict[str, Any]
_NOBODY_SETS = (LAST_APPLIED, REVISION, "deprecated.daemonset.template.generation")
"""Annotations that kubectl and controllers keep."""


class Changed(NamedTuple):
    """A field before and after, None where it is not there."""

    field: str
    before: Any
    after: Any


def changes(live: Obj, wanted: Obj) -> list[Changed]:
    """In the order of the fields' names. What the server keeps of itself is left out."""
    before, after = dict(_flat(_told(live), "")), dict(_flat(_told(wanted), ""))
    return [
        Changed(field, before.get(field), after.get(field))
        for field in sorted(before.keys() | after.keys())
        if before.get(field) != after.get(field)
    ]


def _told(obj: Obj) -> Obj:
    meta = obj["metadata"]
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in _NOBODY_SETS}
    return {
        "metadata": {"labels": meta.get("labels") or {}, "annotations": annotations},
        "spec": obj.get("spec") or {},
    }


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Leaves by path. Elements of a list that have names are found by them, so that a new one in front shifts none."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _flat(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        names = [each.get("name") for each in value]
        named = None not in names and len(set(names)) == len(names)
        for at, each in enumerate(value):
            yield from _flat({**each} if each else None, f"{path}[{names[at] if named else at}]")
    else:
        yield path, value


def shown(value: Any) -> str:
    """A value as people write it; "-" where there is none."""
    if value is None:
        return "-"
    return value if isinstance(value, str) and value else orjson.dumps(value).decode()
