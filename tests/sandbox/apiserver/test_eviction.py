"""Evictions: deletes that a disruption budget may refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_harness import PODS, SETS, STRATEGIC, Api, names, pod, replicaset

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def running(api: Api, count: int, *, ready: int | None = None) -> None:
    """A ReplicaSet and `count` of its pods, of which so many are ready."""
    owner = api.create(SETS, replicaset(replicas=count))
    ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner["metadata"]["uid"]}
    for number in range(count):
        obj = pod(f"p{number}", {"app": "web"})
        obj["metadata"]["ownerReferences"] = [{**ref, "controller": True}]
        api.create(PODS, obj)
        is_ready = "True" if ready is None or number < ready else "False"
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": is_ready}]}
        api.patch(f"{PODS}/p{number}/status", {"status": status}, STRATEGIC)


def budget(api: Api, name: str = "b", **spec: Any) -> None:
    api.create(BUDGETS, {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}})


def evict(api: Api, name: str, **options: Any) -> tuple[int, Any]:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options}
    return api.call("POST", f"{PODS}/{name}/eviction", body)


def test_without_a_budget_it_is_a_delete(api: Api) -> None:
    running(api, 1)
    assert evict(api, "p0", preconditions={"uid": "x"})[0] == 409
    assert evict(api, "p0")[0] == 201
    assert api.get(PODS)["items"] == []
    assert evict(api, "p0")[0] == 404


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 2}, 2),
        ({"minAvailable": "60%"}, 1),
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "50%"}, 2),
        ({"maxUnavailable": 0}, 0),
        ({"minAvailable": 4}, 0),
    ],
)
def test_a_budget_is_kept(api: Api, spec: dict[str, Any], allowed: int) -> None:
    running(api, 4)
    budget(api, **spec)
    codes = [evict(api, f"p{number}")[0] for number in range(4)]
    assert codes == [201] * allowed + [429] * (4 - allowed)
    assert len(names(api.get(PODS))) == 4 - allowed


def test_the_refusal_says_why(api: Api) -> None:
    running(api, 2)
    budget(api, minAvailable=2)
    code, status = evict(api, "p0")
    assert (code, status["reason"]) == (429, "TooManyRequests")
    assert status["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    told = status["details"]["causes"][0]
    assert told["reason"] == "DisruptionBudget"
    assert told["message"] == "The disruption budget b needs 2 healthy pods and has 2 currently"


def test_a_pod_that_is_not_ready_may_always_go(api: Api) -> None:
    running(api, 2, ready=1)
    budget(api, minAvailable=1)
    assert evict(api, "p1")[0] == 201
    assert evict(api, "p0")[0] == 429


def test_two_budgets_for_a_pod(api: Api) -> None:
    running(api, 1)
    budget(api, "a", minAvailable=0)
    budget(api, "b", minAvailable=0)
    code, status = evict(api, "p0")
    assert (code, "more than one PodDisruptionBudget" in status["message"]) == (500, True)
