"""Where a pod may run: node selector, node affinity, tolerations, topology spread; and the taints of nodes.

Upstream: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.validation.label_selector import requirement_errors, selector_errors
from oarlock.sandbox.apiserver.validation.metadata import label_errors
from oarlock.sandbox.apiserver.validation.values import named, one_of

Obj = dict[str, Any]

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_WEIGHT_MAX: Final = 100


def placement_errors(spec: Obj, path: str) -> Iterator[FieldError]:
    """Everything in a pod spec that chooses nodes."""
    if node_selector := spec.get("nodeSelector"):
        yield from label_errors(node_selector, f"{path}.nodeSelector")
    if affinity := spec.get("affinity"):
        yield from affinity_errors(affinity, f"{path}.affinity")
    yield from tolerations_errors(spec.get("tolerations") or [], f"{path}.tolerations")
    for position, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        yield from _spread_errors(constraint, f"{path}.topologySpreadConstraints[{position}]")


def affinity_errors(affinity: Obj, path: str) -> Iterator[FieldError]:
    """Node affinity, and affinity to other pods."""
    node = affinity.get("nodeAffinity") or {}
    required = node.get(_REQUIRED)
    if required is not None:
        here = f"{path}.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
        terms = required.get("nodeSelectorTerms") or []
        if not terms:
            yield FieldError.required(here, "must have at least one node selector term")
        for position, term in enumerate(terms):
            yield from _node_term_errors(term, f"{here}[{position}]")
    for position, preferred in enumerate(node.get(_PREFERRED) or ()):
        here = f"{path}.nodeAffinity.{_PREFERRED}[{position}]"
        yield from _weight_errors(preferred, here)
        yield from _node_term_errors(preferred.get("preference") or {}, f"{here}.preference")
    for side in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(side) or {}
        for position, term in enumerate(rules.get(_REQUIRED) or ()):
            yield from _pod_term_errors(term, f"{path}.{side}.{_REQUIRED}[{position}]")
        for position, preferred in enumerate(rules.get(_PREFERRED) or ()):
            here = f"{path}.{side}.{_PREFERRED}[{position}]"
            yield from _weight_errors(preferred, here)
            yield from _pod_term_errors(preferred.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")


def _weight_errors(preferred: Obj, path: str) -> list[FieldError]:
    weight = preferred.get("weight") or 0
    if 1 <= weight <= _WEIGHT_MAX:
        return []
    return [FieldError.invalid(f"{path}.weight", weight, f"must be in the range 1-{_WEIGHT_MAX}")]


def _pod_term_errors(term: Obj, path: str) -> Iterator[FieldError]:
    yield from named(term.get("topologyKey"), names.qualified_name, f"{path}.topologyKey")
    for field in ("labelSelector", "namespaceSelector"):
        if selector := term.get(field):
            yield from selector_errors(selector, f"{path}.{field}")


def _node_term_errors(term: Obj, path: str) -> Iterator[FieldError]:
    for position, requirement in enumerate(term.get("matchExpressions") or ()):
        yield from requirement_errors(requirement, f"{path}.matchExpressions[{position}]", compares=True)
    for position, requirement in enumerate(term.get("matchFields") or ()):
        yield from _field_requirement_errors(requirement, f"{path}.matchFields[{position}]")


def _field_requirement_errors(requirement: Obj, path: str) -> Iterator[FieldError]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        yield FieldError.invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        yield FieldError.required(
            f"{path}.values",
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )
    key = requirement.get("key") or ""
    if key != "metadata.name":
        yield FieldError.invalid(f"{path}.key", key, "not a valid field selector key")


def tolerations_errors(tolerations: list[Obj], path: str) -> Iterator[FieldError]:
    """Tolerations of a pod or of a template."""
    for position, toleration in enumerate(tolerations):
        here = f"{path}[{position}]"
        key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
        value, effect = toleration.get("value") or "", toleration.get("effect") or ""
        if key:
            yield from (FieldError.invalid(f"{here}.key", key, p) for p in names.qualified_name(key))
        elif operator != "Exists":
            yield FieldError.invalid(
                f"{here}.operator",
                operator,
                'operator must be Exists when `key` is empty, which means "match all values and all keys"',
            )
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            yield FieldError.invalid(
                f"{here}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"
            )
        if operator == "Exists":
            if value:
                yield FieldError.invalid(
                    f"{here}.operator", toleration, "value must be empty when `operator` is 'Exists'"
                )
        elif operator == "Equal":
            yield from (FieldError.invalid(f"{here}.operator", value, p) for p in names.label_value(value))
        else:
            yield FieldError.unsupported(f"{here}.operator", operator, ("Equal", "Exists"))
        if effect:
            yield from one_of(effect, EFFECTS, f"{here}.effect")


def _spread_errors(constraint: Obj, path: str) -> Iterator[FieldError]:
    skew = constraint.get("maxSkew") or 0
    if skew <= 0:
        yield FieldError.invalid(f"{path}.maxSkew", skew, "must be greater than zero")
    yield from named(constraint.get("topologyKey"), names.qualified_name, f"{path}.topologyKey")
    yield from one_of(constraint.get("whenUnsatisfiable"), _UNSATISFIABLE, f"{path}.whenUnsatisfiable")
    if selector := constraint.get("labelSelector"):
        yield from selector_errors(selector, f"{path}.labelSelector")


def taint_errors(taints: list[Obj], path: str) -> Iterator[FieldError]:
    """Taints of a node."""
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        here = f"{path}[{position}]"
        key, value, effect = (taint.get(field) or "" for field in ("key", "value", "effect"))
        yield from named(key, names.qualified_name, f"{here}.key")
        yield from (FieldError.invalid(f"{here}.value", value, p) for p in names.label_value(value))
        yield from one_of(effect, EFFECTS, f"{here}.effect")
        if (key, effect) in seen:
            yield FieldError.duplicate(here, taint)
        seen.add((key, effect))
