"""Patches of API objects: JSON patch, merge patch and strategic merge patch.

Every function here is pure: the document handed in is never changed. The answer shares what the patch did not
touch with it (copy on the path only), so a small patch of a large pod costs microseconds; neither may be
changed in place afterwards.

Wiring: `apply(content_type, kind, document, patch)` from the PATCH handler, with the body already parsed;
then `uid_conflict(current, patched)`, which is a 409 when not None. Server-side apply
(`application/apply-patch+yaml`) is not one of these: see `apply/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oarlock.sandbox.apiserver.errors import bad_request, does_not_apply, unsupported_media_type
from oarlock.sandbox.apiserver.patches.json_patch import apply_json_patch
from oarlock.sandbox.apiserver.patches.schema import schema_of
from oarlock.sandbox.apiserver.patches.strategic import apply_strategic_patch

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

__all__ = [
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_PATCH",
    "apply",
    "apply_json_patch",
    "apply_merge_patch",
    "apply_strategic_patch",
    "schema_of",
    "uid_conflict",
]


def apply(content_type: str, kind: str, document: Mapping[str, Any], patch: Any) -> dict[str, Any]:
    """The patched document; `document` is left as it is.

    `content_type` may carry parameters (`; charset=utf-8`). `kind` picks the merge keys of a strategic patch.
    Raises ApiError: 400 for what is no patch, 422 for one that does not apply, 415 for another
    content type.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == STRATEGIC_PATCH:
        result = apply_strategic_patch(document, patch, schema_of(kind))
    elif media_type == MERGE_PATCH:
        if not isinstance(patch, dict):
            raise bad_request("Invalid JSON Patch: a merge patch must be an object")
        result = apply_merge_patch(document, patch)
    elif media_type == JSON_PATCH:
        result = apply_json_patch(document, patch)
    else:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join((JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH))
        )
    if not isinstance(result, dict):
        raise does_not_apply("the patched document is not an object")
    return result


def apply_merge_patch(document: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386): objects merge, null removes, anything else replaces.

    Copies only the objects the patch goes through. Nulls inside a new object are dropped as well (section 2), so the
    answer has no null that `document` did not have.
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


def uid_conflict(current: Mapping[str, Any], patched: Mapping[str, Any]) -> str | None:
    """Why a body with a `metadata.uid` does not mean this object, or None when it may.

    A PUT is then answered 409 Conflict with this text (upstream: registry/rest/update.go, where the uid of the new
    object is a precondition), a PATCH 422 Invalid: patches have no such precondition, and the uid is immutable.
    """
    have = current["metadata"].get("uid")
    metadata = patched.get("metadata")
    want = metadata.get("uid") if isinstance(metadata, dict) else None
    if want is None or want == have:
        return None
    return f"Precondition failed: UID in precondition: {want}, UID in object meta: {have}"
