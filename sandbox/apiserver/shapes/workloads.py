"""The owners of pods, and the revisions they keep."""

from __future__ import annotations

from typing import Any

from oarlock.sandbox.apiserver.shapes.common import (
    Condition,
    Int64,
    IntOrPercent,
    LabelSelector,
    Metadata,
    Number,
    Shape,
    StringMap,
    Text,
)
from oarlock.sandbox.apiserver.shapes.pods import Template


class ReplicaSetSpec(Shape):
    replicas: Number = None
    min_ready_seconds: Number = None
    selector: LabelSelector | None = None
    template: Template | None = None


class ReplicaSetStatus(Shape):
    replicas: Number = None
    fully_labeled_replicas: Number = None
    ready_replicas: Number = None
    available_replicas: Number = None
    terminating_replicas: Number = None
    observed_generation: int | None = None
    conditions: list[Condition] | None = None


class ReplicaSet(Shape):
    metadata: Metadata
    spec: ReplicaSetSpec | None = None
    status: ReplicaSetStatus | None = None


class ReplicationControllerSpec(Shape):
    replicas: Number = None
    min_ready_seconds: Number = None
    selector: StringMap = None
    template: Template | None = None


class ReplicationController(Shape):
    metadata: Metadata
    spec: ReplicationControllerSpec | None = None
    status: ReplicaSetStatus | None = None


class RollingUpdate(Shape):
    max_unavailable: IntOrPercent = None
    max_surge: IntOrPercent = None


class UpdateStrategy(Shape):
    type: Text = None
    rolling_update: RollingUpdate | None = None


class DaemonSetSpec(Shape):
    selector: LabelSelector | None = None
    template: Template | None = None
    update_strategy: UpdateStrategy | None = None
    min_ready_seconds: Number = None
    revision_history_limit: Number = None


class DaemonSetStatus(Shape):
    current_number_scheduled: Number = None
    number_misscheduled: Number = None
    desired_number_scheduled: Number = None
    number_ready: Number = None
    observed_generation: Int64 | None = None
    updated_number_scheduled: Number = None
    number_available: Number = None
    number_unavailable: Number = None
    collision_count: Number = None
    conditions: list[Condition] | None = None


class DaemonSet(Shape):
    metadata: Metadata
    spec: DaemonSetSpec | None = None
    status: DaemonSetStatus | None = None


class ControllerRevision(Shape):
    metadata: Metadata
    data: Any = None
    revision: Int64 | None = None
