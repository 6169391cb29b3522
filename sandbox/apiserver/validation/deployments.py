"""Deployments: the ReplicaSet they make, the strategy, the times, the status.

Upstream: pkg/apis/apps/validation/validation.go (ValidateDeploymentSpec, ValidateDeploymentStrategy,
ValidateDeploymentStatus, ValidateDeploymentStatusUpdate) and pkg/registry/apps/deployment/strategy.go.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.kinds import rollback_annotation
from oarlock.sandbox.apiserver.validation.replica_sets import selected_template_errors, selector_immutable_errors
from oarlock.sandbox.apiserver.validation.values import (
    int_or_percent_errors,
    int_or_percent_value,
    not_decremented,
    not_negative,
    share_of_all_errors,
)

Obj = dict[str, Any]

_COUNTS: Final = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)
_STRATEGIES: Final = ("Recreate", "RollingUpdate")


def deployment_errors(owner: Obj) -> list[FieldError]:
    """What is wrong with the spec of a Deployment, which has its defaults."""
    spec = owner.get("spec") or {}
    errors = not_negative(spec.get("replicas"), "spec.replicas") + selected_template_errors(spec)
    errors += _strategy_errors(spec.get("strategy") or {}, "spec.strategy")
    for field in ("minReadySeconds", "revisionHistoryLimit"):
        errors += not_negative(spec.get(field), f"spec.{field}")
    errors += not_negative(rollback_annotation.revision(owner), "spec.rollback.version")
    errors += not_negative(spec.get("progressDeadlineSeconds"), "spec.progressDeadlineSeconds")
    deadline_s = spec.get("progressDeadlineSeconds")
    if deadline_s is not None and deadline_s <= (spec.get("minReadySeconds") or 0):
        why = "must be greater than minReadySeconds"
        errors.append(FieldError.invalid("spec.progressDeadlineSeconds", deadline_s, why))
    return errors


def deployment_update_errors(new: Obj, old: Obj) -> list[FieldError]:
    """What is wrong with replacing the spec and the status of `old` by those of `new`."""
    errors: list[FieldError] = []
    if new.get("spec") is not old.get("spec") or new["metadata"] is not old["metadata"]:
        errors = deployment_errors(new) + selector_immutable_errors(new, old)
    count, old_count = ((obj.get("status") or {}).get("collisionCount") for obj in (new, old))
    return errors + not_decremented(count, old_count, "status.collisionCount")


def deployment_status_errors(owner: Obj) -> list[FieldError]:
    """Counts below 0, or that cannot be true together."""
    status = owner.get("status") or {}
    errors = [error for field in _COUNTS for error in not_negative(status.get(field), f"status.{field}")]
    replicas, ready, available = (
        status.get(field) or 0 for field in ("replicas", "readyReplicas", "availableReplicas")
    )
    for field in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        count = status.get(field) or 0
        if count > replicas:
            errors.append(FieldError.invalid(f"status.{field}", count, "cannot be greater than status.replicas"))
    if available > ready:
        errors.append(FieldError.invalid("status.availableReplicas", available, "cannot be greater than readyReplicas"))
    return errors


def _strategy_errors(strategy: Obj, path: str) -> list[FieldError]:
    """Only a rolling update has limits, and one that may neither add nor take pods never moves."""
    if strategy.get("type") not in _STRATEGIES:
        return [FieldError.unsupported(path, strategy, _STRATEGIES)]
    path = f"{path}.rollingUpdate"
    if strategy["type"] == "Recreate":
        why = "may not be specified when strategy `type` is 'Recreate'"
        return [] if strategy.get("rollingUpdate") is None else [FieldError.forbidden(path, why)]
    unavailable, surge = (strategy["rollingUpdate"][field] for field in ("maxUnavailable", "maxSurge"))
    errors = int_or_percent_errors(unavailable, f"{path}.maxUnavailable")
    errors += int_or_percent_errors(surge, f"{path}.maxSurge")
    if int_or_percent_value(unavailable) == 0 and int_or_percent_value(surge) == 0:
        why = "may not be 0 when `maxSurge` is 0"
        errors.append(FieldError.invalid(f"{path}.maxUnavailable", unavailable, why))
    return errors + share_of_all_errors(unavailable, f"{path}.maxUnavailable")
