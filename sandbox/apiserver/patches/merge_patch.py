"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def apply_merge_patch(document: Any, patch: Any) -> Any:
    """`document` with `patch` merged in: objects merge, null removes, anything else replaces.

    Copies only the objects the patch goes through. Nulls inside a new object are dropped as well (RFC 7386
    section 2), so the answer has no null that `document` did not have.
    """
    if not isinstance(patch, dict):
        return patch
    merged: dict[str, Any] = dict(document) if isinstance(document, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = apply_merge_patch(merged.get(key), value)
        else:
            merged[key] = value
    return merged
