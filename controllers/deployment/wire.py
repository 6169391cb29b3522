"""JSON of an apps/v1 Deployment -> model."""

import msgspec

from oarlock.controllers.deployment.model import (
    ROLLING_UPDATE,
    Deployment,
    DeploymentCondition,
    DeploymentStatus,
)
from oarlock.controllers.objects.model import HASH_LABEL
from oarlock.controllers.objects.wire import template_facts
from oarlock.controllers.objects.wire_parts import (
    AnnotatedMeta,
    Selector,
    Time,
    annotations_of,
    decoded,
    ms_of,
    owner_refs,
    selector_of,
    template_of,
)

_REPLICAS_DEFAULT = 1  # what the API server fills in when spec.replicas is absent
_UNLIMITED = 2**31 - 1  # how older API groups spell that there is no limit


class _RollingUpdate(msgspec.Struct, rename="camel"):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class _Strategy(msgspec.Struct, rename="camel"):
    type: str | None = None
    rolling_update: _RollingUpdate | None = None


class _Spec(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    selector: Selector | None = None
    template: msgspec.Raw = msgspec.Raw(b"null")
    strategy: _Strategy | None = None
    min_ready_seconds: int | None = None
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    paused: bool | None = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_update_time: Time | None = None
    last_transition_time: Time | None = None


class _Status(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    updated_replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    unavailable_replicas: int | None = None
    terminating_replicas: int | None = None
    observed_generation: int | None = None
    collision_count: int | None = None
    conditions: tuple[_Condition, ...] | None = None


class _Deployment(msgspec.Struct):
    metadata: AnnotatedMeta
    spec: _Spec
    status: _Status | None = None


_DEPLOYMENT = msgspec.json.Decoder(_Deployment)


def deployment_from_json(raw: bytes) -> tuple[str, Deployment]:
    """An apps/v1 Deployment: its resourceVersion and its projection. Raises WireError."""
    wire = decoded(_DEPLOYMENT, raw, "Deployment")
    meta, spec = wire.metadata, wire.spec
    strategy = spec.strategy or _Strategy()
    rolling = strategy.rolling_update or _RollingUpdate()
    template = template_of(spec.template)
    labels, digest = template_facts(template)
    return meta.resource_version, Deployment(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        generation=meta.generation or 0,
        replicas=_REPLICAS_DEFAULT if spec.replicas is None else spec.replicas,
        selector=selector_of(spec.selector),
        template=template,
        template_digest=digest,
        template_labels={key: value for key, value in labels.items() if key != HASH_LABEL},
        annotations=annotations_of(meta),
        strategy=strategy.type or ROLLING_UPDATE,
        max_surge=rolling.max_surge,
        max_unavailable=rolling.max_unavailable,
        min_ready_seconds=spec.min_ready_seconds or 0,
        revision_history_limit=_limit(spec.revision_history_limit),
        progress_deadline_seconds=_limit(spec.progress_deadline_seconds),
        paused=bool(spec.paused),
        deleting_ms=ms_of(meta.deletion_timestamp),
        owner_refs=owner_refs(meta),
        status=_status(wire.status),
        created_ms=ms_of(meta.creation_timestamp),
    )


def _limit(value: int | None) -> int | None:
    return None if value == _UNLIMITED else value


def _status(wire: _Status | None) -> DeploymentStatus:
    if wire is None:
        return DeploymentStatus()
    return DeploymentStatus(
        replicas=wire.replicas or 0,
        updated=wire.updated_replicas or 0,
        ready=wire.ready_replicas or 0,
        available=wire.available_replicas or 0,
        unavailable=wire.unavailable_replicas or 0,
        terminating=wire.terminating_replicas,
        observed_generation=wire.observed_generation or 0,
        collision_count=wire.collision_count,
        conditions=tuple(_condition(each) for each in wire.conditions or ()),
    )


def _condition(wire: _Condition) -> DeploymentCondition:
    return DeploymentCondition(
        wire.type,
        wire.status,
        wire.reason or "",
        wire.message or "",
        ms_of(wire.last_update_time),
        ms_of(wire.last_transition_time),
    )
