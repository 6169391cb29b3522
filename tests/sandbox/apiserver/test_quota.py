"""Quotas: what counts, the refusal in upstream's words, the status."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.kinds.kinds import KINDS
from oarlock.sandbox.apiserver.loops.quota import Quotas
from oarlock.sandbox.apiserver.store.store import Store
from tests.sandbox.embedded_world import add, no_failed_looks, store_with

Obj = dict[str, Any]


@pytest.fixture(autouse=True)
def _no_failed_looks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield from no_failed_looks(caplog)


@pytest.fixture
def store() -> Store:
    return store_with("default", "other")


@pytest.fixture
def quotas(store: Store) -> Quotas:
    made = Quotas(store)
    made.watch()
    return made


def limit(store: Store, name: str = "q", *scopes: str, namespace: str = "default", **hard: Any) -> None:
    spec: Obj = {"hard": {key.replace("__", "/"): value for key, value in hard.items()}}
    if scopes:
        spec["scopes"] = list(scopes)
    add(store, "ResourceQuota", name, namespace=namespace, spec=spec)


def refusal(quotas: Quotas, store: Store, kind: str = "Pod", **more: Any) -> str | None:
    obj: Obj = {"metadata": {"name": "x", "namespace": "default"}, "status": {"phase": "Pending"}, **more}
    try:
        quotas.check_create(store, KINDS[kind], obj)
    except ApiError as error:
        return error.message if (error.code, error.reason) == (403, "Forbidden") else repr(error)
    return None


def used(store: Store, quotas: Quotas, name: str = "q") -> Obj:
    quotas.write_status()
    status: Obj = (store.get("ResourceQuota", "default", name) or {})["status"]
    return status["used"]


def phase(store: Store, name: str, value: str) -> None:
    pod = store.get("Pod", "default", name) or {}
    store.update("Pod", {**pod, "status": {**pod["status"], "phase": value}})


def test_the_refusal(store: Store, quotas: Quotas) -> None:
    limit(store, pods="2")
    add(store, "Pod", "a")
    assert refusal(quotas, store) is None
    add(store, "Pod", "b")
    assert refusal(quotas, store) == (
        'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2'
    )
    assert used(store, quotas) == {"pods": "2"}


def test_a_pod_whose_name_is_not_yet_made(store: Store, quotas: Quotas) -> None:
    limit(store, pods=0)
    meta = {"generateName": "web-", "namespace": "default"}
    assert (refusal(quotas, store, metadata=meta) or "").startswith('pods "web-" is forbidden: exceeded quota')


def test_both_ways_to_count_pods(store: Store, quotas: Quotas) -> None:
    limit(store, pods=1, count__pods="1")
    add(store, "Pod", "a")
    assert (refusal(quotas, store) or "").endswith(
        "requested: count/pods=1,pods=1, used: count/pods=1,pods=1, limited: count/pods=1,pods=1"
    )


def test_an_ended_pod_counts_only_as_an_object(store: Store, quotas: Quotas) -> None:
    limit(store, pods=1, count__pods=9)
    add(store, "Pod", "a")
    for ended in ("Failed", "Succeeded"):
        phase(store, "a", ended)
        assert used(store, quotas) == {"pods": "0", "count/pods": "1"}
    assert refusal(quotas, store) is None
    phase(store, "a", "Running")
    assert used(store, quotas) == {"pods": "1", "count/pods": "1"}
    store.delete("Pod", "default", "a")
    assert used(store, quotas) == {"pods": "0", "count/pods": "0"}


def test_a_terminating_pod_counts_until_it_is_gone(store: Store, quotas: Quotas) -> None:
    limit(store, pods=1)
    add(store, "Pod", "a", meta={"finalizers": ["example.com/hold"]})
    store.delete("Pod", "default", "a")
    assert refusal(quotas, store) is not None
    store.remove("Pod", "default", "a")
    assert refusal(quotas, store) is None


def test_a_quota_counts_what_is_already_there(store: Store, quotas: Quotas) -> None:
    add(store, "Pod", "a")
    add(store, "Pod", "b", namespace="other")
    limit(store, pods=5, resourcequotas=5)
    assert used(store, quotas) == {"pods": "1", "resourcequotas": "1"}


def test_quotas_that_are_there_before_it_starts(store: Store) -> None:
    limit(store, pods=1)
    add(store, "Pod", "a")
    late = Quotas(store)
    late.watch()
    assert refusal(late, store) is not None


def test_another_namespace_is_not_meant(store: Store, quotas: Quotas) -> None:
    limit(store, namespace="other", pods=0)
    assert refusal(quotas, store) is None


def test_a_changed_limit_holds_at_once(store: Store, quotas: Quotas) -> None:
    limit(store, pods=0)
    assert refusal(quotas, store) is not None
    stored = store.get("ResourceQuota", "default", "q") or {}
    store.update("ResourceQuota", {**stored, "spec": {"hard": {"pods": "1"}}})
    assert refusal(quotas, store) is None
    quotas.write_status()
    assert (store.get("ResourceQuota", "default", "q") or {})["status"]["hard"] == {"pods": "1"}


def test_a_deleted_quota_limits_nothing(store: Store, quotas: Quotas) -> None:
    limit(store, pods=0)
    store.delete("ResourceQuota", "default", "q")
    assert refusal(quotas, store) is None


def test_the_first_of_several_by_name_tells(store: Store, quotas: Quotas) -> None:
    limit(store, "b", pods=0)
    limit(store, "a", pods=0)
    assert "exceeded quota: a," in (refusal(quotas, store) or "")


@pytest.mark.parametrize(
    ("kind", "resource"),
    [("ReplicaSet", "count/replicasets.apps"), ("ConfigMap", "configmaps"), ("ConfigMap", "count/configmaps")],
)
def test_other_kinds_count_too(store: Store, quotas: Quotas, kind: str, resource: str) -> None:
    add(store, "ResourceQuota", "q", spec={"hard": {resource: "1"}})
    assert refusal(quotas, store, kind) is None
    add(store, kind, "a")
    assert f"requested: {resource}=1, used: {resource}=1, limited: {resource}=1" in (refusal(quotas, store, kind) or "")
    assert refusal(quotas, store, "Pod") is None


@pytest.mark.parametrize(
    ("scope", "pod", "counts"),
    [
        ("BestEffort", {"status": {"qosClass": "BestEffort"}}, True),
        ("BestEffort", {"status": {"qosClass": "Burstable"}}, False),
        ("NotBestEffort", {"status": {"qosClass": "Burstable"}}, True),
        ("Terminating", {"spec": {"activeDeadlineSeconds": 5}}, True),
        ("Terminating", {"spec": {}}, False),
        ("NotTerminating", {"spec": {}}, True),
        ("PriorityClass", {"spec": {"priorityClassName": "high"}}, True),
        ("PriorityClass", {"spec": {}}, False),
    ],
)
def test_scopes(store: Store, quotas: Quotas, scope: str, pod: Obj, counts: bool) -> None:
    limit(store, "q", scope, pods=0)
    assert (refusal(quotas, store, **pod) is not None) is counts


def test_scopes_select_pods_and_nothing_else(store: Store, quotas: Quotas) -> None:
    add(store, "ResourceQuota", "q", spec={"hard": {"configmaps": "0"}, "scopes": ["NotTerminating"]})
    assert refusal(quotas, store, "ConfigMap") is None


def test_a_quota_that_goes_before_its_status_is_written(store: Store, quotas: Quotas) -> None:
    limit(store, pods=1)
    store.delete("ResourceQuota", "default", "q")
    quotas.write_status()
    assert store.list("ResourceQuota") == []


def test_in_the_background_of_a_loop() -> None:
    async def scenario() -> tuple[Obj, Obj]:
        store = store_with()
        quotas = Quotas(store)
        limit(store, pods=5)
        quotas.start()
        add(store, "Pod", "a")
        for _ in range(5):
            await asyncio.sleep(0)
        status: Obj = (store.get("ResourceQuota", "default", "q") or {})["status"]
        await quotas.stop()
        add(store, "Pod", "b")
        quotas.write_status()
        late: Obj = (store.get("ResourceQuota", "default", "q") or {})["status"]
        return status["used"], late["used"]

    assert asyncio.run(scenario()) == ({"pods": "1"}, {"pods": "1"})


def test_compute_resources_are_kept_and_not_enforced(store: Store, quotas: Quotas) -> None:
    add(store, "ResourceQuota", "q", spec={"hard": {"requests.cpu": "1", "pods": "9"}})
    add(store, "Pod", "a")
    assert used(store, quotas) == {"pods": "1"}
    stored = store.get("ResourceQuota", "default", "q") or {}
    assert stored["status"]["hard"] == {"requests.cpu": "1", "pods": "9"}


@pytest.mark.parametrize("seed", range(5))
def test_the_running_count_is_the_true_count(store: Store, quotas: Quotas, seed: int) -> None:
    """Random creates, phase changes and deletes; a failing run is repeated by its seed in the test id."""
    chance = random.Random(seed)
    limit(store, pods=1000, count__pods=1000)
    alive: list[str] = []
    for step in range(200):
        if not alive or chance.random() < 0.5:
            alive.append(add(store, "Pod", f"p{step}")["metadata"]["name"])
        elif chance.random() < 0.5:
            phase(store, chance.choice(alive), chance.choice(["Pending", "Running", "Failed", "Succeeded"]))
        else:
            store.delete("Pod", "default", alive.pop(chance.randrange(len(alive))))
        ended = sum(pod["status"]["phase"] in ("Failed", "Succeeded") for pod in store.list("Pod"))
        assert used(store, quotas) == {"pods": str(len(alive) - ended), "count/pods": str(len(alive))}
