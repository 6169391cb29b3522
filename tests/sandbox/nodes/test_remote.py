"""Simulated nodes over HTTP: what they do, what they leave alone, and what they do about writes that fail."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client
from oarlock.sandbox.apiserver.http.faults import fault_from
from oarlock.sandbox.nodes.api.remote_pod_api import CannotRegister, RemotePodApi
from oarlock.sandbox.nodes.settings import SIMULATED, NodeSettings
from oarlock.sandbox.nodes.simulator import Simulator
from tests.sandbox.api_harness import PODS, STRATEGIC, WAIT_S, Api, pod, quick, running

Obj = dict[str, Any]
NODES = "/api/v1/nodes"
OURS = {"annotations": {SIMULATED: "true"}}


@pytest.fixture
def api() -> Iterator[Api]:
    with running(quick()) as client:
        yield client


def eventually(look: Callable[[], Any], want: Any) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while (seen := look()) != want:
        assert time.monotonic() < deadline_s, f"still {seen!r}, not {want!r}"
        time.sleep(0.005)


@contextmanager
def simulated(api: Api, look_again_s: float = 0.01, **settings: Any) -> Iterator[RemotePodApi]:
    """Nodes of their own thread, as another process would have them."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="nodes", daemon=True)
    thread.start()

    async def sleep(_: float) -> None:
        await asyncio.sleep(look_again_s)

    async def start() -> tuple[Client, RemotePodApi, Simulator]:
        client = Client(ClusterConfig(f"http://127.0.0.1:{api.port}"), role="nodes")
        remote = RemotePodApi(client, sleep=sleep)
        nodes = Simulator(remote, NodeSettings(**{"nodes": 2, "gone_node_ms": 50.0, **settings}))
        try:
            await nodes.begin()
        except CannotRegister:
            await client.close()
            raise
        nodes.start()
        return client, remote, nodes

    async def stop() -> None:
        await nodes.stop()
        await client.close()

    try:
        client, remote, nodes = asyncio.run_coroutine_threadsafe(start(), loop).result(WAIT_S)
        try:
            yield remote
        finally:
            asyncio.run_coroutine_threadsafe(stop(), loop).result(WAIT_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()


def phase(api: Api, name: str) -> tuple[str, str, bool]:
    """Node, phase and readiness of a pod; ("", "gone", False) when there is none."""
    code, found = api.call("GET", f"{PODS}/{name}")
    if code == 404:
        return "", "gone", False
    conditions = found["status"].get("conditions") or []
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return found["spec"].get("nodeName", ""), found["status"]["phase"], ready


def taints(api: Api, name: str) -> list[str]:
    return [taint["key"] for taint in api.get(f"{NODES}/{name}")["spec"].get("taints") or ()]


def node(name: str, **meta: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **meta}}


def test_a_pod_from_birth_to_end(api: Api) -> None:
    with simulated(api, nodes=1, terminate_ms=20.0):
        api.create(PODS, pod("p"))
        eventually(lambda: phase(api, "p"), ("node-0", "Running", True))
        api.delete(f"{PODS}/p")
        eventually(lambda: phase(api, "p"), ("", "gone", False))
        registered = api.get(f"{NODES}/node-0")
        assert registered["metadata"]["annotations"][SIMULATED] == "true"


def test_who_is_ready_has_no_reason_not_to_be(api: Api) -> None:
    with simulated(api, ready_ms=50):
        api.create(PODS, pod("p"))
        eventually(lambda: phase(api, "p")[1:], ("Running", True))
        conditions = api.get(f"{PODS}/p")["status"]["conditions"]
        assert not any(each.get("reason") or each.get("message") for each in conditions), conditions
        api.patch(f"{PODS}/p", {"metadata": {"annotations": {"oarlock.io/sim-never-ready": "true"}}})
        eventually(lambda: phase(api, "p")[1:], ("Running", False))
        assert "ContainersNotReady" in {each.get("reason") for each in api.get(f"{PODS}/p")["status"]["conditions"]}


def test_what_was_there_before_is_taken_up(api: Api) -> None:
    api.create(NODES, node("mine", **OURS))
    api.create(PODS, pod("p", nodeName="mine"))
    with simulated(api, nodes=0):
        eventually(lambda: phase(api, "p"), ("mine", "Running", True))
    with simulated(api, nodes=0):
        api.delete(f"{PODS}/p")
        eventually(lambda: phase(api, "p"), ("", "gone", False))


def test_nodes_of_others_are_left_alone(api: Api) -> None:
    """Theirs has no state, which would be reported, and pods, which would be run, ended or given up."""
    theirs = api.create(NODES, node("theirs"))
    api.create(PODS, pod("on-theirs", nodeName="theirs"))
    api.create(PODS, pod("going", nodeName="theirs"))
    api.delete(f"{PODS}/going")
    with simulated(api, nodes=1):
        api.create(PODS, pod("last"))
        eventually(lambda: phase(api, "last"), ("node-0", "Running", True))
        time.sleep(0.1)
        assert phase(api, "on-theirs") == ("theirs", "Pending", False)
        assert phase(api, "going") == ("theirs", "Pending", False)
        assert api.get(f"{NODES}/theirs")["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]


def test_a_node_that_is_handed_over(api: Api) -> None:
    api.create(NODES, node("late"))
    api.create(PODS, pod("p", nodeName="late"))
    with simulated(api, nodes=0) as remote:
        api.patch(f"{NODES}/late", {"metadata": OURS})
        eventually(lambda: phase(api, "p"), ("late", "Running", True))
        assert list(remote.nodes) == ["late"]
        api.patch(f"{NODES}/late", {"metadata": {"annotations": {SIMULATED: None}}})
        eventually(lambda: list(remote.nodes), [])
        api.delete(f"{PODS}/p")
        time.sleep(0.1)
        assert phase(api, "p")[1] == "Running", "nobody ends it any more"


def test_a_name_that_is_taken(api: Api) -> None:
    api.create(NODES, node("node-1"))
    with pytest.raises(CannotRegister, match=r"node-1.*not simulated"), simulated(api):
        pass


def test_pods_of_a_node_that_is_gone_are_given_up(api: Api) -> None:
    with simulated(api, nodes=1):
        api.create(PODS, pod("p"))
        eventually(lambda: phase(api, "p"), ("node-0", "Running", True))
        api.delete(f"{NODES}/node-0")
        eventually(lambda: phase(api, "p"), ("", "gone", False))


def test_without_schedule_and_lifecycle(api: Api) -> None:
    with simulated(api, nodes=1, schedules=False, lifecycle=False):
        api.create(PODS, pod("waits"))
        api.create(PODS, pod("lost", nodeName="nowhere"))
        api.create(PODS, pod("bound", nodeName="node-0"))
        api.patch(f"{NODES}/node-0", {"spec": {"unschedulable": True}})
        eventually(lambda: phase(api, "bound"), ("node-0", "Running", True))
        time.sleep(0.15)
        assert phase(api, "waits") == ("", "Pending", False)
        assert phase(api, "lost") == ("nowhere", "Pending", False)
        assert taints(api, "node-0") == []


def test_taints_follow_the_state_and_noexecute_evicts(api: Api) -> None:
    with simulated(api, nodes=1):
        api.create(PODS, pod("p"))
        eventually(lambda: phase(api, "p"), ("node-0", "Running", True))
        api.patch(f"{NODES}/node-0", {"spec": {"unschedulable": True}})
        eventually(lambda: taints(api, "node-0"), ["node.kubernetes.io/unschedulable"])
        api.patch(f"{NODES}/node-0", {"spec": {"unschedulable": None, "taints": [{"key": "x", "effect": "NoExecute"}]}})
        eventually(lambda: phase(api, "p"), ("", "gone", False))
        eventually(lambda: taints(api, "node-0"), ["x"])


@pytest.mark.parametrize("resource", ["pods/binding", "pods/status", "pods", "nodes", "nodes/status"])
@pytest.mark.parametrize("action", ["fail500BeforeCommit", "fail500AfterCommit", "refuse429", "dropAnswer"])
def test_a_write_that_fails_is_made_good(resource: str, action: str) -> None:
    """Birth, taint and end of a pod, with the first three writes of one sort failing."""
    fault = {"action": action, "maxCount": 3, "resources": [resource], "userAgent": "nodes"}
    if resource == "nodes":
        fault["verbs"] = ["update", "patch"]
    with running(quick(faults_enabled=True, faults=(fault_from(fault),))) as api, simulated(api, nodes=1):
        api.create(PODS, pod("p"))
        eventually(lambda: phase(api, "p"), ("node-0", "Running", True))
        api.patch(f"{NODES}/node-0", {"spec": {"unschedulable": True}})
        eventually(lambda: taints(api, "node-0"), ["node.kubernetes.io/unschedulable"])
        api.create(NODES, node("another", **OURS))
        eventually(lambda: bool(api.get(f"{NODES}/another").get("status", {}).get("conditions")), True)
        api.delete(f"{PODS}/p")
        eventually(lambda: phase(api, "p"), ("", "gone", False))


def test_a_lost_history_is_read_anew() -> None:
    with running(quick(faults_enabled=True)) as api, simulated(api, nodes=1):
        api.create(PODS, pod("stays"))
        api.create(PODS, pod("goes"))
        eventually(lambda: phase(api, "goes"), ("node-0", "Running", True))
        code, _ = api.call("POST", "/_oarlock/faults", {"action": "cutHistory"})
        assert code in (200, 201)
        api.create(PODS, pod("comes"))
        api.delete(f"{PODS}/goes", {"gracePeriodSeconds": 0})
        eventually(lambda: phase(api, "comes"), ("node-0", "Running", True))
        eventually(lambda: phase(api, "goes"), ("", "gone", False))
        assert phase(api, "stays") == ("node-0", "Running", True)


def test_conditions_of_others_stay(api: Api) -> None:
    with simulated(api, nodes=1):
        api.create(PODS, pod("p"))
        eventually(lambda: phase(api, "p"), ("node-0", "Running", True))
        theirs = {"type": "example.com/seen", "status": "True"}
        api.patch(f"{PODS}/p/status", {"status": {"conditions": [theirs]}}, STRATEGIC)
        api.patch(f"{PODS}/p", {"metadata": {"annotations": {"oarlock.io/sim-never-ready": "true"}}})
        eventually(lambda: phase(api, "p"), ("node-0", "Running", False))
        types = [each["type"] for each in api.get(f"{PODS}/p")["status"]["conditions"]]
        assert len(types) == len(set(types))
        assert theirs["type"] in types
