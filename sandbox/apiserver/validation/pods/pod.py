"""Pods: what may be created, and the little of a spec that may be changed later.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodCreate, ValidatePodUpdate,
ValidatePodSpecificAnnotations).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.validation.pods.pod_spec import pod_spec_errors
from oarlock.sandbox.apiserver.validation.values import INT32_MAX, within

Obj = dict[str, Any]

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_INT32_MIN: Final = -(2**31)
_COST_DIGITS_MAX: Final = 11
_MUTABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def pod_errors(pod: Obj) -> Iterator[FieldError]:
    """What is wrong with the spec and the meaningful annotations of a new pod."""
    spec = pod.get("spec")
    yield from pod_spec_errors(spec, "spec") if spec else [FieldError.required("spec.containers")]
    yield from pod_annotation_errors(pod["metadata"].get("annotations"), "metadata.annotations")


def pod_annotation_errors(annotations: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Annotations the API gives a meaning: the deletion cost."""
    if not annotations or DELETION_COST not in annotations or _is_cost(annotations[DELETION_COST]):
        return []
    text = annotations[DELETION_COST]
    return [FieldError.invalid(f"{path}[{DELETION_COST}]", text, "must be a 32bit integer")]


def _is_cost(text: str) -> bool:
    """A 32-bit decimal without plus sign, blanks or leading zeros (upstream: GetDeletionCostFromPodAnnotations)."""
    if text == "0":
        return True
    if not text or (text[0] != "-" and not "1" <= text[0] <= "9") or len(text) > _COST_DIGITS_MAX:
        return False
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and _INT32_MIN <= int(text) <= INT32_MAX


def pod_update_errors(new: Obj, old: Obj) -> Iterator[FieldError]:
    """What is wrong with replacing `old` by `new`, status aside."""
    annotations = new["metadata"].get("annotations")
    if annotations != old["metadata"].get("annotations"):
        yield from pod_annotation_errors(annotations, "metadata.annotations")
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if spec is old_spec or spec == old_spec:
        return
    yield from _spec_update_errors(spec, old_spec)


def _spec_update_errors(new: Obj, old: Obj) -> Iterator[FieldError]:
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(old.get(field) or ()):
            yield FieldError.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
    yield from pod_spec_errors(new, "spec")
    yield from _deadline_errors(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    yield from _toleration_errors(new.get("tolerations") or [], old.get("tolerations") or [])
    yield from _gate_errors(new.get("schedulingGates") or [], old.get("schedulingGates") or [])
    frozen_new, frozen_old = _frozen(new), _frozen(old)
    if old.get("terminationGracePeriodSeconds", 0) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        frozen_old["terminationGracePeriodSeconds"] = 1
    if frozen_new != frozen_old:
        fields = sorted(
            field for field in frozen_new.keys() | frozen_old.keys() if frozen_new.get(field) != frozen_old.get(field)
        )
        yield FieldError.forbidden("spec", f"{_MUTABLE}\n  changed: {', '.join(fields)}")


def _frozen(spec: Obj) -> Obj:
    """The part of a spec that may never change. Absent and empty lists are one."""
    frozen = {key: value for key, value in spec.items() if value not in ([], {}, None)}
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        frozen.pop(field, None)
    for field in ("containers", "initContainers"):
        if field in frozen:
            frozen[field] = [{**container, "image": ""} for container in frozen[field]]
    return frozen


def _deadline_errors(new_s: int | None, old_s: int | None) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    if new_s is None:
        if old_s is None:
            return []
        return [FieldError.invalid(path, None, "must not update from a positive integer to nil value")]
    if old_s is not None and new_s > old_s:
        return [FieldError.invalid(path, new_s, "must be less than or equal to previous value")]
    return within(new_s, 0, INT32_MAX, path)


def _toleration_errors(new: list[Obj], old: list[Obj]) -> list[FieldError]:
    present = [_without_seconds(toleration) for toleration in new]
    if all(_without_seconds(toleration) in present for toleration in old):
        return []
    return [
        FieldError.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    ]


def _without_seconds(toleration: Obj) -> Obj:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gate_errors(new: list[Obj], old: list[Obj]) -> list[FieldError]:
    known = {gate.get("name") for gate in old}
    return [
        FieldError.forbidden(
            f"spec.schedulingGates[{position}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for position, gate in enumerate(new)
        if gate.get("name") not in known
    ]
