"""The kinds this API serves. A new kind is an entry in `KINDS`; nothing else has to know of it.

An entry says the name and the group, and which details of the verbs apply: scope, subresources, generation, graceful
deletion, default propagation. How `kubectl get` prints the kind (`printing`), and the rules about the content of its
objects (`shapes`, `defaulting`, `validation`), are found there by the kind's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from oarlock.sandbox.apiserver.kinds.kind import Cascade, Kind
from oarlock.sandbox.apiserver.kinds.selectable_fields import (
    event_fields,
    namespace_fields,
    node_fields,
    pod_fields,
    replica_fields,
    secret_fields,
)

__all__ = ["KINDS", "STORED_KINDS", "Cascade", "Kind"]

_STATUS: Final = frozenset({"status"})
_SCALE: Final = frozenset({"status", "scale"})
_ALL: Final = ("all",)
_EXTENSIONS: Final = ("api-extensions",)
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"

_SERVED: Final = (
    Kind(
        "Namespace",
        short_names=("ns",),
        namespaced=False,
        subresources=frozenset({"status", "finalize"}),
        selectable=namespace_fields,
    ),
    Kind("Node", short_names=("no",), namespaced=False, subresources=_STATUS, selectable=node_fields),
    Kind(
        "Pod",
        short_names=("po",),
        categories=_ALL,
        subresources=frozenset({"status", "binding", "eviction"}),
        graceful=True,
        returns_deleted=True,
        selectable=pod_fields,
    ),
    Kind(
        "ReplicaSet",
        group="apps",
        short_names=("rs",),
        categories=_ALL,
        subresources=_SCALE,
        has_generation=True,
        selectable=replica_fields,
    ),
    Kind(
        "ReplicationController",
        short_names=("rc",),
        categories=_ALL,
        subresources=_SCALE,
        has_generation=True,
        # Upstream: pkg/registry/core/replicationcontroller/strategy.go; kept for clients older than the collector.
        cascade=Cascade.ORPHAN,
        selectable=replica_fields,
    ),
    Kind(
        "Deployment", group="apps", short_names=("deploy",), categories=_ALL, subresources=_SCALE, has_generation=True
    ),
    Kind("DaemonSet", group="apps", short_names=("ds",), categories=_ALL, subresources=_STATUS, has_generation=True),
    Kind("ControllerRevision", group="apps"),
    Kind("Event", short_names=("ev",), create_on_update=True, cascade=Cascade.UNSUPPORTED, selectable=event_fields),
    Kind("Lease", group="coordination.k8s.io", unconditional_update=False, create_on_update=True),
    Kind("ResourceQuota", short_names=("quota",), subresources=_STATUS),
    Kind("ServiceAccount", short_names=("sa",), returns_deleted=True),
    Kind("ConfigMap", short_names=("cm",)),
    Kind("Secret", selectable=secret_fields),
    Kind("Service", short_names=("svc",), categories=_ALL, subresources=_STATUS, returns_deleted=True),
    Kind(
        "CustomResourceDefinition",
        group="apiextensions.k8s.io",
        short_names=("crd", "crds"),
        categories=_EXTENSIONS,
        namespaced=False,
        subresources=_STATUS,
        has_generation=True,
    ),
)

STORED_KINDS: Final = (
    # ORPHAN: upstream: pkg/registry/batch/job/strategy.go, as it always was for batch/v1.
    Kind("Job", group="batch", categories=_ALL, subresources=_STATUS, has_generation=True, cascade=Cascade.ORPHAN),
    Kind("CronJob", group="batch", short_names=("cj",), categories=_ALL, subresources=_STATUS, has_generation=True),
    Kind("StatefulSet", group="apps", short_names=("sts",), categories=_ALL, subresources=_SCALE, has_generation=True),
    Kind(
        "HorizontalPodAutoscaler",
        group="autoscaling",
        version="v2",
        short_names=("hpa",),
        categories=_ALL,
        subresources=_STATUS,
    ),
    Kind("Endpoints", short_names=("ep",)),
    Kind("EndpointSlice", group="discovery.k8s.io", has_generation=True),
    Kind("PersistentVolumeClaim", short_names=("pvc",), subresources=_STATUS, returns_deleted=True),
    Kind("PersistentVolume", short_names=("pv",), namespaced=False, subresources=_STATUS, returns_deleted=True),
    Kind("StorageClass", group="storage.k8s.io", short_names=("sc",), namespaced=False, returns_deleted=True),
    Kind("LimitRange", short_names=("limits",)),
    Kind("Ingress", group="networking.k8s.io", short_names=("ing",), subresources=_STATUS, has_generation=True),
    Kind("Role", group=_RBAC),
    Kind("RoleBinding", group=_RBAC),
    Kind("ClusterRole", group=_RBAC, namespaced=False),
    Kind("ClusterRoleBinding", group=_RBAC, namespaced=False),
    Kind("PodDisruptionBudget", group="policy", short_names=("pdb",), subresources=_STATUS, has_generation=True),
    Kind("PriorityClass", group="scheduling.k8s.io", short_names=("pc",), namespaced=False),
    Kind("NetworkPolicy", group="networking.k8s.io", short_names=("netpol",), has_generation=True),
    Kind("IngressClass", group="networking.k8s.io", namespaced=False, has_generation=True),
    Kind("CSIDriver", group="storage.k8s.io", namespaced=False),
    Kind("ValidatingWebhookConfiguration", group=_ADMISSION, categories=_EXTENSIONS, namespaced=False),
    Kind("MutatingWebhookConfiguration", group=_ADMISSION, categories=_EXTENSIONS, namespaced=False),
)
"""Kinds that are stored and shown, and that nothing here acts on.

Files that bring a workload to a cluster bring these along: access rights, claims, ingresses, webhooks. Of these, a
disruption budget has an effect (on evictions), and a Service gets an address.
"""

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (*_SERVED, *STORED_KINDS)}
