"""The kinds that are only stored: what their rows in a table read."""

from __future__ import annotations

from typing import Any

import msgspec

from oarlock.sandbox.apiserver.shapes.common import (
    Condition,
    Flag,
    Int64,
    IntOrPercent,
    LabelSelector,
    Metadata,
    Number,
    Shape,
    Text,
)
from oarlock.sandbox.apiserver.shapes.pods import Template
from oarlock.sandbox.apiserver.shapes.workloads import UpdateStrategy


class Subject(Shape):
    api_group: Text = None
    kind: Text = None
    name: Text = None
    namespace: Text = None


class Role(Shape):
    metadata: Metadata
    rules: list[dict[str, Any]] | None = None


class RoleBinding(Shape):
    metadata: Metadata
    role_ref: Subject | None = None
    subjects: list[Subject] | None = None


class DeploymentSpec(Shape):
    replicas: Number = None
    selector: LabelSelector | None = None
    template: Template | None = None
    strategy: UpdateStrategy | None = None
    min_ready_seconds: Number = None
    revision_history_limit: Number = None
    progress_deadline_seconds: Number = None
    paused: Flag = None


class DeploymentStatus(Shape):
    replicas: Number = None
    updated_replicas: Number = None
    ready_replicas: Number = None
    available_replicas: Number = None
    unavailable_replicas: Number = None
    observed_generation: Int64 | None = None
    conditions: list[Condition] | None = None


class Deployment(Shape):
    metadata: Metadata
    spec: DeploymentSpec | None = None
    status: DeploymentStatus | None = None


class JobSpec(Shape):
    parallelism: Number = None
    completions: Number = None
    backoff_limit: Number = None
    suspend: Flag = None
    selector: LabelSelector | None = None
    template: Template | None = None


class JobStatus(Shape):
    active: Number = None
    succeeded: Number = None
    failed: Number = None
    start_time: Text = None
    completion_time: Text = None
    conditions: list[Condition] | None = None


class Job(Shape):
    metadata: Metadata
    spec: JobSpec | None = None
    status: JobStatus | None = None


class BudgetSpec(Shape):
    min_available: IntOrPercent = None
    max_unavailable: IntOrPercent = None
    selector: LabelSelector | None = None


class BudgetStatus(Shape):
    disruptions_allowed: Number = None
    conditions: list[Condition] | None = None


class PodDisruptionBudget(Shape):
    metadata: Metadata
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


class PriorityClass(Shape):
    metadata: Metadata
    value: Number = None
    global_default: Flag = None


class NetworkPolicySpec(Shape):
    pod_selector: LabelSelector | None = None


class NetworkPolicy(Shape):
    metadata: Metadata
    spec: NetworkPolicySpec | None = None


class IngressClassSpec(Shape):
    controller: Text = None
    parameters: Subject | None = None


class IngressClass(Shape):
    metadata: Metadata
    spec: IngressClassSpec | None = None


class CSIDriver(Shape):
    metadata: Metadata
    spec: dict[str, Any] | None = None


class WebhookConfiguration(Shape):
    metadata: Metadata
    webhooks: list[dict[str, Any]] | None = None


class DefinitionSpec(Shape):
    group: Text = None
    scope: Text = None
    names: dict[str, Any] | None = None
    versions: list[dict[str, Any]] | None = None


class DefinitionStatus(Shape):
    conditions: list[Condition] | None = None


class CustomResourceDefinition(Shape):
    metadata: Metadata
    spec: DefinitionSpec | None = None
    status: DefinitionStatus | None = None


STORED_SHAPES: dict[str, type[msgspec.Struct]] = {
    "Role": Role,
    "ClusterRole": Role,
    "RoleBinding": RoleBinding,
    "ClusterRoleBinding": RoleBinding,
    "Deployment": Deployment,
    "Job": Job,
    "PodDisruptionBudget": PodDisruptionBudget,
    "PriorityClass": PriorityClass,
    "NetworkPolicy": NetworkPolicy,
    "IngressClass": IngressClass,
    "CSIDriver": CSIDriver,
    "ValidatingWebhookConfiguration": WebhookConfiguration,
    "MutatingWebhookConfiguration": WebhookConfiguration,
    "CustomResourceDefinition": CustomResourceDefinition,
}
