"""The kinds this API serves. A new kind is an entry in `KINDS`; nothing else has to know of it.

What an entry says: names and group, which verbs' details apply (scope, subresources, generation,
graceful deletion, default propagation) and how `kubectl get` prints it (`printers`). Rules about the
content of objects live in `validation` and `defaulting`, found there by the kind's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cluster.embedded.printers import NAME_AND_AGE, PRINTERS, Printer

Obj = dict[str, Any]


class Cascade(StrEnum):
    """What happens to dependents when a delete does not say (upstream: DefaultGarbageCollectionPolicy)."""

    BACKGROUND = "background"  # the collector removes them afterwards
    ORPHAN = "orphan"  # they stay, without an owner (ReplicationControllers)
    UNSUPPORTED = "unsupported"  # the kind has no dependents: orphan and foreground are ignored


def no_selectable(obj: Obj) -> dict[str, str]:
    """Most kinds can be selected by name and namespace only."""
    return {}


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One resource. `name` is the Kubernetes kind and the key of the store."""

    name: str
    plural: str
    singular: str
    group: str = ""
    version: str = "v1"
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    subresources: frozenset[str] = frozenset()
    # generation counts changes of spec (upstream: the strategies' PrepareForUpdate)
    has_generation: bool = False
    # a PUT without resourceVersion overwrites (upstream: AllowUnconditionalUpdate)
    unconditional_update: bool = True
    # a PUT of an absent object creates it (upstream: AllowCreateOnUpdate)
    create_on_update: bool = False
    # deletion waits for terminationGracePeriodSeconds (pods)
    graceful: bool = False
    # DELETE answers with the object instead of a Status (upstream: ReturnDeletedObject)
    returns_deleted: bool = False
    cascade: Cascade = Cascade.BACKGROUND
    # fields beyond metadata.name and metadata.namespace that fieldSelector may name
    selectable: Callable[[Obj], dict[str, str]] = no_selectable
    printer: Printer = NAME_AND_AGE

    @property
    def api_version(self) -> str:
        """`v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_name(self) -> str:
        return self.name + "List"

    @property
    def has_status(self) -> bool:
        """Whether status is written through its own subresource, and ignored elsewhere."""
        return "status" in self.subresources


def _pod_fields(obj: Obj) -> dict[str, str]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return {
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.restartPolicy": spec.get("restartPolicy", ""),
        "spec.schedulerName": spec.get("schedulerName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase", ""),
        "status.podIP": status.get("podIP", ""),
        "status.nominatedNodeName": status.get("nominatedNodeName", ""),
    }


def _event_fields(obj: Obj) -> dict[str, str]:
    about = obj.get("involvedObject") or {}
    source = obj.get("source") or {}
    component = obj.get("reportingComponent") or source.get("component") or ""
    fields = {
        f"involvedObject.{part}": about.get(part, "")
        for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    }
    return fields | {
        "reason": obj.get("reason", ""),
        "reportingComponent": component,
        "source": source.get("component") or component,
        "type": obj.get("type", ""),
    }


def _replica_fields(obj: Obj) -> dict[str, str]:
    return {"status.replicas": str((obj.get("status") or {}).get("replicas", 0))}


def _node_fields(obj: Obj) -> dict[str, str]:
    return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}


def _namespace_fields(obj: Obj) -> dict[str, str]:
    return {"status.phase": (obj.get("status") or {}).get("phase", "")}


def _secret_fields(obj: Obj) -> dict[str, str]:
    return {"type": obj.get("type", "")}


_STATUS = frozenset({"status"})

_ALL = (
    Kind(
        "Namespace",
        "namespaces",
        "namespace",
        short_names=("ns",),
        namespaced=False,
        subresources=frozenset({"status", "finalize"}),
        selectable=_namespace_fields,
        printer=PRINTERS["Namespace"],
    ),
    Kind(
        "Node",
        "nodes",
        "node",
        short_names=("no",),
        namespaced=False,
        subresources=_STATUS,
        selectable=_node_fields,
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
        selectable=_pod_fields,
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
        selectable=_replica_fields,
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
        selectable=_replica_fields,
        printer=PRINTERS["ReplicationController"],
    ),
    Kind(
        "Event",
        "events",
        "event",
        short_names=("ev",),
        create_on_update=True,
        cascade=Cascade.UNSUPPORTED,
        selectable=_event_fields,
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
    Kind("Secret", "secrets", "secret", selectable=_secret_fields, printer=PRINTERS["Secret"]),
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

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}


def kind_of_reference(api_version: str, kind_name: str) -> Kind | None:
    """The kind an owner reference names, in any served version of its group; None if it is not served."""
    kind = KINDS.get(kind_name)
    if kind is None:
        return None
    group = api_version.rpartition("/")[0]
    return kind if kind.group == group else None
