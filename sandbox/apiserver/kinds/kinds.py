"""The kinds this API serves. A new kind is an entry in `KINDS`; nothing else has to know of it.

What an entry says: names and group, which verbs' details apply (scope, subresources, generation,
graceful deletion, default propagation) and how `kubectl get` prints it (`printers`). Rules about the
content of objects live in `validation` and `defaulting`, found there by the kind's name.
"""

from __future__ import annotations

from collections.abc import Mapping

from oarlock.sandbox.apiserver.kinds.kind import Cascade, Kind
from oarlock.sandbox.apiserver.kinds.selectable_fields import (
    event_fields,
    namespace_fields,
    node_fields,
    pod_fields,
    replica_fields,
    secret_fields,
)
from oarlock.sandbox.apiserver.kinds.stored_kinds import STORED_KINDS
from oarlock.sandbox.apiserver.printing.printers import PRINTERS

__all__ = ["KINDS", "Cascade", "Kind", "kind_of_reference"]

_STATUS = frozenset({"status"})

_ALL = (
    Kind(
        "Namespace",
        "namespaces",
        "namespace",
        short_names=("ns",),
        namespaced=False,
        subresources=frozenset({"status", "finalize"}),
        selectable=namespace_fields,
        printer=PRINTERS["Namespace"],
    ),
    Kind(
        "Node",
        "nodes",
        "node",
        short_names=("no",),
        namespaced=False,
        subresources=_STATUS,
        selectable=node_fields,
        printer=PRINTERS["Node"],
    ),
    Kind(
        "Pod",
        "pods",
        "pod",
        short_names=("po",),
        categories=("all",),
        subresources=frozenset({"status", "binding"}),
        graceful=True,
        returns_deleted=True,
        selectable=pod_fields,
        printer=PRINTERS["Pod"],
    ),
    Kind(
        "ReplicaSet",
        "replicasets",
        "replicaset",
        group="apps",
        short_names=("rs",),
        categories=("all",),
        subresources=frozenset({"status", "scale"}),
        has_generation=True,
        selectable=replica_fields,
        printer=PRINTERS["ReplicaSet"],
    ),
    Kind(
        "ReplicationController",
        "replicationcontrollers",
        "replicationcontroller",
        short_names=("rc",),
        categories=("all",),
        subresources=frozenset({"status", "scale"}),
        has_generation=True,
        # Upstream: pkg/registry/core/replicationcontroller/strategy.go; kept for clients older than the collector.
        cascade=Cascade.ORPHAN,
        selectable=replica_fields,
        printer=PRINTERS["ReplicationController"],
    ),
    Kind(
        "DaemonSet",
        "daemonsets",
        "daemonset",
        group="apps",
        short_names=("ds",),
        categories=("all",),
        subresources=_STATUS,
        has_generation=True,
        printer=PRINTERS["DaemonSet"],
    ),
    Kind(
        "ControllerRevision",
        "controllerrevisions",
        "controllerrevision",
        group="apps",
        printer=PRINTERS["ControllerRevision"],
    ),
    Kind(
        "Event",
        "events",
        "event",
        short_names=("ev",),
        create_on_update=True,
        cascade=Cascade.UNSUPPORTED,
        selectable=event_fields,
        printer=PRINTERS["Event"],
    ),
    Kind(
        "Lease",
        "leases",
        "lease",
        group="coordination.k8s.io",
        unconditional_update=False,
        create_on_update=True,
        printer=PRINTERS["Lease"],
    ),
    Kind(
        "ResourceQuota",
        "resourcequotas",
        "resourcequota",
        short_names=("quota",),
        subresources=_STATUS,
        printer=PRINTERS["ResourceQuota"],
    ),
    Kind(
        "ServiceAccount",
        "serviceaccounts",
        "serviceaccount",
        short_names=("sa",),
        returns_deleted=True,
        printer=PRINTERS["ServiceAccount"],
    ),
    Kind("ConfigMap", "configmaps", "configmap", short_names=("cm",), printer=PRINTERS["ConfigMap"]),
    Kind("Secret", "secrets", "secret", selectable=secret_fields, printer=PRINTERS["Secret"]),
    Kind(
        "Service",
        "services",
        "service",
        short_names=("svc",),
        categories=("all",),
        subresources=_STATUS,
        returns_deleted=True,
        printer=PRINTERS["Service"],
    ),
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (*_ALL, *STORED_KINDS)}


def kind_of_reference(api_version: str, kind_name: str) -> Kind | None:
    """The kind an owner reference names, in any served version of its group; None if it is not served."""
    kind = KINDS.get(kind_name)
    if kind is None:
        return None
    group = api_version.rpartition("/")[0]
    return kind if kind.group == group else None
