"""The options of an apply and of a tracked write, and the body of an apply."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import yaml

from oarlock.sandbox.apiserver.apply.field_sets import FieldSet
from oarlock.sandbox.apiserver.apply.field_types import FieldType, type_of_kind, type_of_schema
from oarlock.sandbox.apiserver.apply.last_applied import KUBECTL, free_to_take, kept_up
from oarlock.sandbox.apiserver.apply.managers import (
    MANAGER_CHARS_MAX,
    Writer,
    applied,
    entries_after_write,
    is_tracked,
    manager_of_agent,
)
from oarlock.sandbox.apiserver.apply.typed import NotTyped
from oarlock.sandbox.apiserver.custom.rules import CustomRules
from oarlock.sandbox.apiserver.defaulting import drop_nulls
from oarlock.sandbox.apiserver.errors import ApiError, FieldError, bad_request, invalid
from oarlock.sandbox.apiserver.kinds.kind import Kind
from oarlock.sandbox.apiserver.text.times import rfc3339

Obj = dict[str, Any]
Params = Mapping[str, str]

AGENT: Final = "User-Agent"
"""The parameter in which the HTTP handler hands on who asks; no client can send it, as the handler writes it last."""

_MAIN: Final[FieldSet] = {"f:status": {}}
_STATUS: Final[FieldSet] = {"f:spec": {}}


def check_options(params: Params, *, applying: bool) -> None:
    """Raises ApiError 422 for bad options (upstream: apimachinery/pkg/apis/meta/v1/validation/validation.go)."""
    errors = []
    manager = params.get("fieldManager", "")
    if applying and not manager:
        errors.append(FieldError.required("fieldManager", "is required for apply patch"))
    if not applying and params.get("force"):
        errors.append(FieldError.forbidden("force", "may not be specified for non-apply patch"))
    if len(manager) > MANAGER_CHARS_MAX:
        errors.append(FieldError.too_long("fieldManager", MANAGER_CHARS_MAX))
    if not manager.isprintable():
        errors.append(FieldError.invalid("fieldManager", manager, "should only contain printable characters"))
    if errors:
        raise invalid("PatchOptions", "meta.k8s.io", "", errors)


def decode_apply(body: bytes) -> Obj:
    """The object that is applied, YAML or JSON, without nulls. Raises ApiError 400."""
    try:
        config = yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    if not isinstance(config, dict):
        raise bad_request("error decoding YAML: an applied object must be an object")
    for field in ("apiVersion", "kind"):
        if not config.get(field):
            raise bad_request(f"error decoding YAML: the applied object has no {field}")
    config = drop_nulls(config)
    meta = config.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    return dict(config)


def apply_config(
    kind: Kind, subresource: str, live: Obj | None, config: Obj, params: Params, now_s: float
) -> tuple[Obj, list[Obj]]:
    """The object once `config` is applied to it, and its managers. Raises ApiError 400, 409."""
    writer = _writer(kind, subresource, params, now_s)
    force = params.get("force", "").lower() in ("true", "1")
    reset = _reset(kind, subresource)
    type_ = _type_of(kind)
    try:
        if writer.manager != KUBECTL:
            return applied(live, config, writer, type_, force=force, reset=reset)
        allowed = free_to_take(live, type_)
        obj, entries = applied(live, config, writer, type_, force=force, reset=reset, allowed=allowed)
        return kept_up(obj, config), entries
    except NotTyped as problem:
        raise ApiError(500, "", f"failed to create typed patch object: {problem}") from None


def entries_of(kind: Kind, subresource: str, old: Obj | None, new: Obj, params: Params, now_s: float) -> list[Obj]:
    """The managers after a create, update or patch of an object; none if its kind is not tracked yet.

    A writer may set managedFields: that is how kubectl takes over fields. One empty entry, or none, resets them.
    """
    stored = old["metadata"].get("managedFields") if old is not None else None
    said = new["metadata"].get("managedFields") if old is not None else None
    entries: list[Obj] = said if isinstance(said, list) and _readable(said) else stored or []
    if said is not None and said in ([], [{}]):
        return []
    if not is_tracked(kind.name, entries):
        return []
    writer = _writer(kind, subresource, params, now_s)
    reset = _reset(kind, subresource)
    try:
        return entries_after_write(old, new, entries, writer, _type_of(kind), reset)
    except NotTyped:
        # Upstream keeps the managers of an object that its own schema cannot read as they were.
        return list(entries)


def with_entries(obj: Obj, entries: list[Obj]) -> Obj:
    """`obj` with these managers."""
    if not entries and "managedFields" not in obj["metadata"]:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def _type_of(kind: Kind) -> FieldType:
    return type_of_kind(kind.name) if kind.custom is None else _type_of_custom(kind.custom)


@lru_cache(maxsize=256)
def _type_of_custom(rules: CustomRules) -> FieldType:
    return type_of_schema(rules.schema)


def _writer(kind: Kind, subresource: str, params: Params, now_s: float) -> Writer:
    manager = params.get("fieldManager") or manager_of_agent(params.get(AGENT, ""))
    return Writer(manager, kind.api_version, subresource, rfc3339(now_s))


def _reset(kind: Kind, subresource: str) -> FieldSet:
    """What a write through this part cannot change (upstream: GetResetFields of the strategies)."""
    if subresource == "status":
        return _STATUS
    return _MAIN if kind.has_status else {}


def _readable(entries: Any) -> bool:
    """Whether what a writer says of the managers can be kept. What cannot is ignored, as upstream does."""
    texts = ("manager", "apiVersion", "time", "subresource")
    return isinstance(entries, list) and all(
        isinstance(each, dict)
        and each.get("operation") in ("Apply", "Update")
        and all(isinstance(each.get(text, ""), str) for text in texts)
        and isinstance(each.get("fieldsV1"), dict)
        and _is_field_set(each["fieldsV1"])
        for each in entries
    )


def _is_field_set(node: Any) -> bool:
    return isinstance(node, dict) and all(map(_is_field_set, node.values()))
