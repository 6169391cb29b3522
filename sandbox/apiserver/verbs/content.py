"""What a kind's objects may hold, from the rooms that know it: built-in kinds by name, custom ones by their rules."""

from __future__ import annotations

from typing import Any

from oarlock.sandbox.apiserver import defaulting, validation
from oarlock.sandbox.apiserver.custom.rules import CustomRules
from oarlock.sandbox.apiserver.errors import FieldError, bad_request, quoted, unsupported_media_type
from oarlock.sandbox.apiserver.kinds import strategies
from oarlock.sandbox.apiserver.kinds.kind import Kind
from oarlock.sandbox.apiserver.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.validation.metadata import metadata_errors, metadata_update_errors

Obj = dict[str, Any]


def check_patch_type(kind: Kind, content_type: str) -> None:
    """Raises ApiError 415: a strategic merge patch needs the tags of a built-in kind."""
    if kind.custom is not None and content_type.partition(";")[0].strip().lower() == STRATEGIC_PATCH:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            f"{JSON_PATCH}, {MERGE_PATCH}"
        )


def for_create(kind: Kind, obj: Obj, *, strict: bool = False) -> Obj:
    """A new object with what the server writes, and with its defaults.

    Raises ApiError 400 for unknown fields of a custom one, if `strict`.
    """
    made = strategies.for_create(kind, obj)
    if kind.custom is None:
        return defaulting.apply(kind.name, made)
    return _received(kind, kind.custom, kind.custom.for_create(made), strict)


def for_update(kind: Kind, subresource: str, new: Obj, old: Obj, *, strict: bool = False) -> Obj:
    """`new` as it may replace `old`, with what the server writes, and with its defaults. Raises as `for_create`."""
    if kind.custom is not None:
        kept = kind.custom.for_update(subresource, strategies.with_kept_metadata(kind, new, old), old)
        return _received(kind, kind.custom, kept, strict)
    made = defaulting.apply(kind.name, strategies.for_update(kind, subresource, new, old), old)
    return strategies.after_defaults(kind, subresource, made, old)


def _received(kind: Kind, rules: CustomRules, obj: Obj, strict: bool) -> Obj:
    dropped: list[str] = []
    formed = rules.received(obj, dropped)
    if strict and dropped:
        told = ", ".join(f"unknown field {quoted(path)}" for path in dropped)
        what = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
        raise bad_request(f"{what}: strict decoding error: {told}")
    return formed


def create_errors(kind: Kind, obj: Obj) -> list[FieldError]:
    """What is wrong with a new object; empty if it may be stored."""
    if kind.custom is None:
        return validation.validate_create(kind.name, obj)
    return [*metadata_errors(obj["metadata"], kind.namespaced, names.dns_subdomain), *kind.custom.errors(obj)]


def update_errors(kind: Kind, new: Obj, old: Obj) -> list[FieldError]:
    """What is wrong with replacing `old` by `new`; empty if it may be stored."""
    if kind.custom is None:
        return validation.validate_update(kind.name, new, old)
    return [*metadata_update_errors(new["metadata"], old["metadata"]), *kind.custom.errors(new)]


def to_store(kind: Kind, obj: Obj) -> Obj:
    """`obj`, of the version asked for, as it is stored."""
    return obj if kind.custom is None else kind.custom.to_store(obj)


def from_store(kind: Kind, obj: Obj) -> Obj:
    """A stored object in the version asked for."""
    return obj if kind.custom is None else kind.custom.from_store(obj)
