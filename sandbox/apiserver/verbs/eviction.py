"""The subresource pods/eviction: a delete that a disruption budget may refuse.

Upstream: pkg/registry/core/pod/storage/eviction.go and pkg/controller/disruption/disruption.go. No controller keeps
the status of budgets here, so an eviction works out the budget at that moment: how many of the pods selected are
ready, and how many have to be.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import ApiError, FieldError, bad_request, invalid
from oarlock.sandbox.apiserver.http.paths import Target
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.validation.label_selector import selector_matches
from oarlock.sandbox.apiserver.verbs.deletion import options_from
from oarlock.sandbox.apiserver.verbs.rest import Outcome, Params, Rest, is_dry_run, success

Obj = dict[str, Any]

_VERSIONS: Final = ("policy/v1", "policy/v1beta1")
_RUNS_NO_LONGER: Final = ("Succeeded", "Failed", "Pending")


def evict(rest: Rest, target: Target, eviction: Obj, params: Params) -> Outcome:
    """POST of an Eviction. Raises ApiError 400, 404, 409, 422; 429 while a budget does not allow it."""
    if eviction.get("kind", "Eviction") != "Eviction" or eviction.get("apiVersion", _VERSIONS[0]) not in _VERSIONS:
        raise bad_request(f"the body must be an Eviction of {_VERSIONS[0]}")
    meta, said = eviction.get("metadata") or {}, eviction.get("deleteOptions") or {}
    if not isinstance(meta, dict) or not isinstance(said, dict):
        raise bad_request("Eviction: metadata and deleteOptions must be objects")
    if meta.get("name", target.name) != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    pod = rest.store.require("Pod", target.namespace, target.name).obj
    options = options_from({**said, "dryRun": ["All"]} if is_dry_run(params) else said)
    runs = (pod.get("status") or {}).get("phase") not in _RUNS_NO_LONGER and "deletionTimestamp" not in pod["metadata"]
    if runs:
        _check_budget(rest.store, pod)
    rest.store.delete_stored("Pod", target.namespace, target.name, options)
    return Outcome(201, success(201), pod["metadata"])


def _check_budget(store: Store, pod: Obj) -> None:
    """Raises ApiError 429 if the one budget that selects `pod` has nothing to spare, 500 if several select it."""
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
    budgets = [
        budget
        for budget in store.list("PodDisruptionBudget", namespace)
        if _selects((budget.get("spec") or {}).get("selector"), labels)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(500, "InternalError", why)
    healthy, needed = counts(store, budgets[0])
    if _is_ready(pod) and healthy - 1 < needed:
        name = budgets[0]["metadata"]["name"]
        why = f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
        raise ApiError(
            429,
            "TooManyRequests",
            "Cannot evict pod as it would violate the pod's disruption budget.",
            {"causes": [{"reason": "DisruptionBudget", "message": why}]},
        )


def counts(store: Store, budget: Obj) -> tuple[int, int]:
    """How many pods of a budget are healthy, and how many have to be."""
    spec, namespace = budget.get("spec") or {}, budget["metadata"]["namespace"]
    pods = [
        pod
        for pod in store.list("Pod", namespace)
        if _selects(spec.get("selector"), pod["metadata"].get("labels") or {})
    ]
    healthy = sum(_is_ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in pods)
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if most is not None:
        expected = _expected(store, namespace, pods)
        return healthy, max(0, expected - _share(most, expected))
    return healthy, _share(1 if least is None else least, _expected(store, namespace, pods))


def _expected(store: Store, namespace: str, pods: list[Obj]) -> int:
    """How many pods there ought to be: the sizes of their controllers, and the pods without one."""
    total, seen = 0, set()
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences") or ()
        owner = next((owner for owner in owners if owner.get("controller")), None)
        kind = store.kind_of(owner["apiVersion"], owner["kind"]) if owner is not None else None
        obj = store.get(kind.name, namespace, owner["name"]) if owner is not None and kind is not None else None
        size = (obj.get("spec") or {}).get("replicas") if obj is not None else None
        if owner is None or size is None:
            total += 1
        elif owner["uid"] not in seen:
            seen.add(owner["uid"])
            total += size
    return total


def _share(value: int | str, of: int) -> int:
    """A number, or a percentage rounded up. Raises ApiError 422 for what is neither."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if not digits.isdigit():
        raise invalid("PodDisruptionBudget", "policy", "", [FieldError.invalid("spec", value, "must be a percentage")])
    return int((Decimal(digits) * of / 100).to_integral_value(ROUND_CEILING))


def _is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _selects(selector: Obj | None, labels: dict[str, str]) -> bool:
    """No selector selects nothing, an empty one everything."""
    return selector is not None and selector_matches(selector, labels)
