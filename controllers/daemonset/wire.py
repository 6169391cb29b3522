"""JSON of an apps/v1 DaemonSet -> model."""

import msgspec

from oarlock.controllers.daemonset.model import (
    REVISION_HISTORY_LIMIT_DEFAULT,
    ROLLING_UPDATE,
    DaemonSet,
    DaemonSetStatus,
)
from oarlock.controllers.history.digest import template_digest
from oarlock.controllers.objects.wire_parts import (
    Meta,
    Selector,
    WireError,
    decoded,
    ms_of,
    owner_refs,
    parse_int64,
    selector_of,
    template_of,
)
from oarlock.controllers.scheduling.wire import placement_from_template


class _RollingUpdate(msgspec.Struct, rename="camel"):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class _Strategy(msgspec.Struct, rename="camel"):
    type: str | None = None
    rolling_update: _RollingUpdate | None = None


class _Spec(msgspec.Struct, rename="camel"):
    selector: Selector | None = None
    template: msgspec.Raw = msgspec.Raw(b"null")
    update_strategy: _Strategy | None = None
    min_ready_seconds: int | None = None
    revision_history_limit: int | None = None


class _Status(msgspec.Struct, rename="camel"):
    desired_number_scheduled: int | None = None
    current_number_scheduled: int | None = None
    number_misscheduled: int | None = None
    number_ready: int | None = None
    updated_number_scheduled: int | None = None
    number_available: int | None = None
    number_unavailable: int | None = None
    observed_generation: int | None = None
    collision_count: int | None = None


class _DaemonSet(msgspec.Struct):
    metadata: Meta
    spec: _Spec
    status: _Status | None = None


_DAEMONSET = msgspec.json.Decoder(_DaemonSet)


def daemonset_from_json(raw: bytes) -> tuple[str, DaemonSet]:
    """An apps/v1 DaemonSet: its resourceVersion and its projection. Raises WireError."""
    wire = decoded(_DAEMONSET, raw, "DaemonSet")
    meta, spec = wire.metadata, wire.spec
    strategy = spec.update_strategy or _Strategy()
    rolling = strategy.rolling_update or _RollingUpdate()
    limit = spec.revision_history_limit
    template = template_of(spec.template)
    return meta.resource_version, DaemonSet(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        generation=meta.generation or 0,
        selector=selector_of(spec.selector),
        template=template,
        template_digest=_digest(template),
        placement=placement_from_template(template),
        strategy=strategy.type or ROLLING_UPDATE,
        max_unavailable=rolling.max_unavailable,
        max_surge=rolling.max_surge,
        min_ready_seconds=spec.min_ready_seconds or 0,
        revision_history_limit=REVISION_HISTORY_LIMIT_DEFAULT if limit is None else limit,
        template_generation=_template_generation(meta),
        deleting_ms=ms_of(meta.deletion_timestamp),
        owner_refs=owner_refs(meta),
        status=_status(wire.status or _Status()),
        created_ms=ms_of(meta.creation_timestamp),
    )


def _digest(template: bytes) -> str:
    try:
        return template_digest(template)
    except ValueError as error:
        raise WireError(f"not a pod template: {error}") from error


def _template_generation(meta: Meta) -> int | None:
    text = meta.annotations and meta.annotations.template_generation
    return parse_int64(text) if text else None


def _status(wire: _Status) -> DaemonSetStatus:
    return DaemonSetStatus(
        desired=wire.desired_number_scheduled or 0,
        current=wire.current_number_scheduled or 0,
        misscheduled=wire.number_misscheduled or 0,
        ready=wire.number_ready or 0,
        updated=wire.updated_number_scheduled or 0,
        available=wire.number_available or 0,
        unavailable=wire.number_unavailable or 0,
        observed_generation=wire.observed_generation or 0,
        collision_count=wire.collision_count,
    )
