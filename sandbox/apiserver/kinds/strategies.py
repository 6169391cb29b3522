"""What the server itself writes into objects, whatever the client sent: per kind, on create and on update.

Follows upstream's strategies (pkg/registry/core/*/strategy.go, pkg/registry/apps/*/strategy.go):
a new object's status is the server's, the main resource never writes status, status never writes spec.
All functions return new dicts; what they are given stays as it is.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.custom import lifecycle
from oarlock.sandbox.apiserver.kinds import rollback_annotation, template_generation
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.kinds.service_address import with_kept_address
from oarlock.sandbox.apiserver.text.quantities import parse_quantity
from oarlock.sandbox.apiserver.text.times import same_moment

Obj = dict[str, Any]

_NAMESPACE_HOLD: Final = "kubernetes"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_OMITTED_IF_EMPTY: Final = ("labels", "annotations", "ownerReferences", "finalizers")
_SERVER_OWNED: Final = frozenset(
    {
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "managedFields",
        "selfLink",
    }
)
# Upstream's types always show these numbers.
_FIRST_STATUS: Final[Mapping[str, Obj]] = {
    "ReplicaSet": {"replicas": 0},
    "ReplicationController": {"replicas": 0},
    "DaemonSet": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "PersistentVolume": {"phase": "Pending"},
    "Service": {"loadBalancer": {}},
    "Ingress": {"loadBalancer": {}},
}

# The part of metadata that a write of status leaves alone; the rest of it is written with a status.
_NOT_WITH_STATUS: Final[Mapping[str, str]] = {"Pod": "ownerReferences", "Deployment": "labels"}


def for_create(kind: Kind, obj: Obj) -> Obj:
    """`obj` as it may be stored the first time, before defaulting and validation."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in _SERVER_OWNED}
    _tidy(kind, meta)
    obj = {**obj, "metadata": meta}
    if kind.name == "Pod":
        obj["status"] = {"phase": "Pending", "qosClass": _qos_class(obj.get("spec") or {})}
    elif kind.name == "Namespace":
        _carry_own_name(obj)
        spec = obj.get("spec") or {}
        finalizers = spec.get("finalizers") or []
        if _NAMESPACE_HOLD not in finalizers:
            obj["spec"] = {**spec, "finalizers": [*finalizers, _NAMESPACE_HOLD]}
        obj["status"] = {"phase": "Active"}
    elif kind.name == "CustomResourceDefinition":
        obj["status"] = lifecycle.first_status(obj)
    elif kind.has_status and kind.name != "Node":  # a kubelet registers its node with a status
        obj["status"] = dict(_FIRST_STATUS.get(kind.name, {}))
    if kind.name == "DaemonSet":
        obj = template_generation.first(obj)
    elif kind.name == "Deployment":
        obj = rollback_annotation.without_empty(obj)
    return _with_string_data(obj) if kind.name == "Secret" else obj


def with_kept_metadata(kind: Kind, new: Obj, old: Obj) -> Obj:
    """`new` with the metadata that no update may change taken from `old`."""
    meta, old_meta = dict(new["metadata"]), old["metadata"]
    _tidy(kind, meta)
    # A deletion, once asked for, cannot be taken back or put off by an update.
    if old_meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = old_meta["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old_meta and "deletionGracePeriodSeconds" not in meta:
        meta["deletionGracePeriodSeconds"] = old_meta["deletionGracePeriodSeconds"]
    meta["uid"] = old_meta["uid"]
    if same_moment(meta.get("creationTimestamp") or "", old_meta["creationTimestamp"]):
        meta["creationTimestamp"] = old_meta["creationTimestamp"]
    _keep(meta, old_meta, "generation")
    return {**new, "metadata": meta}


def for_update(kind: Kind, subresource: str, new: Obj, old: Obj) -> Obj:
    """`new` with everything that a write of this (sub)resource may not change taken from `old`."""
    meta, old_meta = with_kept_metadata(kind, new, old)["metadata"], old["metadata"]
    if subresource == "status":
        if kept := _NOT_WITH_STATUS.get(kind.name):
            _keep(meta, old_meta, kept)
        if kind.name == "Deployment":
            meta = rollback_annotation.with_status(meta, old_meta)
        merged = {**old, "metadata": meta}
        _keep(merged, new, "status")
        return merged
    merged = {**new, "metadata": meta}
    if kind.name == "Deployment":
        merged = rollback_annotation.without_empty(merged)
    if kind.has_status:
        _keep(merged, old, "status")
    if kind.name == "Service":
        merged = with_kept_address(merged, old)
    if kind.name == "Namespace":
        _carry_own_name(merged)
        if subresource != "finalize":
            # Only the finalize subresource says what still holds a namespace.
            held = (old.get("spec") or {}).get("finalizers") or []
            merged["spec"] = {**(merged.get("spec") or {}), "finalizers": held}
    return _with_string_data(merged) if kind.name == "Secret" else merged


def after_defaults(kind: Kind, subresource: str, new: Obj, old: Obj) -> Obj:
    """`new` with the fields that depend on the defaulted object."""
    if kind.name == "DaemonSet":
        return template_generation.following(new, old)
    if kind.name == "Deployment" and not subresource:
        return _with_annotations_counted(new, old)
    if kind.name == "CustomResourceDefinition":
        return lifecycle.with_stored_versions(new)
    return new


def _with_annotations_counted(new: Obj, old: Obj) -> Obj:
    """`new` with another generation if its annotations are others: they ask for rollbacks, in old clients.

    Upstream: pkg/registry/apps/deployment/strategy.go. The store counts changes of the spec.
    """
    meta, old_meta = new["metadata"], old["metadata"]
    if meta.get("annotations") == old_meta.get("annotations"):
        return new
    return {**new, "metadata": {**meta, "generation": old_meta["generation"] + 1}}


def _keep(target: Obj, source: Obj, key: str) -> None:
    """Have `target[key]` be what it is in `source`, also when it is absent there."""
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _carry_own_name(namespace: Obj) -> None:
    """Have the namespace carry its name as a label (upstream: NamespaceDefaultLabelName)."""
    meta = namespace["metadata"]
    name, labels = meta.get("name"), meta.get("labels") or {}
    if name and labels.get(_NAME_LABEL) != name:
        namespace["metadata"] = {**meta, "labels": {**labels, _NAME_LABEL: name}}


def _tidy(kind: Kind, meta: Obj) -> None:
    """Take out a namespace where there can be none (upstream: EnsureObjectNamespaceMatchesRequestNamespace).

    And what is empty, which upstream's types leave out: a released pod has no ownerReferences, not none of them.
    """
    if not kind.namespaced:
        meta.pop("namespace", None)
    for key in _OMITTED_IF_EMPTY:
        if key in meta and not meta[key]:
            del meta[key]


def _with_string_data(secret: Obj) -> Obj:
    """stringData is write-only: it ends up, encoded, in data."""
    plain = secret.get("stringData")
    if not plain:
        return secret
    data = dict(secret.get("data") or {})
    for key, text in plain.items():
        data[key] = base64.b64encode(str(text).encode()).decode()
    return {**{k: v for k, v in secret.items() if k != "stringData"}, "data": data}


def _qos_class(spec: Obj) -> str:
    """BestEffort, Burstable or Guaranteed, from the cpu and memory of every container of a pod spec.

    Upstream: pkg/apis/core/v1/helper/qos/qos.go.
    """
    some, every = False, True
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        if not resources:
            every = False
            continue
        limits, requests = _amounts(resources.get("limits")), _amounts(resources.get("requests"))
        some = some or bool(limits or requests)
        # A request left out is the limit.
        every = every and len(limits) == 2 and {**limits, **requests} == limits
    if not some:
        return "BestEffort"
    return "Guaranteed" if every else "Burstable"


def _amounts(listed: Obj | None) -> dict[str, Any]:
    """The cpu and memory above 0. What cannot be read counts as 0; validation refuses it afterwards."""
    found: dict[str, Any] = {}
    for resource in ("cpu", "memory"):
        try:
            amount = parse_quantity((listed or {}).get(resource, 0))
        except ValueError:
            continue
        if amount > 0:
            found[resource] = amount
    return found
