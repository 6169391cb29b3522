"""metav1.LabelSelector: its syntax, and which labels it matches.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go (ValidateLabelSelector)
and apis/meta/v1/helpers.go (LabelSelectorAsSelector).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.text import names

_SETS: Final = ("In", "NotIn")
_PRESENCE: Final = ("Exists", "DoesNotExist")
_COMPARISONS: Final = ("Gt", "Lt")


def selector_errors(selector: Mapping[str, Any], path: str) -> list[FieldError]:
    """What is wrong with a selector; nothing for an empty one."""
    errors: list[FieldError] = []
    for key, value in (selector.get("matchLabels") or {}).items():
        errors += [FieldError.invalid(f"{path}.matchLabels", key, p) for p in names.qualified_name(key)]
        errors += [FieldError.invalid(f"{path}.matchLabels", value, p) for p in names.label_value(value)]
    for position, term in enumerate(selector.get("matchExpressions") or ()):
        errors += _term_errors(term, f"{path}.matchExpressions[{position}]")
    return errors


def requirement_errors(term: Mapping[str, Any], path: str, *, compares: bool = False) -> list[FieldError]:
    """The operator of one requirement, whether values go with it, and its key. ``compares``: it may be Gt or Lt."""
    errors: list[FieldError] = []
    operator, values = term.get("operator") or "", term.get("values") or ()
    if operator in _SETS:
        if not values:
            errors.append(FieldError.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in _PRESENCE:
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(FieldError.forbidden(f"{path}.values", why))
    elif compares and operator in _COMPARISONS:
        if len(values) != 1:
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(FieldError.required(f"{path}.values", why))
    else:
        errors.append(FieldError.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    key = term.get("key") or ""
    return errors + [FieldError.invalid(f"{path}.key", key, problem) for problem in names.qualified_name(key)]


def _term_errors(term: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    yield from requirement_errors(term, path)
    for position, value in enumerate(term.get("values") or ()):
        yield from (FieldError.invalid(f"{path}.values[{position}]", value, p) for p in names.label_value(value))


def selector_matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a valid selector matches; an empty one matches everything."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_term_matches(term, labels) for term in selector.get("matchExpressions") or ())


def _term_matches(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator = term["key"], term["operator"]
    if operator == "In":
        return labels.get(key) in term["values"]
    if operator == "NotIn":
        return labels.get(key) not in term["values"]
    return (key in labels) is (operator == "Exists")
