"""Defaults inside an object: one field changed, and the pod templates that many kinds have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from oarlock.sandbox.apiserver.defaulting.spec_memo import SpecMemo

Obj = dict[str, Any]

_TEMPLATE_SPECS: Final = SpecMemo()


def within(obj: Obj, field: str, change: Callable[[Obj], Obj]) -> Obj:
    """`obj` with `change` made to the object in `field`; an absent one counts as empty."""
    old = obj.get(field)
    new = change(old if old is not None else {})
    return obj if new is old else {**obj, field: new}


def default_template(template: Obj) -> Obj:
    """A pod template, as all owners of pods have it."""
    return within(template, "spec", _TEMPLATE_SPECS.defaulted)
