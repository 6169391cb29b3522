"""How the shape of an object is written down: names of fields, as in the API's JSON, and the type of each.

What all kinds share stands here too: metadata, selectors, conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
IntOrPercent = Int32 | str
Strings = list[str]
StringMap = dict[str, str]
Objects = list[dict[str, Any]]
Quantities = dict[str, str | int | float]


def shape(fields: Mapping[str, Any]) -> Any:
    """The type of an object. A key lists the fields that have one type: ``{"name image": str}``.

    Every field may be absent or null; fields that are not named are ignored.
    """
    return msgspec.defstruct("Shape", _optional(fields))


def kind(fields: Mapping[str, Any] | None = None) -> Any:
    """As ``shape``, for a whole object: it must have metadata."""
    return msgspec.defstruct("Kind", [("metadata", METADATA), *_optional(fields or {})])


def many(element: Any) -> Any:
    """A list of them."""
    return list[element]


def _optional(fields: Mapping[str, Any]) -> list[tuple[str, Any, None]]:
    return [(name, type_ | None, None) for names, type_ in fields.items() for name in names.split()]


METADATA = shape(
    {
        "name generateName namespace uid resourceVersion creationTimestamp deletionTimestamp": str,
        "generation deletionGracePeriodSeconds": int,
        "labels annotations": StringMap,
        "ownerReferences": many(
            shape({"apiVersion kind name uid": str, "controller blockOwnerDeletion": bool}),
        ),
        "finalizers": Strings,
    }
)
REQUIREMENT = shape({"key operator": str, "values": Strings})
LABEL_SELECTOR = shape({"matchLabels": StringMap, "matchExpressions": many(REQUIREMENT)})
CONDITIONS = many(shape({"type status reason message lastTransitionTime": str}))
REFERENCE = shape({"apiVersion kind namespace name uid": str})
NAMED = shape({"name": str})
