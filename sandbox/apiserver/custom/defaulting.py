"""Defaults of a structural schema, and nulls that give way to them.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting (algorithm.go, prunenulls.go).
Pure: parts that lack nothing are shared with the answer.
"""

from __future__ import annotations

from typing import Any

from oarlock.sandbox.apiserver.custom.structural import Schema, of_others, properties


def has_defaults(schema: Schema) -> bool:
    """Whether any part of the schema has a default."""
    parts = [*properties(schema).values(), of_others(schema), schema.get("items")]
    return "default" in schema or any(has_defaults(part) for part in parts if isinstance(part, dict))


def defaulted(value: Any, schema: Schema) -> Any:
    """`value` with the defaults of fields that are absent, or null where null is not allowed. A field that is null, may
    not be, and has no default is dropped.
    """
    if isinstance(value, dict):
        return _object(value, schema)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        filled = [defaulted(_unless_null(item, items), items) for item in value]
        return value if all(new is old for new, old in zip(filled, value, strict=True)) else filled
    return value


def _unless_null(value: Any, schema: Schema) -> Any:
    return schema["default"] if value is None and "default" in schema and not schema.get("nullable") else value


def _object(value: dict[str, Any], schema: Schema) -> dict[str, Any]:
    known, others = properties(schema), of_others(schema)
    filled = dict(value)
    for name, part in known.items():
        if "default" in part and (name not in filled or (filled[name] is None and not part.get("nullable"))):
            filled[name] = part["default"]
    for name, inner in list(filled.items()):
        part_of = known.get(name, others)
        if part_of is not None and inner is None and "default" not in part_of and not part_of.get("nullable"):
            del filled[name]
        elif part_of is not None:
            filled[name] = defaulted(_unless_null(inner, part_of), part_of)
    same = filled.keys() == value.keys() and all(filled[name] is value[name] for name in value)
    return value if same else filled
