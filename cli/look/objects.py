"""Cached objects as the commands show them: decoded, as JSON, without the values of Secrets, and with their misfits."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from oarlock.broker.values.objects import Cached
from oarlock.controllers.entries import CustomController, Watched
from oarlock.controllers.objects.codec import with_template
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.registry import CONTROLLERS

REDACTED = "(redacted)"
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps the whole object."""


def decoded(resource: Watched[Any], cached: Cached) -> Any:
    """The projection as it is shown: with the template that is kept beside it."""
    obj = resource.decode(cached.blob)
    if not resource.template_apart:
        return obj
    if not cached.apart:  # it went meanwhile
        return msgspec.structs.replace(obj, template=b"")
    return with_template(obj, cached.apart)


def as_json(resource: Watched[Any], cached: Cached, obj: Any) -> dict[str, Any]:
    """A cached object as JSON: its revision, and every field of its projection by name. Of a Secret the values are left
    out. Of a kind with controllers of one's own also `misfit`: why it does not fit its type, empty if it does.
    """
    told = {"rv": cached.rv, **_plain(obj)}
    if isinstance(obj, Whole):
        told["misfit"] = misfit_of(resource, obj)
        if (resource.group, resource.kind) == ("", "Secret"):
            told["body"] = redacted(told["body"])
    return told


def misfit_of(resource: Watched[Any], obj: Whole) -> str:
    """Why a controller of the kind cannot be given the object; empty if there is no reason."""
    over = [each for each in CONTROLLERS.values() if each.resource == resource.resource]
    return next((why for each in over if isinstance(each, CustomController) and (why := each.misfit(obj))), "")


def redacted(secret: dict[str, Any]) -> dict[str, Any]:
    """A Secret with the names of its keys, and none of their values."""
    hidden: dict[str, Any] = {part: _redacted(secret[part]) for part in ("data", "stringData") if part in secret}
    meta = secret.get("metadata") or {}
    notes = meta.get("annotations") or {}
    if _APPLIED in notes:
        hidden["metadata"] = {**meta, "annotations": {**notes, _APPLIED: REDACTED}}
    return {**secret, **hidden}


def _redacted(values: Any) -> Any:
    return dict.fromkeys(values, REDACTED) if isinstance(values, dict) else REDACTED


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, bytes):
        return json.loads(value) if value else None
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return value
