"""The types of the fields this server and its clients read: a body of another shape is refused before anything
looks into it.

Upstream decodes into Go structs and answers 400 where a value does not fit; here msgspec checks the same fields
in C. Fields that are not named are let through as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from cluster.embedded.errors import bad_request

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Text = str | None
Number = Int32 | None
Flag = bool | None
Strings = list[str] | None
StringMap = dict[str, str] | None
Quantities = dict[str, str | int | float] | None


class _Shape(msgspec.Struct, rename="camel"):
    """Unknown fields are ignored."""


class _Owner(_Shape):
    api_version: Text = None
    kind: Text = None
    name: Text = None
    uid: Text = None
    controller: Flag = None
    block_owner_deletion: Flag = None


class _Metadata(_Shape):
    name: Text = None
    generate_name: Text = None
    namespace: Text = None
    uid: Text = None
    resource_version: Text = None
    generation: int | None = None
    deletion_grace_period_seconds: int | None = None
    creation_timestamp: Text = None
    deletion_timestamp: Text = None
    labels: StringMap = None
    annotations: StringMap = None
    owner_references: list[_Owner] | None = None
    finalizers: Strings = None


class _Requirement(_Shape):
    key: Text = None
    operator: Text = None
    values: Strings = None


class _LabelSelector(_Shape):
    match_labels: StringMap = None
    match_expressions: list[_Requirement] | None = None


class _Port(_Shape):
    name: Text = None
    container_port: Number = None
    host_port: Number = None
    host_ip: Text = msgspec.field(name="hostIP", default=None)
    protocol: Text = None


class _Env(_Shape):
    name: Text = None
    value: Text = None
    value_from: dict[str, dict[str, Any] | None] | None = None


class _Mount(_Shape):
    name: Text = None
    mount_path: Text = None


class _Resources(_Shape):
    limits: Quantities = None
    requests: Quantities = None


class _Probe(_Shape):
    initial_delay_seconds: Number = None
    timeout_seconds: Number = None
    period_seconds: Number = None
    success_threshold: Number = None
    failure_threshold: Number = None
    http_get: dict[str, Any] | None = None
    grpc: dict[str, Any] | None = None


class _Container(_Shape):
    name: Text = None
    image: Text = None
    command: Strings = None
    args: Strings = None
    image_pull_policy: Text = None
    restart_policy: Text = None
    termination_message_path: Text = None
    termination_message_policy: Text = None
    ports: list[_Port] | None = None
    env: list[_Env] | None = None
    volume_mounts: list[_Mount] | None = None
    resources: _Resources | None = None
    liveness_probe: _Probe | None = None
    readiness_probe: _Probe | None = None
    startup_probe: _Probe | None = None


class _NodeTerm(_Shape):
    match_expressions: list[_Requirement] | None = None
    match_fields: list[_Requirement] | None = None


class _NodeTerms(_Shape):
    node_selector_terms: list[_NodeTerm] | None = None


class _PreferredNode(_Shape):
    weight: Number = None
    preference: _NodeTerm | None = None


class _NodeAffinity(_Shape):
    required_during_scheduling_ignored_during_execution: _NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[_PreferredNode] | None = None


class _PodTerm(_Shape):
    topology_key: Text = None
    label_selector: _LabelSelector | None = None
    namespace_selector: _LabelSelector | None = None


class _PreferredPod(_Shape):
    weight: Number = None
    pod_affinity_term: _PodTerm | None = None


class _PodAffinity(_Shape):
    required_during_scheduling_ignored_during_execution: list[_PodTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[_PreferredPod] | None = None


class _Affinity(_Shape):
    node_affinity: _NodeAffinity | None = None
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _Toleration(_Shape):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None
    toleration_seconds: int | None = None


class _Spread(_Shape):
    max_skew: Number = None
    topology_key: Text = None
    when_unsatisfiable: Text = None
    label_selector: _LabelSelector | None = None


class _Named(_Shape):
    name: Text = None


class _PodSpec(_Shape):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None
    volumes: list[dict[str, str | dict[str, Any] | None]] | None = None
    node_name: Text = None
    node_selector: StringMap = None
    affinity: _Affinity | None = None
    tolerations: list[_Toleration] | None = None
    topology_spread_constraints: list[_Spread] | None = None
    scheduling_gates: list[_Named] | None = None
    restart_policy: Text = None
    dns_policy: Text = None
    scheduler_name: Text = None
    service_account_name: Text = None
    priority_class_name: Text = None
    runtime_class_name: Text = None
    hostname: Text = None
    subdomain: Text = None
    host_network: Flag = None
    enable_service_links: Flag = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    security_context: dict[str, Any] | None = None


class _Condition(_Shape):
    type: Text = None
    status: Text = None
    reason: Text = None
    message: Text = None
    last_transition_time: Text = None


class _ContainerStatus(_Shape):
    name: Text = None
    ready: Flag = None
    restart_count: Number = None
    state: dict[str, Any] | None = None


class _PodStatus(_Shape):
    phase: Text = None
    reason: Text = None
    message: Text = None
    pod_ip: Text = msgspec.field(name="podIP", default=None)
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None


class _Pod(_Shape):
    metadata: _Metadata
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


class _Template(_Shape):
    metadata: _Metadata | None = None
    spec: _PodSpec | None = None


class _ReplicaSetSpec(_Shape):
    replicas: Number = None
    min_ready_seconds: Number = None
    selector: _LabelSelector | None = None
    template: _Template | None = None


class _ReplicaSetStatus(_Shape):
    replicas: Number = None
    fully_labeled_replicas: Number = None
    ready_replicas: Number = None
    available_replicas: Number = None
    terminating_replicas: Number = None
    observed_generation: int | None = None
    conditions: list[_Condition] | None = None


class _ReplicaSet(_Shape):
    metadata: _Metadata
    spec: _ReplicaSetSpec | None = None
    status: _ReplicaSetStatus | None = None


class _NamespaceSpec(_Shape):
    finalizers: Strings = None


class _NamespaceStatus(_Shape):
    phase: Text = None
    conditions: list[_Condition] | None = None


class _Namespace(_Shape):
    metadata: _Metadata
    spec: _NamespaceSpec | None = None
    status: _NamespaceStatus | None = None


class _Taint(_Shape):
    key: Text = None
    value: Text = None
    effect: Text = None


class _NodeSpec(_Shape):
    taints: list[_Taint] | None = None
    unschedulable: Flag = None
    pod_cidr: Text = msgspec.field(name="podCIDR", default=None)
    provider_id: Text = msgspec.field(name="providerID", default=None)


class _Address(_Shape):
    type: Text = None
    address: Text = None


class _NodeStatus(_Shape):
    capacity: Quantities = None
    allocatable: Quantities = None
    conditions: list[_Condition] | None = None
    addresses: list[_Address] | None = None


class _Node(_Shape):
    metadata: _Metadata
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class _LeaseSpec(_Shape):
    holder_identity: Text = None
    lease_duration_seconds: Number = None
    lease_transitions: Number = None
    acquire_time: Text = None
    renew_time: Text = None


class _Lease(_Shape):
    metadata: _Metadata
    spec: _LeaseSpec | None = None


class _Reference(_Shape):
    api_version: Text = None
    kind: Text = None
    namespace: Text = None
    name: Text = None
    uid: Text = None


class _Event(_Shape):
    metadata: _Metadata
    involved_object: _Reference | None = None
    source: dict[str, str | None] | None = None
    series: dict[str, Any] | None = None
    reason: Text = None
    message: Text = None
    type: Text = None
    count: Number = None
    reporting_component: Text = None


class _QuotaSpec(_Shape):
    hard: Quantities = None
    scopes: Strings = None


class _QuotaStatus(_Shape):
    hard: Quantities = None
    used: Quantities = None


class _ResourceQuota(_Shape):
    metadata: _Metadata
    spec: _QuotaSpec | None = None
    status: _QuotaStatus | None = None


class _Anything(_Shape):
    metadata: _Metadata


class _Scale(_Shape):
    metadata: _Metadata | None = None
    spec: _ReplicaSetSpec | None = None


_SHAPES: Final[Mapping[str, type[msgspec.Struct]]] = {
    "Pod": _Pod,
    "ReplicaSet": _ReplicaSet,
    "Namespace": _Namespace,
    "Node": _Node,
    "Lease": _Lease,
    "Event": _Event,
    "ResourceQuota": _ResourceQuota,
    "Scale": _Scale,
}


def check_shape(kind: str, obj: Any) -> None:
    """Raises ApiError 400 if a field of `obj` has a value of another type than the API gives it."""
    try:
        msgspec.convert(obj, _SHAPES.get(kind, _Anything))
    except msgspec.ValidationError as problem:
        version = obj.get("apiVersion", "") if isinstance(obj, dict) else ""
        short = str(version).rpartition("/")[2]
        raise bad_request(
            f'{kind} in version "{short}" cannot be handled as a {kind}: json: cannot unmarshal: {problem}'
        ) from None
