"""`meta.k8s.io/v1` Tables and PartialObjectMetadata: what `kubectl get` asks for instead of objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.errors import bad_request, quoted
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.store.events import Stored

Obj = dict[str, Any]


class Shape(StrEnum):
    """How the client wants objects (the `as` parameter of Accept)."""

    OBJECT = "object"
    TABLE = "table"
    METADATA = "metadata"


class Include(StrEnum):
    """How much of the object a row carries (the `includeObject` parameter)."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


@dataclass(frozen=True, slots=True)
class View:
    """Shape, and for tables what a row carries."""

    shape: Shape = Shape.OBJECT
    include: Include = Include.METADATA


AS_IS: Final = View()


def view_of(shape: Shape, include: str) -> View:
    """Raises ApiError 400 for an includeObject that does not exist."""
    if shape is Shape.OBJECT:
        return AS_IS
    try:
        return View(shape, Include(include) if include else Include.METADATA)
    except ValueError:
        raise bad_request(
            f'unrecognized includeObject value: {quoted(include)}: supported values: "", "Metadata", "None", "Object"'
        ) from None


def _columns(kind: Kind) -> list[dict[str, Any]]:
    return [
        {"name": c.name, "type": c.type, "format": c.format, "description": c.description, "priority": c.priority}
        for c in kind.printer.columns
    ]


def _row(kind: Kind, stored: Stored, include: Include, now_s: float) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": kind.printer.row(stored.obj, now_s)}
    if include is Include.OBJECT:
        row["object"] = orjson.Fragment(stored.raw)
    elif include is Include.METADATA:
        row["object"] = _partial(stored)
    return row


def _partial(stored: Stored) -> Obj:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": stored.obj["metadata"],
    }


def _table(kind: Kind, items: Iterable[Stored], list_meta: dict[str, Any], include: Include, now_s: float) -> bytes:
    return orjson.dumps(
        {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": list_meta,
            "columnDefinitions": _columns(kind),
            "rows": [_row(kind, stored, include, now_s) for stored in items],
        }
    )


def one(kind: Kind, stored: Stored, view: View, now_s: float) -> bytes:
    """A single object in the shape asked for."""
    if kind.custom is not None:
        stored = kind.custom.shown(stored)
    if view is AS_IS:
        return stored.raw
    if view.shape is Shape.TABLE:
        meta = {"resourceVersion": stored.obj["metadata"]["resourceVersion"]}
        return _table(kind, (stored,), meta, view.include, now_s)
    if view.shape is Shape.METADATA:
        return orjson.dumps(_partial(stored))
    return stored.raw


def many(kind: Kind, items: list[Stored], list_meta: dict[str, Any], view: View, now_s: float) -> bytes:
    """A list in the shape asked for."""
    if kind.custom is not None:
        items = [kind.custom.shown(stored) for stored in items]
    if view.shape is Shape.TABLE:
        return _table(kind, items, list_meta, view.include, now_s)
    if view.shape is Shape.METADATA:
        partial = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": list_meta,
            "items": [_partial(stored) for stored in items],
        }
        return orjson.dumps(partial)
    head = {"kind": kind.list_name, "apiVersion": kind.api_version, "metadata": list_meta}
    return b"".join((orjson.dumps(head)[:-1], b',"items":[', b",".join([s.raw for s in items]), b"]}"))


def bookmark(kind: Kind, rv: int, view: View, *, initial_events_end: bool) -> bytes:
    """One BOOKMARK line: the watcher has now seen everything up to `rv`."""
    meta: dict[str, Any] = {"resourceVersion": str(rv), "creationTimestamp": None}
    if initial_events_end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    obj: dict[str, Any]
    if view.shape is Shape.TABLE:
        obj = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
        obj |= {"columnDefinitions": _columns(kind), "rows": []}
    elif view.shape is Shape.METADATA:
        obj = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    else:
        obj = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
    return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"
