"""The printer columns of a type, as `oarlock get` shows them: read from what is cached of an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from oarlock.controllers.columns import Columns
from oarlock.controllers.objects import field_paths
from oarlock.controllers.objects.whole import Whole

_AGE = "metadata.creationTimestamp"
"""`oarlock get` shows the age of every object, as `kubectl get` does."""


def cells(columns: Mapping[str, str], fields: Sequence[str]) -> Columns:
    """Heading -> cell, of columns as `@oarlock.resource(columns=)` takes them. ``fields``: what is cached, empty for
    all of an object. Left out are columns of other fields, and those with a filter, which only the server can read.
    """
    asked = field_paths.tree((*field_paths.IDENTITY, *fields)) if fields else None
    ways = {heading.upper(): _way(path) for heading, path in columns.items() if path.removeprefix(".") != _AGE}
    return {heading: partial(_cell, way) for heading, way in ways.items() if way and _is_cached(way, asked)}


def _way(path: str) -> tuple[str, ...]:
    """The steps of a JSON path; none of one that has more than fields and positions."""
    try:
        way = field_paths.steps(path.removeprefix("."))
    except ValueError:
        return ()
    return () if "?" in path else tuple(each.strip("'\"") for each in way)


def _cell(way: Sequence[str], obj: Whole) -> object:
    found = _at(msgspec.json.decode(obj.body), way)
    return msgspec.json.encode(found).decode() if isinstance(found, dict) else found


def _at(value: Any, way: Sequence[str]) -> Any:
    if isinstance(value, list) and way and way[0].isdecimal():
        return _at(value[int(way[0])], way[1:]) if int(way[0]) < len(value) else None
    if isinstance(value, list):
        return [found for each in value if (found := _at(each, way)) is not None]
    if not way:
        return value
    return _at(value.get(way[0]), way[1:]) if isinstance(value, dict) else None


def _is_cached(way: Sequence[str], asked: field_paths.Tree | None) -> bool:
    for name in (each for each in way if not each.isdecimal()):
        if asked is None:
            return True
        if name not in asked:
            return False
        asked = asked[name]
    return True
