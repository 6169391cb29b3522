"""The kinds that nothing here acts on: selectors and templates, so that whoever reads them finds them whole.

Upstream: pkg/apis/{apps,batch,policy,networking}/validation/validation.go.
"""

from __future__ import annotations

from typing import Any

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.validation.label_selector import selector_errors
from oarlock.sandbox.apiserver.validation.replica_sets import template_errors
from oarlock.sandbox.apiserver.validation.values import not_negative

Obj = dict[str, Any]


def job_errors(job: Obj) -> list[FieldError]:
    """Numbers, selector, and a template whose pods end."""
    spec = job.get("spec") or {}
    errors = [
        error
        for field in ("parallelism", "completions", "backoffLimit")
        for error in not_negative(spec.get(field), f"spec.{field}")
    ]
    errors += selector_errors(spec.get("selector") or {}, "spec.selector")
    template = spec.get("template") or {}
    errors += template_errors(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy == "Always":
        choices = ("OnFailure", "Never")
        errors.append(FieldError.unsupported("spec.template.spec.restartPolicy", policy, choices))
    return errors


def budget_errors(budget: Obj) -> list[FieldError]:
    """The selector, and one limit at most."""
    spec = budget.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        why = "minAvailable and maxUnavailable cannot be both set"
        errors.append(FieldError.invalid("spec", spec, why))
    return errors + selector_errors(spec.get("selector") or {}, "spec.selector")


def networkpolicy_errors(policy: Obj) -> list[FieldError]:
    """The selector of its pods."""
    return selector_errors((policy.get("spec") or {}).get("podSelector") or {}, "spec.podSelector")
