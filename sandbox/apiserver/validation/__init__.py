"""What may be stored: rules by kind, after defaulting.

Wiring, in the order of upstream's handlers: `defaulting.apply`, then `validate_create` or `validate_update`; a
non-empty list becomes `errors.invalid(kind, group, name, errors)` (422). `validate_update` trusts that parts
shared with `old` (the very same objects) were validated when `old` was stored, so it serves all subresources:
a write of status keeps the spec, a write of spec the status. `validate_scale` is for the body of a Scale.

A new kind is an entry in `_RULES`; kinds without one have their metadata checked and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from oarlock.sandbox.apiserver.custom.definition_errors import (
    definition_errors,
    definition_status_errors,
    definition_update_errors,
)
from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.kinds.kinds import KINDS
from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.validation import (
    daemon_sets,
    deployments,
    other_kinds,
    replica_sets,
    stored_kinds,
)
from oarlock.sandbox.apiserver.validation.metadata import metadata_errors, metadata_update_errors
from oarlock.sandbox.apiserver.validation.pods import pod
from oarlock.sandbox.apiserver.validation.replica_sets import validate_scale

__all__ = ["validate_create", "validate_scale", "validate_update"]

Obj = dict[str, Any]


def _nothing(obj: Obj) -> Iterable[FieldError]:
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The rules of one kind beyond metadata: `create(obj)`, `update(new, old)`, `status(new)`.

    Without `update`, a changed object has to pass `create` again. `status` is asked when the status changed.
    """

    name: names.Checker = names.dns_subdomain
    create: Callable[[Obj], Iterable[FieldError]] = _nothing
    update: Callable[[Obj, Obj], Iterable[FieldError]] | None = None
    status: Callable[[Obj], Iterable[FieldError]] = _nothing


_RULES: Final[Mapping[str, Rules]] = {
    "Pod": Rules(create=pod.pod_errors, update=pod.pod_update_errors),
    "ReplicaSet": Rules(
        create=replica_sets.replicaset_errors,
        update=replica_sets.replicaset_update_errors,
        status=replica_sets.replicaset_status_errors,
    ),
    "ReplicationController": Rules(
        create=replica_sets.replicationcontroller_errors,
        update=replica_sets.replicationcontroller_update_errors,
        status=replica_sets.replicaset_status_errors,
    ),
    "DaemonSet": Rules(
        create=daemon_sets.daemonset_errors,
        update=daemon_sets.daemonset_update_errors,
        status=daemon_sets.daemonset_status_errors,
    ),
    "Deployment": Rules(
        create=deployments.deployment_errors,
        update=deployments.deployment_update_errors,
        status=deployments.deployment_status_errors,
    ),
    "ControllerRevision": Rules(
        create=daemon_sets.controllerrevision_errors,
        update=daemon_sets.controllerrevision_update_errors,
    ),
    "Namespace": Rules(
        name=names.dns_label, create=other_kinds.namespace_errors, status=other_kinds.namespace_status_errors
    ),
    "Node": Rules(
        create=other_kinds.node_errors,
        update=other_kinds.node_update_errors,
        status=other_kinds.node_status_errors,
    ),
    "Lease": Rules(create=other_kinds.lease_errors),
    "Event": Rules(create=other_kinds.event_errors),
    "ResourceQuota": Rules(create=other_kinds.quota_errors),
    "Service": Rules(
        name=names.dns_label_1035, create=stored_kinds.service_errors, update=stored_kinds.service_update_errors
    ),
    "ConfigMap": Rules(create=stored_kinds.keys_errors, update=stored_kinds.data_update_errors),
    "Secret": Rules(create=stored_kinds.keys_errors, update=stored_kinds.data_update_errors),
    "Endpoints": Rules(create=stored_kinds.endpoints_errors),
    "EndpointSlice": Rules(create=stored_kinds.slice_errors, update=stored_kinds.slice_update_errors),
    "Ingress": Rules(create=stored_kinds.ingress_errors),
    "PersistentVolumeClaim": Rules(create=stored_kinds.claim_errors, update=stored_kinds.claim_update_errors),
    "PersistentVolume": Rules(create=stored_kinds.volume_errors),
    "StorageClass": Rules(create=stored_kinds.storageclass_errors),
    "StatefulSet": Rules(create=stored_kinds.statefulset_errors, update=stored_kinds.statefulset_update_errors),
    "CronJob": Rules(create=stored_kinds.cronjob_errors),
    "HorizontalPodAutoscaler": Rules(create=stored_kinds.autoscaler_errors),
    "CustomResourceDefinition": Rules(
        create=definition_errors, update=definition_update_errors, status=definition_status_errors
    ),
    "Job": Rules(create=other_kinds.job_errors, update=other_kinds.job_update_errors),
    "PodDisruptionBudget": Rules(create=other_kinds.budget_errors),
    "NetworkPolicy": Rules(create=other_kinds.networkpolicy_errors),
    **dict.fromkeys(("Role", "ClusterRole"), Rules(name=names.path_segment)),
    **dict.fromkeys(
        ("RoleBinding", "ClusterRoleBinding"),
        Rules(name=names.path_segment, update=stored_kinds.binding_update_errors),
    ),
}
_PLAIN: Final = Rules()


def validate_create(kind: str, obj: Obj) -> list[FieldError]:
    """What is wrong with a new, defaulted object; empty if it may be stored."""
    rules = _RULES.get(kind, _PLAIN)
    return [*metadata_errors(obj["metadata"], KINDS[kind].namespaced, rules.name), *rules.create(obj)]


def validate_update(kind: str, new: Obj, old: Obj) -> list[FieldError]:
    """What is wrong with replacing `old` by the defaulted `new`; empty if it may be stored."""
    rules = _RULES.get(kind, _PLAIN)
    errors = list(metadata_update_errors(new["metadata"], old["metadata"]))
    errors += rules.update(new, old) if rules.update is not None else rules.create(new)
    if new.get("status") is not old.get("status"):
        errors += rules.status(new)
    return errors
