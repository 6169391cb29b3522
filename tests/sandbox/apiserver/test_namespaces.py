"""A namespace is deleted with everything in it, and not before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from oarlock.sandbox.apiserver.loops.namespaces import NamespaceCollector
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.verbs.deletion import NOW
from tests.sandbox.embedded_world import add, names, no_failed_looks, store_with

HOLD = {"finalizers": ["example.com/hold"]}


@pytest.fixture(autouse=True)
def _no_failed_looks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield from no_failed_looks(caplog)


@pytest.fixture
def store() -> Store:
    return store_with("default", "gone")


@pytest.fixture
def collector(store: Store) -> NamespaceCollector:
    made = NamespaceCollector(store)
    made.watch()
    return made


def test_an_empty_namespace(store: Store, collector: NamespaceCollector) -> None:
    store.delete("Namespace", "", "gone")
    assert names(store, "Namespace") == ["default", "gone"]
    collector.collect()
    assert names(store, "Namespace") == ["default"]


def test_everything_in_it_goes_and_nothing_else(store: Store, collector: NamespaceCollector) -> None:
    for namespace in ("default", "gone"):
        for kind in ("ReplicaSet", "Pod", "ConfigMap", "Lease"):
            add(store, kind, "x", namespace=namespace)
    store.create("Node", {"metadata": {"name": "n"}})
    store.delete("Namespace", "", "gone")
    collector.collect()
    assert names(store, "Namespace") == ["default"]
    assert list(store.keys_in("gone")) == []
    assert len(list(store.keys_in("default"))) == 4
    assert names(store, "Node") == ["n"]


def test_it_waits_for_a_pod_that_ends_gracefully(store: Store, collector: NamespaceCollector) -> None:
    spec = {"nodeName": "n", "terminationGracePeriodSeconds": 30}
    add(store, "Pod", "p", namespace="gone", spec=spec, status={"phase": "Running"})
    store.delete("Namespace", "", "gone")
    collector.collect()
    assert store.list("Namespace")[1]["status"]["phase"] == "Terminating"
    store.delete("Pod", "gone", "p", NOW)
    collector.collect()
    assert names(store, "Namespace") == ["default"]


def test_it_waits_for_what_a_finalizer_holds(store: Store, collector: NamespaceCollector) -> None:
    add(store, "ConfigMap", "held", namespace="gone", meta=HOLD)
    store.delete("Namespace", "", "gone")
    collector.collect()
    held = store.get("ConfigMap", "gone", "held")
    assert held is not None
    assert held["metadata"]["deletionTimestamp"]
    store.update("ConfigMap", {**held, "metadata": {**held["metadata"], "finalizers": []}})
    collector.collect()
    assert names(store, "Namespace") == ["default"]


def test_what_gets_in_late_goes_too(store: Store, collector: NamespaceCollector) -> None:
    add(store, "ConfigMap", "held", namespace="gone", meta=HOLD)
    store.delete("Namespace", "", "gone")
    collector.collect()
    add(store, "ConfigMap", "late", namespace="gone")
    collector.collect()
    assert names(store, "ConfigMap", "gone") == ["held"]


def test_a_finalizer_of_the_namespace_itself_holds_it(store: Store, collector: NamespaceCollector) -> None:
    namespace = store.get("Namespace", "", "gone") or {}
    store.update("Namespace", {**namespace, "metadata": {**namespace["metadata"], **HOLD}})
    store.delete("Namespace", "", "gone")
    collector.collect()
    left = store.get("Namespace", "", "gone")
    assert left is not None
    assert left["spec"]["finalizers"] == []
    store.update("Namespace", {**left, "metadata": {**left["metadata"], "finalizers": []}})
    assert names(store, "Namespace") == ["default"]


def test_a_finalizer_of_somebody_else_in_its_spec_holds_it(store: Store, collector: NamespaceCollector) -> None:
    namespace = store.get("Namespace", "", "gone") or {}
    store.update("Namespace", {**namespace, "spec": {"finalizers": ["example.com/hold", "kubernetes"]}})
    store.delete("Namespace", "", "gone")
    collector.collect()
    left = store.get("Namespace", "", "gone") or {}
    assert left["spec"] == {"finalizers": ["example.com/hold"]}


def test_what_has_gone_meanwhile_is_no_trouble(store: Store, collector: NamespaceCollector) -> None:
    add(store, "ConfigMap", "c", namespace="gone")
    store.delete("Namespace", "", "gone")
    store.remove("ConfigMap", "gone", "c")
    store.remove("Namespace", "", "gone")
    collector.collect()
    assert names(store, "Namespace") == ["default"]


def test_in_the_background_of_a_loop() -> None:
    async def scenario() -> list[str]:
        store = store_with("default", "gone")
        collector = NamespaceCollector(store)
        collector.start()
        for i in range(200):
            add(store, "ConfigMap", f"c-{i}", namespace="gone")
        store.delete("Namespace", "", "gone")
        for _ in range(20):
            await asyncio.sleep(0)
        await collector.stop()
        return names(store, "Namespace")

    assert asyncio.run(scenario()) == ["default"]
