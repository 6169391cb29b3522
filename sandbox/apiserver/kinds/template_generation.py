"""How often a DaemonSet's template has changed: a number that apps/v1 shows as an annotation only.

Upstream: pkg/registry/apps/daemonset/strategy.go counts it, pkg/apis/apps/v1/conversion.go moves it between the
annotation and a field that clients do not see. A client cannot change it once the DaemonSet is there.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.errors import bad_request, quoted

Obj = dict[str, Any]

ANNOTATION: Final = "deprecated.daemonset.template.generation"
_INT64_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = 19


def first(obj: Obj) -> Obj:
    """A new DaemonSet with its number, at least 1. Raises ApiError 400 where the annotation is no number."""
    return _with(obj, max(1, _said(obj)))


def following(new: Obj, old: Obj) -> Obj:
    """`new`, defaulted, with the number of `old`, plus one if the template is another.

    Raises ApiError 400 where the annotation is no number.
    """
    _said(new)
    template, old_template = ((obj.get("spec") or {}).get("template") for obj in (new, old))
    changed = template is not old_template and template != old_template
    return _with(new, max(1, _said(old)) + changed)


def _said(obj: Obj) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return 0
    digits = text[1:] if text[:1] in ("-", "+") else text
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX
    if not is_number or abs(int(text)) > _INT64_MAX:
        raise bad_request(f"annotation {ANNOTATION}: {quoted(text)} is not a 64-bit integer")
    return int(text)


def _with(obj: Obj, number: int) -> Obj:
    meta = obj["metadata"]
    annotations = meta.get("annotations") or {}
    if annotations.get(ANNOTATION) == str(number):
        return obj
    return {**obj, "metadata": {**meta, "annotations": {**annotations, ANNOTATION: str(number)}}}
