"""What is judged of each object of the watch: from the API's JSON to a sighting. A parser of its own."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import msgspec

from oarlock.chaos.judge.evidence.sightings import (
    DAEMONS,
    DEPLOYMENTS,
    QUEUE_OF_KIND,
    DaemonSetSeen,
    DeploymentSeen,
    NamespaceSeen,
    NodeSeen,
    OwnerSeen,
    PodSeen,
    RevisionSeen,
    Seen,
    TaintSeen,
    Tolerance,
)

STRICT = "oarlock.io/strict"
VERSION = "chaos.oarlock.io/version"
"""Annotation of a template, and so of its pods: the load counts its changes here."""
REVISION = "controller-revision-hash"
TEMPLATE_HASH = "pod-template-hash"
"""Label of a Deployment's ReplicaSets, and of their templates: all that tells these from the Deployment's own."""
PATHS = {
    "pods": "/api/v1/pods",
    "replicasets": "/apis/apps/v1/replicasets",
    "replicationcontrollers": "/api/v1/replicationcontrollers",
    "daemonsets": "/apis/apps/v1/daemonsets",
    "deployments": "/apis/apps/v1/deployments",
    "controllerrevisions": "/apis/apps/v1/controllerrevisions",
    "nodes": "/api/v1/nodes",
    "namespaces": "/api/v1/namespaces",
}
_QUEUES = {
    "replicasets": QUEUE_OF_KIND["ReplicaSet"],
    "replicationcontrollers": QUEUE_OF_KIND["ReplicationController"],
}


class Ref(msgspec.Struct):
    """An owner reference."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Meta(msgspec.Struct, rename="camel"):
    """The metadata of an object or of a list."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Ref] | None = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _Rolling(msgspec.Struct, rename="camel"):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class _Strategy(msgspec.Struct, rename="camel"):
    type: str = "RollingUpdate"
    rolling_update: _Rolling | None = None


class _Taint(msgspec.Struct):
    key: str = ""
    effect: str = ""
    value: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    node_name: str | None = None
    affinity: dict[str, Any] | None = None
    template: dict[str, Any] | None = None
    update_strategy: _Strategy = msgspec.field(default_factory=_Strategy)
    strategy: _Strategy = msgspec.field(default_factory=_Strategy)
    min_ready_seconds: int = 0
    revision_history_limit: int = 10
    paused: bool = False
    taints: list[_Taint] | None = None


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    conditions: list[_Condition] | None = None
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0


class Object(msgspec.Struct, rename="camel"):
    """Any object of these resources, as far as it is judged."""

    metadata: Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)
    revision: int = 0
    data: dict[str, Any] | None = None


def seen(resource: str, obj: Object, gone: bool, at_s: float) -> Seen:
    """What is judged of it. ``resource`` is a key of ``PATHS``."""
    meta, status = obj.metadata, obj.status
    rv = int(meta.resource_version)
    deleting = meta.deletion_timestamp is not None
    match resource:
        case "pods":
            return _pod(obj, rv, gone, at_s)
        case "replicasets" | "replicationcontrollers":
            return OwnerSeen(
                rv,
                at_s,
                gone,
                f"{_QUEUES[resource]}:{meta.namespace}/{meta.name}",
                meta.uid,
                meta.generation,
                obj.spec.replicas or 0,
                deleting,
                (meta.annotations or {}).get(STRICT) == "true",
                status.observed_generation,
                status.replicas,
                status.ready_replicas,
                *_controller(meta),
                digest(_without_hash(obj.spec.template or {})),
                status.available_replicas,
            )
        case "daemonsets":
            return _daemon_set(obj, rv, gone, at_s)
        case "deployments":
            return _deployment(obj, rv, gone, at_s)
        case "controllerrevisions":
            owner, task = _controller(meta)
            template = ((obj.data or {}).get("spec") or {}).get("template") or {}
            label = (meta.labels or {}).get(REVISION, "")
            place = (meta.namespace, meta.name, meta.uid)
            return RevisionSeen(rv, at_s, gone, *place, owner, task, label, obj.revision, digest(template))
        case "nodes":
            taints = tuple(TaintSeen(each.key, each.effect, each.value or "") for each in obj.spec.taints or ())
            return NodeSeen(rv, at_s, gone, meta.name, meta.uid, tuple(sorted((meta.labels or {}).items())), taints)
        case _:
            return NamespaceSeen(rv, at_s, gone, meta.name, deleting)


def digest(template: Any) -> str:
    """Equal for templates that mean the same: without nulls and ``$patch``, in whatever order."""
    return hashlib.sha256(msgspec.json.encode(_plain(template), order="sorted")).hexdigest()[:16]


def _without_hash(template: dict[str, Any]) -> dict[str, Any]:
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != TEMPLATE_HASH}
    return {**template, "metadata": {**meta, "labels": labels}}


def _version(template: dict[str, Any]) -> str:
    return str(((template.get("metadata") or {}).get("annotations") or {}).get(VERSION, ""))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if each is not None and key != "$patch"}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _controller(meta: Meta) -> tuple[str, str]:
    """Uid and task of the controller; "" and "" where there is none."""
    for ref in meta.owner_references or ():
        if ref.controller:
            return ref.uid, f"{QUEUE_OF_KIND.get(ref.kind, ref.kind.lower())}:{meta.namespace}/{ref.name}"
    return "", ""


def _pod(obj: Object, rv: int, gone: bool, at_s: float) -> PodSeen:
    meta, status = obj.metadata, obj.status
    owner, task = _controller(meta)
    labels = meta.labels or {}
    ready = next((each for each in status.conditions or () if each.type == "Ready" and each.status == "True"), None)
    return PodSeen(
        rv,
        at_s,
        gone,
        meta.namespace,
        meta.name,
        meta.uid,
        owner,
        task,
        ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        obj.spec.node_name or "",
        meta.deletion_timestamp is not None,
        status.phase,
        ready is not None,
        _pinned(obj.spec.affinity or {}),
        unix_s(ready.last_transition_time) if ready is not None else 0.0,
        labels.get(REVISION, ""),
        (meta.annotations or {}).get(VERSION, ""),
    )


def _pinned(affinity: dict[str, Any]) -> str:
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("operator") == "In" and len(field["values"]) == 1:
                return str(field["values"][0])
    return ""


def _daemon_set(obj: Object, rv: int, gone: bool, at_s: float) -> DaemonSetSeen:
    meta, spec, status = obj.metadata, obj.spec, obj.status
    template = spec.template or {}
    placed = template.get("spec") or {}
    rolling = spec.update_strategy.rolling_update or _Rolling()
    return DaemonSetSeen(
        rv,
        at_s,
        gone,
        f"{DAEMONS}:{meta.namespace}/{meta.name}",
        meta.uid,
        meta.generation,
        meta.deletion_timestamp is not None,
        spec.update_strategy.type,
        "" if rolling.max_unavailable is None else str(rolling.max_unavailable),
        "" if rolling.max_surge is None else str(rolling.max_surge),
        spec.min_ready_seconds,
        tuple(sorted((placed.get("nodeSelector") or {}).items())),
        tuple(
            Tolerance(*(str(each.get(name) or "") for name in Tolerance._fields))
            for each in placed.get("tolerations") or ()
        ),
        digest(template),
        _version(template),
        status.observed_generation,
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_misscheduled,
        status.number_ready,
        status.updated_number_scheduled,
        status.number_available,
        status.number_unavailable,
    )


def _deployment(obj: Object, rv: int, gone: bool, at_s: float) -> DeploymentSeen:
    meta, spec, status = obj.metadata, obj.spec, obj.status
    rolling = spec.strategy.rolling_update or _Rolling()
    template = spec.template or {}
    return DeploymentSeen(
        rv,
        at_s,
        gone,
        f"{DEPLOYMENTS}:{meta.namespace}/{meta.name}",
        meta.uid,
        meta.generation,
        spec.replicas or 0,
        meta.deletion_timestamp is not None,
        spec.strategy.type,
        "" if rolling.max_surge is None else str(rolling.max_surge),
        "" if rolling.max_unavailable is None else str(rolling.max_unavailable),
        spec.paused,
        spec.min_ready_seconds,
        spec.revision_history_limit,
        digest(_without_hash(template)),
        _version(template),
        status.observed_generation,
        (
            status.replicas,
            status.updated_replicas,
            status.ready_replicas,
            status.available_replicas,
            status.unavailable_replicas,
        ),
    )


def unix_s(text: str | None) -> float:
    """A timestamp of the API; 0 for none."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0
