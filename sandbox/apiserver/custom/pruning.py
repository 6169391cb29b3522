"""Pruning: fields that a structural schema does not name are dropped.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go and
pkg/apiserver/schema/objectmeta. Pure: what is handed in stays as it is, and parts that lose nothing are shared.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.custom.structural import EMBEDDED, PRESERVE, Schema, of_others, properties

_OF_RESOURCES: Final = ("apiVersion", "kind", "metadata")
"""Fields that every object has, whatever its schema says."""


def pruned(obj: dict[str, Any], schema: Schema, dropped: list[str] | None = None) -> dict[str, Any]:
    """A whole object without unknown fields. Their paths are appended to `dropped`."""
    found: dict[str, Any] = _pruned(obj, schema, "", [] if dropped is None else dropped, is_resource=True)
    return found


def _pruned(value: Any, schema: Schema, path: str, dropped: list[str], *, is_resource: bool = False) -> Any:
    if isinstance(value, dict):
        return _object(value, schema, path, dropped, is_resource or bool(schema.get(EMBEDDED)))
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        kept = [_pruned(item, items, f"{path}[{index}]", dropped) for index, item in enumerate(value)]
        return value if all(new is old for new, old in zip(kept, value, strict=True)) else kept
    return value


def _object(value: dict[str, Any], schema: Schema, path: str, dropped: list[str], is_resource: bool) -> dict[str, Any]:
    known, others, preserve = properties(schema), of_others(schema), schema.get(PRESERVE)
    free = preserve or schema.get("additionalProperties") is True
    kept: dict[str, Any] = {}
    same = True
    for name, inner in value.items():
        if is_resource and name in _OF_RESOURCES:
            kept[name] = inner
            continue
        part = known.get(name, others)
        if part is None and not free:
            dropped.append(f"{path}.{name}" if path else name)
            same = False
            continue
        kept[name] = inner if part is None else _pruned(inner, part, f"{path}.{name}" if path else name, dropped)
        same = same and kept[name] is inner
    return value if same else kept
