"""Pods and pod templates."""

from __future__ import annotations

from typing import Any

import msgspec

from oarlock.sandbox.apiserver.shapes.common import (
    Condition,
    Flag,
    LabelSelector,
    Metadata,
    Number,
    Quantities,
    Requirement,
    Shape,
    StringMap,
    Strings,
    Text,
)


class Gate(Shape):
    condition_type: Text = None


class Waiting(Shape):
    reason: Text = None


class Ended(Shape):
    reason: Text = None
    exit_code: Number = None
    signal: Number = None
    finished_at: Text = None


class State(Shape):
    waiting: Waiting | None = None
    running: dict[str, Any] | None = None
    terminated: Ended | None = None


class Port(Shape):
    name: Text = None
    container_port: Number = None
    host_port: Number = None
    host_ip: Text = msgspec.field(name="hostIP", default=None)
    protocol: Text = None


class Env(Shape):
    name: Text = None
    value: Text = None
    value_from: dict[str, dict[str, Any] | None] | None = None


class Mount(Shape):
    name: Text = None
    mount_path: Text = None


class Resources(Shape):
    limits: Quantities = None
    requests: Quantities = None


class Probe(Shape):
    initial_delay_seconds: Number = None
    timeout_seconds: Number = None
    period_seconds: Number = None
    success_threshold: Number = None
    failure_threshold: Number = None
    http_get: dict[str, Any] | None = None
    grpc: dict[str, Any] | None = None


class Container(Shape):
    name: Text = None
    image: Text = None
    command: Strings = None
    args: Strings = None
    image_pull_policy: Text = None
    restart_policy: Text = None
    termination_message_path: Text = None
    termination_message_policy: Text = None
    ports: list[Port] | None = None
    env: list[Env] | None = None
    volume_mounts: list[Mount] | None = None
    resources: Resources | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None


class NodeTerm(Shape):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeTerms(Shape):
    node_selector_terms: list[NodeTerm] | None = None


class PreferredNode(Shape):
    weight: Number = None
    preference: NodeTerm | None = None


class NodeAffinity(Shape):
    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNode] | None = None


class PodTerm(Shape):
    topology_key: Text = None
    label_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None


class PreferredPod(Shape):
    weight: Number = None
    pod_affinity_term: PodTerm | None = None


class PodAffinity(Shape):
    required_during_scheduling_ignored_during_execution: list[PodTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredPod] | None = None


class Affinity(Shape):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Shape):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None
    toleration_seconds: int | None = None


class Spread(Shape):
    max_skew: Number = None
    topology_key: Text = None
    when_unsatisfiable: Text = None
    label_selector: LabelSelector | None = None


class Named(Shape):
    name: Text = None


class PodSpec(Shape):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    volumes: list[Named] | None = None
    node_name: Text = None
    node_selector: StringMap = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[Spread] | None = None
    scheduling_gates: list[Named] | None = None
    readiness_gates: list[Gate] | None = None
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


class ContainerStatus(Shape):
    name: Text = None
    ready: Flag = None
    started: Flag = None
    restart_count: Number = None
    state: State | None = None
    last_state: State | None = None


class PodStatus(Shape):
    phase: Text = None
    reason: Text = None
    message: Text = None
    pod_ip: Text = msgspec.field(name="podIP", default=None)
    nominated_node_name: Text = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Shape):
    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class Template(Shape):
    metadata: Metadata | None = None
    spec: PodSpec | None = None
