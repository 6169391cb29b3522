"""Owners of pods: replicas, selector, template, status.

Upstream: pkg/apis/apps/validation/validation.go and pkg/registry/apps/replicaset/strategy.go. The template's
rules are shared by all kinds of owners; a new kind adds its own function here or beside.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.validation.label_selector import selector_errors, selector_matches
from oarlock.sandbox.apiserver.validation.metadata import IMMUTABLE, annotation_errors, label_errors
from oarlock.sandbox.apiserver.validation.pods.pod import pod_annotation_errors
from oarlock.sandbox.apiserver.validation.pods.pod_spec import pod_spec_errors
from oarlock.sandbox.apiserver.validation.values import not_negative

Obj = dict[str, Any]

MISMATCH: Final = "`selector` does not match template `labels`"


def replicaset_errors(owner: Obj) -> list[FieldError]:
    """What is wrong with the spec of a ReplicaSet."""
    spec = owner.get("spec") or {}
    errors = not_negative(spec.get("replicas"), "spec.replicas")
    errors += not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    return errors + selected_template_errors(spec)


def selected_template_errors(spec: Obj) -> list[FieldError]:
    """The selector and the template of a ReplicaSet, or of a Deployment, which makes such."""
    errors: list[FieldError] = []
    selector, template = spec.get("selector"), spec.get("template") or {}
    if selector is None:
        errors.append(FieldError.required("spec.selector"))
    elif bad := selector_errors(selector, "spec.selector"):
        return [*bad, FieldError.invalid("spec.selector", selector, "invalid label selector")]
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(FieldError.invalid("spec.selector", selector, "empty selector is invalid for deployment"))
    labels = (template.get("metadata") or {}).get("labels") or {}
    # No selector at all selects nothing, an empty one everything.
    if selector is None or not selector_matches(selector, labels):
        errors.append(FieldError.invalid("spec.template.metadata.labels", labels, MISMATCH))
    return errors + template_errors(template, "spec.template") + always_running_errors(template, "ReplicaSet")


def template_errors(template: Obj, path: str) -> list[FieldError]:
    """A pod template: its metadata and spec (upstream: ValidatePodTemplateSpec)."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors: list[FieldError] = []
    if labels := metadata.get("labels"):
        errors += label_errors(labels, f"{path}.metadata.labels")
    if annotations := metadata.get("annotations"):
        errors += annotation_errors(annotations, f"{path}.metadata.annotations")
        errors += pod_annotation_errors(annotations, f"{path}.metadata.annotations")
    errors += pod_spec_errors(spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        errors.append(
            FieldError.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")
        )
    return errors


def always_running_errors(template: Obj, kind: str) -> list[FieldError]:
    """Pods that are replaced for ever may not end by themselves."""
    spec = template.get("spec") or {}
    errors: list[FieldError] = []
    policy = spec.get("restartPolicy")
    if policy not in (None, "Always"):
        errors.append(FieldError.unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        errors.append(
            FieldError.forbidden(
                "spec.template.spec.activeDeadlineSeconds",
                f"activeDeadlineSeconds in {kind} is not Supported",
            )
        )
    return errors


def selector_immutable_errors(new: Obj, old: Obj) -> list[FieldError]:
    """The selector of an apps/v1 owner stays what it was."""
    selector = (new.get("spec") or {}).get("selector")
    if selector == (old.get("spec") or {}).get("selector"):
        return []
    return [FieldError.invalid("spec.selector", selector, IMMUTABLE)]


def replicaset_update_errors(new: Obj, old: Obj) -> list[FieldError]:
    """What is wrong with replacing the spec of `old` by that of `new`."""
    if new.get("spec") is old.get("spec"):
        return []
    return replicaset_errors(new) + selector_immutable_errors(new, old)


def replicationcontroller_errors(owner: Obj) -> list[FieldError]:
    """What is wrong with the spec of a ReplicationController, whose selector is a plain map of labels.

    Upstream: pkg/apis/core/validation/validation.go (ValidateReplicationControllerSpec).
    """
    spec = owner.get("spec") or {}
    errors = not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        errors.append(FieldError.required("spec.selector"))
    errors += not_negative(spec.get("replicas"), "spec.replicas")
    if template is None:
        return [*errors, FieldError.required("spec.template")]
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not selector_matches({"matchLabels": selector}, labels):
        errors.append(FieldError.invalid("spec.template.metadata.labels", labels, MISMATCH))
    errors += template_errors(template, "spec.template")
    return errors + always_running_errors(template, "ReplicationController")


def replicationcontroller_update_errors(new: Obj, old: Obj) -> list[FieldError]:
    """As for a new one: even the selector may change."""
    return [] if new.get("spec") is old.get("spec") else replicationcontroller_errors(new)


def replicaset_status_errors(owner: Obj) -> list[FieldError]:
    """Counts that cannot be true together."""
    status = owner.get("status") or {}
    errors: list[FieldError] = []
    for field in (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "terminatingReplicas",
        "observedGeneration",
    ):
        errors += not_negative(status.get(field), f"status.{field}")
    replicas, ready = status.get("replicas") or 0, status.get("readyReplicas") or 0
    available = status.get("availableReplicas") or 0
    for field in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
        count = status.get(field) or 0
        if count > replicas:
            errors.append(FieldError.invalid(f"status.{field}", count, "cannot be greater than status.replicas"))
    if available > ready:
        errors.append(FieldError.invalid("status.availableReplicas", available, "cannot be greater than readyReplicas"))
    return errors


def validate_scale(scale: Obj) -> list[FieldError]:
    """The body of the scale subresource (upstream: pkg/apis/autoscaling/validation, ValidateScale)."""
    return not_negative((scale.get("spec") or {}).get("replicas"), "spec.replicas")
