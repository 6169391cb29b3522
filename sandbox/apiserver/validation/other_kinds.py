"""Namespaces, nodes, leases, events, quotas, and the kinds that are only stored: the few rules of each.

Upstream: pkg/apis/core/validation (validation.go, events.go), pkg/apis/coordination/validation and
pkg/apis/{apps,batch,policy,networking}/validation/validation.go. Of the kinds that are only stored, selectors and
templates are checked, so that whoever reads them finds them whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.text.quantities import parse_quantity
from oarlock.sandbox.apiserver.validation.label_selector import selector_errors
from oarlock.sandbox.apiserver.validation.metadata import IMMUTABLE, finalizer_errors
from oarlock.sandbox.apiserver.validation.pods.placement import taint_errors
from oarlock.sandbox.apiserver.validation.replica_sets import template_errors
from oarlock.sandbox.apiserver.validation.values import NOT_NEGATIVE, not_negative, quantity_errors

Obj = dict[str, Any]

_COUNTED: Final = frozenset({"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"})
_QUOTA_SCOPES: Final = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
)


def namespace_errors(namespace: Obj) -> Iterator[FieldError]:
    """Finalizers in its spec."""
    return finalizer_errors((namespace.get("spec") or {}).get("finalizers") or [], "spec.finalizers")


def namespace_status_errors(namespace: Obj) -> list[FieldError]:
    """The phase has to agree with the deletion."""
    phase = (namespace.get("status") or {}).get("phase")
    if not namespace["metadata"].get("deletionTimestamp"):
        if phase not in (None, "Active"):
            why = "may only be 'Active' if `deletionTimestamp` is empty"
            return [FieldError.invalid("status.Phase", phase, why)]
    elif phase != "Terminating":
        why = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        return [FieldError.invalid("status.Phase", phase or "", why)]
    return []


def node_errors(node: Obj) -> Iterator[FieldError]:
    """Taints, and capacities if it comes with any."""
    yield from taint_errors((node.get("spec") or {}).get("taints") or [], "spec.taints")
    yield from node_status_errors(node)


def node_update_errors(new: Obj, old: Obj) -> Iterator[FieldError]:
    """Taints, and what is given to a node once."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if spec is old_spec:
        return
    yield from taint_errors(spec.get("taints") or [], "spec.taints")
    for field in ("podCIDRs", "podCIDR", "providerID"):
        if old_spec.get(field) and spec.get(field) != old_spec[field]:
            why = f'node updates may not change {field} except from "" to valid'
            yield FieldError.forbidden(f"spec.{field}", why)


def node_status_errors(node: Obj) -> Iterator[FieldError]:
    """Capacities."""
    status = node.get("status") or {}
    for field in ("capacity", "allocatable"):
        yield from quantity_errors(status.get(field) or {}, f"status.{field}")


def lease_errors(lease: Obj) -> Iterator[FieldError]:
    """Durations and counters."""
    spec = lease.get("spec") or {}
    duration_s, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration_s is not None and duration_s <= 0:
        yield FieldError.invalid("spec.leaseDurationSeconds", duration_s, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield FieldError.invalid("spec.leaseTransitions", transitions, NOT_NEGATIVE)
    if spec.get("holderIdentity") == "":
        yield FieldError.invalid("spec.holderIdentity", "", "must not be empty")


def event_errors(event: Obj) -> list[FieldError]:
    """An event lives in the namespace of what it is about; in `default` if that has none."""
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    namespace = event["metadata"].get("namespace") or ""
    if about == namespace or (not about and namespace == "default"):
        return []
    return [FieldError.invalid("involvedObject.namespace", about, "does not match event.namespace")]


def quota_errors(quota: Obj) -> list[FieldError]:
    """Limits and scopes."""
    spec = quota.get("spec") or {}
    hard = spec.get("hard") or {}
    errors = quantity_errors(hard, "spec.hard")
    if not errors:
        for resource, amount in hard.items():
            number = parse_quantity(amount)
            if (resource in _COUNTED or resource.startswith("count/")) and number != number.to_integral_value():
                errors.append(FieldError.invalid(f"spec.hard[{resource}]", str(amount), "must be an integer"))
    for scope in spec.get("scopes") or ():
        if scope not in _QUOTA_SCOPES:
            errors.append(FieldError.invalid("spec.scopes", scope, "unsupported scope"))
    return errors


# -- kinds that are only stored


def job_errors(job: Obj) -> Iterator[FieldError]:
    """Numbers, selector, and a template whose pods end."""
    spec = job.get("spec") or {}
    yield from (
        error
        for field in ("parallelism", "completions", "backoffLimit")
        for error in not_negative(spec.get(field), f"spec.{field}")
    )
    yield from selector_errors(spec.get("selector") or {}, "spec.selector")
    template = spec.get("template") or {}
    yield from template_errors(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy == "Always":
        choices = ("OnFailure", "Never")
        yield FieldError.unsupported("spec.template.spec.restartPolicy", policy, choices)


_JOB_KEEPS: Final = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "successPolicy",
    "backoffLimitPerIndex",
    "managedBy",
)


def job_update_errors(new: Obj, old: Obj) -> Iterator[FieldError]:
    """As for a new one; the template stays, and how pods count. Of a Job that is suspended and has never begun, what
    places its pods may change.
    """
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if spec is old_spec:
        return
    yield from job_errors(new)
    completions = spec.get("completions")
    if completions != old_spec.get("completions"):
        if spec.get("completionMode") != "Indexed":
            yield FieldError.invalid("spec.completions", completions, IMMUTABLE)
        elif completions is None or completions != spec.get("parallelism"):
            why = "can only be modified in tandem with spec.parallelism"
            yield FieldError.invalid("spec.completions", completions, why)
    for field in _JOB_KEEPS:
        if spec.get(field) != old_spec.get(field):
            yield FieldError.invalid(f"spec.{field}", spec.get(field), IMMUTABLE)
    may_move = old_spec.get("suspend") and not (old.get("status") or {}).get("startTime")
    kept = _unplaced if may_move else _as_typed
    if kept(spec.get("template")) != kept(old_spec.get("template")):
        yield FieldError.invalid("spec.template", spec.get("template"), IMMUTABLE)


def _unplaced(template: Obj | None) -> Obj:
    """A template without what decides on which nodes its pods are."""
    meta, spec = ({**((template or {}).get(part) or {})} for part in ("metadata", "spec"))
    affinity = {name: each for name, each in (spec.pop("affinity", None) or {}).items() if name != "nodeAffinity"}
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        spec.pop(field, None)
    for field in ("labels", "annotations"):
        meta.pop(field, None)
    return _as_typed({"metadata": meta, "spec": spec, "affinity": affinity})


def _as_typed(template: Obj | None) -> Obj:
    """Without an empty metadata or a null in it: Go's clients send `creationTimestamp: null`."""
    meta = {name: each for name, each in ((template or {}).get("metadata") or {}).items() if each is not None}
    return {**(template or {}), "metadata": meta}


def budget_errors(budget: Obj) -> Iterator[FieldError]:
    """The selector, and one limit at most."""
    spec = budget.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        why = "minAvailable and maxUnavailable cannot be both set"
        yield FieldError.invalid("spec", spec, why)
    yield from selector_errors(spec.get("selector") or {}, "spec.selector")


def networkpolicy_errors(policy: Obj) -> list[FieldError]:
    """The selector of its pods."""
    return selector_errors((policy.get("spec") or {}).get("podSelector") or {}, "spec.podSelector")
