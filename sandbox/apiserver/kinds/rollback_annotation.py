"""The revision that a Deployment is to go back to: a field in old API groups, which apps/v1 shows as an annotation.

Upstream: pkg/apis/apps/v1/conversion.go moves it between the annotation and a field of the spec that clients do not
see. So a write of status leaves it alone, it has to be a number, and an empty one is none.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.errors import bad_request, quoted

Obj = dict[str, Any]

ANNOTATION: Final = "deprecated.deployment.rollback.to"
_INT64_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = 19


def revision(obj: Obj) -> int | None:
    """The number; None where none is asked for. Raises ApiError 400 where the annotation is no number."""
    text = (obj["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not text:
        return None
    digits = text[1:] if text[:1] in ("-", "+") else text
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX
    if not is_number or abs(int(text)) > _INT64_MAX:
        raise bad_request(
            f"failed to parse annotation[{ANNOTATION}]={text} as int64: parsing {quoted(text)}: invalid syntax"
        )
    return int(text)


def with_status(meta: Obj, old_meta: Obj) -> Obj:
    """The metadata that a write of status brings, with the annotation as it was before."""
    annotations, kept = meta.get("annotations") or {}, (old_meta.get("annotations") or {}).get(ANNOTATION)
    if annotations.get(ANNOTATION) == kept:
        return meta
    without = _without(meta)
    return without if kept is None else {**without, "annotations": {**without.get("annotations", {}), ANNOTATION: kept}}


def without_empty(obj: Obj) -> Obj:
    """`obj` without the annotation where that says nothing. Raises ApiError 400 where it is no number."""
    meta = obj["metadata"]
    if ANNOTATION not in (meta.get("annotations") or {}) or revision(obj) is not None:
        return obj
    return {**obj, "metadata": _without(meta)}


def _without(meta: Obj) -> Obj:
    left = {key: value for key, value in (meta.get("annotations") or {}).items() if key != ANNOTATION}
    others = {key: value for key, value in meta.items() if key != "annotations"}
    return {**others, "annotations": left} if left else others
