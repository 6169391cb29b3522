"""JSON of the Kubernetes API -> model. Only what a projection needs is decoded; the rest is skipped over.

Each function takes the JSON of one whole object and returns its resourceVersion and its projection, and
raises WireError when the bytes are not such an object. As in Go's decoding, null counts as absent.
"""

from functools import lru_cache

import msgspec

from oarlock.controllers.history.digest import template_digest
from oarlock.controllers.objects.model import HASH_LABEL, LabelSelector, Pod, ReplicaSet, ReplicaSetStatus
from oarlock.controllers.objects.selector import label_selector
from oarlock.controllers.objects.wire_parts import (
    STRICT_ANNOTATION,
    AnnotatedMeta,
    Meta,
    Selector,
    WireCondition,
    WireError,
    annotations_of,
    conditions_of,
    decoded,
    ms_of,
    owner_refs,
    selector_of,
    template_of,
)
from oarlock.controllers.scheduling.wire import pinned_node

__all__ = [
    "STRICT_ANNOTATION",
    "WireError",
    "pod_from_json",
    "replicaset_from_json",
    "replicationcontroller_from_json",
    "template_facts",
]

_REPLICAS_DEFAULT = 1  # what the API server fills in when spec.replicas is absent
_NO_AFFINITY = msgspec.Raw(b"")
_COST_MIN, _COST_MAX = -(2**31), 2**31 - 1
_DIGITS_MAX = len(str(_COST_MAX))
_TEMPLATES_KEPT = 1_024


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    restart_policy: str | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str = ""
    restart_count: int = 0


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    init_containers: tuple[_Container, ...] | None = None
    affinity: msgspec.Raw = _NO_AFFINITY  # read only where it may pin the pod: while it is unassigned


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str | None = None
    conditions: tuple[WireCondition, ...] | None = None
    container_statuses: tuple[_ContainerStatus, ...] | None = None
    init_container_statuses: tuple[_ContainerStatus, ...] | None = None


class _Pod(msgspec.Struct):
    metadata: Meta
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


class _TemplateMeta(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Template(msgspec.Struct):
    metadata: _TemplateMeta | None = None


class _ReplicaSetSpec(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    min_ready_seconds: int | None = None
    selector: Selector | None = None
    template: msgspec.Raw = msgspec.Raw(b"null")


class _ReplicaSetStatus(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    fully_labeled_replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    terminating_replicas: int | None = None
    observed_generation: int | None = None
    conditions: tuple[WireCondition, ...] | None = None


class _ReplicaSet(msgspec.Struct):
    metadata: AnnotatedMeta
    spec: _ReplicaSetSpec
    status: _ReplicaSetStatus | None = None


class _ReplicationControllerSpec(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    min_ready_seconds: int | None = None
    selector: dict[str, str] | None = None
    template: msgspec.Raw = msgspec.Raw(b"null")


class _ReplicationController(msgspec.Struct):
    metadata: Meta
    spec: _ReplicationControllerSpec
    status: _ReplicaSetStatus | None = None


_POD = msgspec.json.Decoder(_Pod)
_REPLICASET = msgspec.json.Decoder(_ReplicaSet)
_REPLICATIONCONTROLLER = msgspec.json.Decoder(_ReplicationController)
_TEMPLATE = msgspec.json.Decoder(_Template | None)


def pod_from_json(raw: bytes) -> tuple[str, Pod]:
    """A v1 Pod."""
    wire = decoded(_POD, raw, "Pod")
    meta, spec, status = wire.metadata, wire.spec or _PodSpec(), wire.status or _PodStatus()
    ready_since_ms, ready = 0, False
    for condition in status.conditions or ():
        if condition.type == "Ready":
            ready = condition.status == "True"
            ready_since_ms = ms_of(condition.last_transition_time) if ready else 0
            break
    return meta.resource_version, Pod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels or {},
        owner_refs=owner_refs(meta),
        node_name=spec.node_name or "",
        phase=status.phase or "",
        created_ms=ms_of(meta.creation_timestamp),
        deleting_ms=ms_of(meta.deletion_timestamp),
        ready=ready,
        ready_since_ms=ready_since_ms,
        restarts=max([c.restart_count for c in status.container_statuses or ()], default=0),
        sidecar_restarts=_sidecar_restarts(spec, status) if spec.init_containers else 0,
        deletion_cost=parse_deletion_cost(meta.annotations.cost) if meta.annotations else 0,
        pinned_node="" if spec.node_name or spec.affinity is _NO_AFFINITY else pinned_node(spec.affinity),
        hangs=bool(meta.deletion_timestamp and meta.finalizers),
    )


def replicaset_from_json(raw: bytes) -> tuple[str, ReplicaSet]:
    """An apps/v1 ReplicaSet."""
    wire = decoded(_REPLICASET, raw, "ReplicaSet")
    annotations = annotations_of(wire.metadata)
    template_labels, digest = template_facts(template_of(wire.spec.template))
    owner = _owner(wire, selector_of(wire.spec.selector), template_labels)
    return wire.metadata.resource_version, msgspec.structs.replace(
        owner,
        strict=annotations.get(STRICT_ANNOTATION) == "true",
        labels=wire.metadata.labels or {},
        annotations=annotations,
        template_digest=digest,
    )


def replicationcontroller_from_json(raw: bytes) -> tuple[str, ReplicaSet]:
    """A v1 ReplicationController in the form of a ReplicaSet. No selector stays none, an empty one empty.

    Upstream: `pkg/controller/replication/conversion.go`.
    """
    wire = decoded(_REPLICATIONCONTROLLER, raw, "ReplicationController")
    selector = None if wire.spec.selector is None else label_selector(wire.spec.selector)
    if wire.status is not None:
        wire.status.terminating_replicas = None  # the kind has no such field
    annotations = wire.metadata.annotations
    owner = _owner(wire, selector, _template_labels(wire.spec.template))
    return wire.metadata.resource_version, msgspec.structs.replace(
        owner, strict=bool(annotations and annotations.strict == "true")
    )


def _owner(
    wire: _ReplicaSet | _ReplicationController, selector: LabelSelector | None, template_labels: dict[str, str]
) -> ReplicaSet:
    meta, spec = wire.metadata, wire.spec
    return ReplicaSet(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        generation=meta.generation or 0,
        replicas=_REPLICAS_DEFAULT if spec.replicas is None else spec.replicas,
        selector=selector,
        template=template_of(spec.template),
        template_labels=template_labels,
        min_ready_seconds=spec.min_ready_seconds or 0,
        deleting_ms=ms_of(meta.deletion_timestamp),
        owner_refs=owner_refs(meta),
        status=_status(wire.status or _ReplicaSetStatus()),
        created_ms=ms_of(meta.creation_timestamp),
    )


def parse_deletion_cost(text: str | None) -> int:
    """The cost that a user puts on a pod by annotation; 0 when absent, malformed or outside 32 bits.

    Well-formed is `0`, or a first character `-` or `1`..`9` followed by a decimal integer: neither `+10` nor
    `008`, yet `-05` passes. Upstream: `pkg/apis/core/helper/helpers.go` (GetDeletionCostFromPodAnnotations).
    """
    if not text or (text != "0" and text[0] not in "-123456789"):
        return 0
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text)
    if not (digits.isascii() and digits.isdigit()):  # int() would take 1_000 too
        return 0
    digits = digits.lstrip("0")
    if len(digits) > _DIGITS_MAX:  # int() refuses thousands of them
        return 0
    cost = sign * int(digits or "0")
    return cost if _COST_MIN <= cost <= _COST_MAX else 0


def _sidecar_restarts(spec: _PodSpec, status: _PodStatus) -> int:
    sidecars = {c.name for c in spec.init_containers or () if c.restart_policy == "Always"}
    return max([c.restart_count for c in status.init_container_statuses or () if c.name in sidecars], default=0)


@lru_cache(maxsize=_TEMPLATES_KEPT)
def template_facts(template: bytes) -> tuple[dict[str, str], str]:
    """Of a pod template its labels, and the digest of all but its hash label. Raises WireError.

    Remembered, because most events of an owner change its status alone.
    """
    labels = _template_labels(template)
    try:
        return labels, template_digest(template, HASH_LABEL)
    except ValueError as error:
        raise WireError(f"not a pod template: {error}") from error


def _template_labels(raw: bytes | msgspec.Raw) -> dict[str, str]:
    template = decoded(_TEMPLATE, raw, "pod template")
    return (template and template.metadata and template.metadata.labels) or {}


def _status(wire: _ReplicaSetStatus) -> ReplicaSetStatus:
    return ReplicaSetStatus(
        replicas=wire.replicas or 0,
        fully_labeled=wire.fully_labeled_replicas or 0,
        ready=wire.ready_replicas or 0,
        available=wire.available_replicas or 0,
        terminating=wire.terminating_replicas,
        observed_generation=wire.observed_generation or 0,
        conditions=conditions_of(wire.conditions),
    )


def replicaset_template(raw: bytes) -> bytes:
    """The JSON of the template of an apps/v1 ReplicaSet, as it came. Raises WireError."""
    return template_of(decoded(_REPLICASET, raw, "ReplicaSet").spec.template)
