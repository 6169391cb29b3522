"""The garbage collector: each way a delete can cascade, and every way an owner can be missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from oarlock.sandbox.apiserver.loops.garbage import GarbageCollector
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.verbs.deletion import NOW, DeleteOptions
from tests.sandbox.embedded_world import add, names, no_failed_looks, ref, store_with

Obj = dict[str, Any]

HOLD = {"finalizers": ["example.com/hold"]}


@pytest.fixture(autouse=True)
def _no_failed_looks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield from no_failed_looks(caplog)


@pytest.fixture
def store() -> Store:
    return store_with("default", "other")


@pytest.fixture
def garbage(store: Store) -> GarbageCollector:
    collector = GarbageCollector(store)
    collector.watch()
    return collector


def delete(store: Store, kind: str, name: str, propagation: str | None = None) -> None:
    store.delete(kind, "default", name, DeleteOptions(propagation=propagation))


def release(store: Store, kind: str, name: str) -> None:
    """Take all finalizers away."""
    obj = store.get(kind, "default", name)
    assert obj is not None
    store.update(kind, {**obj, "metadata": {**obj["metadata"], "finalizers": []}})


def test_background(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    for i in range(3):
        add(store, "Pod", f"web-{i}", ref(owner))
    add(store, "Pod", "alone")
    delete(store, "ReplicaSet", "web", "Background")
    assert names(store, "ReplicaSet") == []
    assert len(names(store, "Pod")) == 4, "collecting is for later"
    garbage.collect()
    assert names(store, "Pod") == ["alone"]


def test_background_goes_down_the_tree(store: Store, garbage: GarbageCollector) -> None:
    top = add(store, "ConfigMap", "top")
    middle = add(store, "ReplicaSet", "web", ref(top, "ConfigMap"))
    add(store, "Pod", "web-0", ref(middle))
    delete(store, "ConfigMap", "top")
    garbage.collect()
    assert names(store, "ReplicaSet") == names(store, "Pod") == []


def test_foreground_waits_for_blocking_dependents(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    add(store, "Pod", "web-0", ref(owner), meta=HOLD)
    add(store, "Pod", "web-1", ref(owner))
    delete(store, "ReplicaSet", "web", "Foreground")
    garbage.collect()
    assert names(store, "ReplicaSet") == ["web"], "it waits for web-0"
    assert names(store, "Pod") == ["web-0"]
    held = store.get("Pod", "default", "web-0")
    assert held is not None
    assert held["metadata"]["deletionTimestamp"]
    release(store, "Pod", "web-0")
    garbage.collect()
    assert names(store, "ReplicaSet") == names(store, "Pod") == []


def test_foreground_does_not_wait_for_others(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    add(store, "Pod", "web-0", ref(owner, block=False), meta=HOLD)
    delete(store, "ReplicaSet", "web", "Foreground")
    garbage.collect()
    assert names(store, "ReplicaSet") == []
    release(store, "Pod", "web-0")
    garbage.collect()
    assert names(store, "Pod") == []


def test_foreground_without_dependents(store: Store, garbage: GarbageCollector) -> None:
    add(store, "ReplicaSet", "web")
    delete(store, "ReplicaSet", "web", "Foreground")
    garbage.collect()
    assert names(store, "ReplicaSet") == []


def test_foreground_goes_down_the_tree_leaves_first(store: Store, garbage: GarbageCollector) -> None:
    gone: list[str] = []
    store.subscribe(lambda event: gone.append(event.name) if event.type == "DELETED" else None)
    top = add(store, "ConfigMap", "top")
    middle = add(store, "ReplicaSet", "middle", ref(top, "ConfigMap"))
    add(store, "Pod", "leaf", ref(middle))
    delete(store, "ConfigMap", "top", "Foreground")
    garbage.collect()
    assert gone == ["leaf", "middle", "top"]


def test_a_dependent_that_lets_go_no_longer_blocks(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    pod = add(store, "Pod", "web-0", ref(owner), meta=HOLD)
    delete(store, "ReplicaSet", "web", "Foreground")
    garbage.collect()
    pod = store.get("Pod", "default", "web-0") or {}
    store.update("Pod", {**pod, "metadata": {**pod["metadata"], "ownerReferences": []}})
    garbage.collect()
    assert names(store, "ReplicaSet") == []
    assert names(store, "Pod") == ["web-0"]


def test_a_dependent_that_comes_during_foreground_deletion_is_deleted(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    add(store, "Pod", "web-0", ref(owner), meta=HOLD)
    delete(store, "ReplicaSet", "web", "Foreground")
    garbage.collect()
    add(store, "Pod", "web-1", ref(owner))
    garbage.collect()
    assert names(store, "Pod") == ["web-0"]


def test_a_circle_in_foreground_deletion_ends(store: Store, garbage: GarbageCollector) -> None:
    first = add(store, "ConfigMap", "first")
    second = add(store, "ConfigMap", "second", ref(first, "ConfigMap"))
    store.update(
        "ConfigMap",
        {**first, "metadata": {**first["metadata"], "ownerReferences": [ref(second, "ConfigMap")]}},
    )
    delete(store, "ConfigMap", "first", "Foreground")
    garbage.collect()
    assert names(store, "ConfigMap") == []


def test_orphan(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    other = add(store, "ConfigMap", "other")
    for i in range(450):
        add(store, "Pod", f"web-{i}", ref(owner))
    add(store, "Pod", "shared", ref(owner), ref(other, "ConfigMap", controller=False))
    delete(store, "ReplicaSet", "web", "Orphan")
    assert names(store, "ReplicaSet") == ["web"], "it waits until all are released"
    garbage.collect()
    assert names(store, "ReplicaSet") == []
    pods = {pod["metadata"]["name"]: pod["metadata"].get("ownerReferences") for pod in store.list("Pod")}
    assert len(pods) == 451
    assert [owner["kind"] for owner in pods.pop("shared") or ()] == ["ConfigMap"]
    assert set(pods.values()) == {None}


@pytest.mark.parametrize("policy", ["Orphan", "Foreground"])
def test_a_finalizer_of_somebody_else_stays(store: Store, garbage: GarbageCollector, policy: str) -> None:
    add(store, "ReplicaSet", "web", meta=HOLD)
    delete(store, "ReplicaSet", "web", policy)
    garbage.collect()
    assert store.list("ReplicaSet")[0]["metadata"]["finalizers"] == HOLD["finalizers"]


def test_an_owner_that_is_held_keeps_its_dependents(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web", meta=HOLD)
    add(store, "Pod", "web-0", ref(owner))
    delete(store, "ReplicaSet", "web", "Background")
    add(store, "Pod", "web-1", ref(owner))
    garbage.collect()
    assert names(store, "Pod") == ["web-0", "web-1"], "background deletion begins when the owner has gone"
    release(store, "ReplicaSet", "web")
    garbage.collect()
    assert names(store, "Pod") == []


@pytest.mark.parametrize(("finalizer", "left"), [("orphan", ["leaf"]), ("foregroundDeletion", [])])
def test_a_dependent_may_say_how_it_wants_to_go(
    store: Store, garbage: GarbageCollector, finalizer: str, left: list[str]
) -> None:
    top = add(store, "ConfigMap", "top")
    middle = add(store, "ReplicaSet", "middle", ref(top, "ConfigMap"), meta={"finalizers": [finalizer]})
    add(store, "Pod", "leaf", ref(middle))
    gone: list[str] = []
    store.subscribe(lambda event: gone.append(event.name) if event.type == "DELETED" else None)
    delete(store, "ConfigMap", "top")
    garbage.collect()
    assert names(store, "ReplicaSet") == []
    assert names(store, "Pod") == left
    assert gone == (["top", "middle"] if left else ["top", "leaf", "middle"])


def test_an_object_that_has_gone_meanwhile_is_no_trouble(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    add(store, "Pod", "web-0", ref(owner))
    delete(store, "ReplicaSet", "web")
    store.remove("Pod", "default", "web-0")
    garbage.collect()
    assert names(store, "Pod") == []


def test_an_orphaned_pod_has_no_empty_list_of_owners(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    add(store, "Pod", "web-0", ref(owner))
    delete(store, "ReplicaSet", "web", "Orphan")
    garbage.collect()
    assert "ownerReferences" not in store.list("Pod")[0]["metadata"]


@pytest.mark.parametrize(
    ("change", "collected"),
    [
        pytest.param({}, False, id="the owner is there"),
        pytest.param({"uid": "another"}, True, id="the same name with another uid"),
        pytest.param({"name": "nobody"}, True, id="no such name"),
        pytest.param({"kind": "ConfigMap", "apiVersion": "v1"}, True, id="no such object of that kind"),
        pytest.param({"kind": "Widget"}, False, id="a kind that is not served: cannot tell"),
        pytest.param({"apiVersion": "example.com/v1"}, False, id="a group that is not served: cannot tell"),
        pytest.param({"apiVersion": "apps/v1beta2"}, False, id="another version of the same group"),
    ],
)
def test_a_pod_created_for_an_owner(store: Store, garbage: GarbageCollector, change: Obj, collected: bool) -> None:
    owner = add(store, "ReplicaSet", "web")
    add(store, "Pod", "web-0", {**ref(owner), **change})
    garbage.collect()
    assert names(store, "Pod") == ([] if collected else ["web-0"])


def test_a_pod_created_after_its_owner_left(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    delete(store, "ReplicaSet", "web")
    garbage.collect()
    add(store, "ReplicaSet", "web")
    add(store, "Pod", "web-0", ref(owner))
    garbage.collect()
    assert names(store, "Pod") == []


def test_an_owner_in_another_namespace_is_no_owner(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web", namespace="other")
    add(store, "Pod", "web-0", ref(owner))
    garbage.collect()
    assert names(store, "Pod") == []


def test_a_cluster_scoped_owner(store: Store, garbage: GarbageCollector) -> None:
    node = store.create("Node", {"metadata": {"name": "n"}})
    add(store, "Pod", "p", ref(node, "Node"))
    garbage.collect()
    assert names(store, "Pod") == ["p"]
    store.delete("Node", "", "n")
    garbage.collect()
    assert names(store, "Pod") == []


def test_one_owner_left_is_enough_and_references_to_the_others_go(store: Store, garbage: GarbageCollector) -> None:
    first, second = add(store, "ReplicaSet", "first"), add(store, "ReplicaSet", "second")
    add(store, "Pod", "p", ref(first), ref(second, controller=False))
    delete(store, "ReplicaSet", "first")
    garbage.collect()
    refs = store.list("Pod")[0]["metadata"]["ownerReferences"]
    assert [r["name"] for r in refs] == ["second"]
    delete(store, "ReplicaSet", "second")
    garbage.collect()
    assert names(store, "Pod") == []


def test_an_adoption_by_nobody_is_noticed(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    pod = add(store, "Pod", "p")
    delete(store, "ReplicaSet", "web")
    garbage.collect()
    store.update("Pod", {**pod, "metadata": {**pod["metadata"], "ownerReferences": [ref(owner)]}})
    garbage.collect()
    assert names(store, "Pod") == []


def test_a_running_pod_is_given_its_grace(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    add(
        store,
        "Pod",
        "web-0",
        ref(owner),
        spec={"nodeName": "n", "terminationGracePeriodSeconds": 30},
        status={"phase": "Running"},
    )
    delete(store, "ReplicaSet", "web")
    garbage.collect()
    pod = store.get("Pod", "default", "web-0")
    assert pod is not None
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    store.delete("Pod", "default", "web-0", NOW)
    assert names(store, "Pod") == []


def test_a_quiet_store_costs_nothing(store: Store, garbage: GarbageCollector) -> None:
    owner = add(store, "ReplicaSet", "web")
    pod = add(store, "Pod", "web-0", ref(owner))
    garbage.collect()
    store.update("Pod", {**pod, "status": {"phase": "Running"}})
    assert garbage.collect() == 0


def test_in_the_background_of_a_loop() -> None:
    async def scenario() -> list[str]:
        store = store_with()
        garbage = GarbageCollector(store)
        garbage.start()
        owner = add(store, "ReplicaSet", "web")
        for i in range(200):
            add(store, "Pod", f"web-{i}", ref(owner))
        delete(store, "ReplicaSet", "web")
        for _ in range(20):
            await asyncio.sleep(0)
        left = names(store, "Pod")
        await garbage.stop()
        late = add(store, "Pod", "late", ref(owner))
        await asyncio.sleep(0)
        assert store.get("Pod", "default", "late") is late, "it has stopped"
        assert garbage.collect() == 0, "and takes note of nothing"
        return left

    assert asyncio.run(scenario()) == []
