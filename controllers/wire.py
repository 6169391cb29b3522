"""JSON of the Kubernetes API -> model. Only what a projection needs is decoded; the rest is skipped over.

Each function takes the JSON of one whole object and returns its resourceVersion and its projection, and
raises WireError when the bytes are not such an object. As in Go's decoding, null counts as absent.
"""

from datetime import datetime
from typing import Annotated, TypeVar

import msgspec

from controllers import deletion_cost
from controllers.model import Condition, LabelSelector, OwnerRef, Pod, ReplicaSet, ReplicaSetStatus
from controllers.selector import Requirement, label_selector

STRICT_ANNOTATION = "oarlock.io/strict"
_REPLICAS_DEFAULT = 1  # what the API server fills in when spec.replicas is absent

_Time = Annotated[datetime, msgspec.Meta(tz=True)]
_T = TypeVar("_T")


class WireError(ValueError):
    """The bytes are not the JSON of the kind of object asked for."""


class _Owner(msgspec.Struct, rename="camel"):
    uid: str
    name: str = ""
    kind: str = ""
    api_version: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Annotations(msgspec.Struct):
    cost: str | None = msgspec.field(default=None, name=deletion_cost.ANNOTATION)
    strict: str | None = msgspec.field(default=None, name=STRICT_ANNOTATION)


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int | None = None
    labels: dict[str, str] | None = None
    annotations: _Annotations | None = None
    owner_references: tuple[_Owner, ...] | None = None
    creation_timestamp: _Time | None = None
    deletion_timestamp: _Time | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    restart_policy: str | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str = ""
    restart_count: int = 0


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: _Time | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    init_containers: tuple[_Container, ...] | None = None


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str | None = None
    conditions: tuple[_Condition, ...] | None = None
    container_statuses: tuple[_ContainerStatus, ...] | None = None
    init_container_statuses: tuple[_ContainerStatus, ...] | None = None


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


class _Expression(msgspec.Struct):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class _Selector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[_Expression, ...] | None = None


class _TemplateMeta(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Template(msgspec.Struct):
    metadata: _TemplateMeta | None = None


class _ReplicaSetSpec(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    min_ready_seconds: int | None = None
    selector: _Selector | None = None
    template: msgspec.Raw = msgspec.Raw(b"null")


class _ReplicaSetStatus(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    fully_labeled_replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    terminating_replicas: int | None = None
    observed_generation: int | None = None
    conditions: tuple[_Condition, ...] | None = None


class _ReplicaSet(msgspec.Struct):
    metadata: _Meta
    spec: _ReplicaSetSpec
    status: _ReplicaSetStatus | None = None


_POD = msgspec.json.Decoder(_Pod)
_REPLICASET = msgspec.json.Decoder(_ReplicaSet)
_TEMPLATE = msgspec.json.Decoder(_Template | None)


def pod_from_json(raw: bytes) -> tuple[str, Pod]:
    """A v1 Pod."""
    wire = _decoded(_POD, raw, "Pod")
    meta, spec, status = wire.metadata, wire.spec or _PodSpec(), wire.status or _PodStatus()
    ready_since_ms, ready = 0, False
    for condition in status.conditions or ():
        if condition.type == "Ready":
            ready = condition.status == "True"
            ready_since_ms = _ms(condition.last_transition_time) if ready else 0
            break
    return meta.resource_version, Pod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels or {},
        owner_refs=_owner_refs(meta),
        node_name=spec.node_name or "",
        phase=status.phase or "",
        created_ms=_ms(meta.creation_timestamp),
        deleting_ms=_ms(meta.deletion_timestamp),
        ready=ready,
        ready_since_ms=ready_since_ms,
        restarts=max([c.restart_count for c in status.container_statuses or ()], default=0),
        sidecar_restarts=_sidecar_restarts(spec, status) if spec.init_containers else 0,
        deletion_cost=deletion_cost.parse(meta.annotations.cost) if meta.annotations else 0,
    )


def replicaset_from_json(raw: bytes) -> tuple[str, ReplicaSet]:
    """An apps/v1 ReplicaSet."""
    wire = _decoded(_REPLICASET, raw, "ReplicaSet")
    meta, spec = wire.metadata, wire.spec
    return meta.resource_version, ReplicaSet(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        generation=meta.generation or 0,
        replicas=_REPLICAS_DEFAULT if spec.replicas is None else spec.replicas,
        selector=_selector(spec.selector),
        template=bytes(spec.template),
        template_labels=_template_labels(spec.template),
        min_ready_seconds=spec.min_ready_seconds or 0,
        deleting_ms=_ms(meta.deletion_timestamp),
        owner_refs=_owner_refs(meta),
        status=_status(wire.status),
        strict=bool(meta.annotations and meta.annotations.strict == "true"),
        created_ms=_ms(meta.creation_timestamp),
    )


def _decoded(decoder: msgspec.json.Decoder[_T], raw: bytes | msgspec.Raw, what: str) -> _T:
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"not a {what}: {error}") from error


def _ms(moment: datetime | None) -> int:
    """Unix milliseconds; 0 when absent, which in Go may also be spelled as a date in the year 1."""
    return 0 if moment is None else max(0, round(moment.timestamp() * 1000))


def _owner_refs(meta: _Meta) -> tuple[OwnerRef, ...]:
    return tuple(
        OwnerRef(ref.api_version, ref.kind, ref.name, ref.uid, bool(ref.controller), bool(ref.block_owner_deletion))
        for ref in meta.owner_references or ()
    )


def _sidecar_restarts(spec: _PodSpec, status: _PodStatus) -> int:
    sidecars = {c.name for c in spec.init_containers or () if c.restart_policy == "Always"}
    return max([c.restart_count for c in status.init_container_statuses or () if c.name in sidecars], default=0)


def _selector(wire: _Selector | None) -> LabelSelector | None:
    if wire is None:
        return None
    expressions = tuple(Requirement(e.key, e.operator, e.values or ()) for e in wire.match_expressions or ())
    return label_selector(wire.match_labels, expressions)


def _template_labels(raw: msgspec.Raw) -> dict[str, str]:
    template = _decoded(_TEMPLATE, raw, "pod template")
    return (template and template.metadata and template.metadata.labels) or {}


def _status(wire: _ReplicaSetStatus | None) -> ReplicaSetStatus:
    if wire is None:
        return ReplicaSetStatus()
    return ReplicaSetStatus(
        replicas=wire.replicas or 0,
        fully_labeled=wire.fully_labeled_replicas or 0,
        ready=wire.ready_replicas or 0,
        available=wire.available_replicas or 0,
        terminating=wire.terminating_replicas,
        observed_generation=wire.observed_generation or 0,
        conditions=tuple(
            Condition(c.type, c.status, c.reason or "", c.message or "", _ms(c.last_transition_time))
            for c in wire.conditions or ()
        ),
    )
