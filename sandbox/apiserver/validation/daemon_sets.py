"""DaemonSets: selector, template, update strategy, status; and ControllerRevisions, the history of their templates.

Upstream: pkg/apis/apps/validation/validation.go (ValidateDaemonSetSpec, ValidateRollingUpdateDaemonSet,
ValidateDaemonSetStatusUpdate, ValidateControllerRevisionCreate, ValidateControllerRevisionUpdate) and
pkg/registry/apps/daemonset/strategy.go.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.validation.label_selector import selector_errors, selector_matches
from oarlock.sandbox.apiserver.validation.metadata import IMMUTABLE
from oarlock.sandbox.apiserver.validation.replica_sets import (
    MISMATCH,
    always_running_errors,
    selector_immutable_errors,
    template_errors,
)
from oarlock.sandbox.apiserver.validation.values import (
    int_or_percent_errors,
    int_or_percent_value,
    not_decremented,
    not_negative,
    share_of_all_errors,
)

Obj = dict[str, Any]

_COUNTS: Final = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)
_STRATEGIES: Final = ("RollingUpdate", "OnDelete")


def daemonset_errors(owner: Obj) -> list[FieldError]:
    """What is wrong with the spec of a DaemonSet, which has its defaults."""
    spec = owner.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors = selector_errors(selector or {}, "spec.selector")
    if not errors:
        labels = (template.get("metadata") or {}).get("labels") or {}
        # No selector at all selects nothing, an empty one everything.
        if selector is None or not selector_matches(selector, labels):
            errors.append(FieldError.invalid("spec.template.metadata.labels", labels, MISMATCH))
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(FieldError.invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
    errors += template_errors(template, "spec.template") + always_running_errors(template, "DaemonSet")
    errors += not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += _strategy_errors(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    return errors + not_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")


def daemonset_update_errors(new: Obj, old: Obj) -> list[FieldError]:
    """What is wrong with replacing the spec and the status of `old` by those of `new`."""
    errors: list[FieldError] = []
    if new.get("spec") is not old.get("spec"):
        errors = daemonset_errors(new) + selector_immutable_errors(new, old)
    count, old_count = ((obj.get("status") or {}).get("collisionCount") for obj in (new, old))
    return errors + not_decremented(count, old_count, "status.collisionCount")


def daemonset_status_errors(owner: Obj) -> list[FieldError]:
    """Counts below 0."""
    status = owner.get("status") or {}
    return [error for field in _COUNTS for error in not_negative(status.get(field), f"status.{field}")]


def _strategy_errors(strategy: Obj, path: str) -> list[FieldError]:
    if strategy.get("type") not in _STRATEGIES:
        return [FieldError.unsupported(path, strategy, _STRATEGIES)]
    if strategy["type"] == "OnDelete":
        return []
    rolling = strategy.get("rollingUpdate")
    if rolling is None:
        return [FieldError.required(f"{path}.rollingUpdate")]
    return _rolling_update_errors(rolling, f"{path}.rollingUpdate")


def _rolling_update_errors(rolling: Obj, path: str) -> list[FieldError]:
    """Exactly one of the two ways to replace pods, in good numbers."""
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    errors: list[FieldError] = []
    for check in (int_or_percent_errors, share_of_all_errors):
        errors += check(unavailable, f"{path}.maxUnavailable") + check(surge, f"{path}.maxSurge")
    has_unavailable, has_surge = int_or_percent_value(unavailable) != 0, int_or_percent_value(surge) != 0
    if has_unavailable and has_surge:
        errors.append(FieldError.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not has_unavailable and not has_surge:
        errors.append(FieldError.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def controllerrevision_errors(revision: Obj) -> list[FieldError]:
    """Data that is missing, a number below 0."""
    errors = [] if revision.get("data") is not None else [FieldError.required("data", "data is mandatory")]
    return errors + not_negative(revision.get("revision"), "revision")


def controllerrevision_update_errors(new: Obj, old: Obj) -> list[FieldError]:
    """The number may change, the data may not: not even the order of its keys, for it is compared as text."""
    errors = controllerrevision_errors(new)
    if orjson.dumps(new.get("data")) != orjson.dumps(old.get("data")):
        errors.append(FieldError.invalid("data", new.get("data"), IMMUTABLE))
    return errors
