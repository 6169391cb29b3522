"""The simulated nodes over a store: whole lives of pods, by hand turn by turn and in a running loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from oarlock.sandbox.apiserver.store.events import Event
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.verbs import deletion
from oarlock.sandbox.apiserver.verbs.deletion import DeleteOptions
from oarlock.sandbox.nodes.api.pod_api import PodRef, StorePodApi, merged_status
from oarlock.sandbox.nodes.settings import NodeSettings
from oarlock.sandbox.nodes.simulator import Simulator
from tests.sandbox.embedded_world import add, names, store_with

Obj = dict[str, Any]


class World:
    """A store with simulated nodes and a hand on the clock."""

    def __init__(self, **settings: Any) -> None:
        self.store = store_with()
        self.now_s = 1000.0
        self.nodes = Simulator(
            StorePodApi(self.store), NodeSettings(**settings), clock=self.store.clock, monotonic=lambda: self.now_s
        )
        asyncio.run(self.nodes.begin())

    def settle(self, after_s: float = 0.0) -> None:
        """Let `after_s` pass, then turn until nothing is left to do."""
        self.now_s += after_s

        async def turns() -> None:
            while await self.nodes.turn():
                pass

        asyncio.run(turns())

    def pod(self, name: str) -> Obj:
        return self.store.get("Pod", "default", name) or {}

    def phases(self) -> Counter[str]:
        return Counter(pod["status"]["phase"] for pod in self.store.list("Pod"))


def test_nodes_register() -> None:
    world = World(nodes=3, pods_per_node=50)
    nodes = world.store.list("Node")
    assert [node["metadata"]["name"] for node in nodes] == ["node-0", "node-1", "node-2"]
    assert nodes[1]["metadata"]["labels"] == {
        "kubernetes.io/hostname": "node-1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    assert nodes[0]["status"]["allocatable"]["pods"] == "50"
    assert {c["type"]: c["status"] for c in nodes[0]["status"]["conditions"]}["Ready"] == "True"
    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 3


def test_two_writes_from_created_to_ready() -> None:
    world = World()
    add(world.store, "Pod", "p")
    before = world.store.rv
    world.settle()
    assert world.store.rv == before + 2
    pod = world.pod("p")
    assert pod["spec"]["nodeName"] == "node-0"
    assert pod["status"]["phase"] == "Running"
    assert {c["type"]: c["status"] for c in pod["status"]["conditions"]} == {
        "PodScheduled": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }


def test_pods_spread_over_the_nodes() -> None:
    world = World(nodes=4)
    for i in range(200):
        add(world.store, "Pod", f"p{i}")
    world.settle()
    assert Counter(pod["spec"]["nodeName"] for pod in world.store.list("Pod")) == {f"node-{i}": 50 for i in range(4)}
    assert world.phases() == {"Running": 200}


def test_more_pods_than_room() -> None:
    world = World(nodes=2, pods_per_node=3)
    for i in range(8):
        add(world.store, "Pod", f"p{i}")
    world.settle()
    assert world.phases() == {"Running": 6, "Pending": 2}
    condition = world.pod("p7")["status"]["conditions"][0]
    assert condition["reason"] == "Unschedulable"
    assert condition["message"] == "0/2 nodes are available: 2 Too many pods."
    world.store.delete("Pod", "default", "p0")
    world.settle()
    world.settle()
    assert world.phases() == {"Running": 6, "Pending": 1}


def test_a_pod_that_names_its_node() -> None:
    world = World()
    add(world.store, "Pod", "p", spec={"nodeName": "node-3", "containers": []})
    world.settle()
    assert world.pod("p")["status"]["phase"] == "Running"


def test_a_deleted_pod_ends_and_leaves() -> None:
    world = World(terminate_ms=2000)
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 30}
    add(world.store, "Pod", "p", spec=spec)
    world.settle()
    world.store.delete("Pod", "default", "p")
    world.settle(1.9)
    assert world.pod("p")["metadata"]["deletionGracePeriodSeconds"] == 30
    world.settle(0.2)
    assert world.pod("p"), "the two seconds began when the delete was seen"
    world.settle(2)
    assert world.pod("p") == {}


def test_ready_after_a_delay() -> None:
    world = World(ready_ms=1500)
    add(world.store, "Pod", "p")
    world.settle()
    ready = [c for c in world.pod("p")["status"]["conditions"] if c["type"] == "Ready"]
    assert ready[0]["status"] == "False"
    world.settle(1.5)
    ready = [c for c in world.pod("p")["status"]["conditions"] if c["type"] == "Ready"]
    assert ready[0]["status"] == "True"
    assert "reason" not in ready[0]


def test_a_pod_whose_image_cannot_be_pulled_stays_pending() -> None:
    world = World()
    add(world.store, "Pod", "p", spec={"containers": [{"name": "c", "image": "foo:non-existent"}]})
    world.settle()
    seen = []
    for after_s in (0, 1, 10, 1):
        world.settle(after_s)
        status = world.pod("p")["status"]
        seen.append((status["phase"], status["containerStatuses"][0]["state"]["waiting"]["reason"]))
    assert seen == [("Pending", "ErrImagePull"), ("Pending", "ImagePullBackOff")] * 2
    assert {c["type"]: c["status"] for c in world.pod("p")["status"]["conditions"]} == {
        "PodScheduled": "True",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
    }
    world.store.delete("Pod", "default", "p", DeleteOptions())
    world.settle()
    assert world.pod("p") == {}


def test_pods_fail_on_request_and_free_their_place() -> None:
    world = World(nodes=1, pods_per_node=1)
    add(world.store, "Pod", "p")
    add(world.store, "Pod", "q")
    world.settle()
    assert world.nodes.fail(world.pod("p")["metadata"]["uid"], "Evicted") is True
    world.settle()
    assert world.pod("p")["status"]["reason"] == "Evicted"
    assert world.pod("q")["status"]["phase"] == "Running"


def test_cordon_and_uncordon() -> None:
    world = World(nodes=1)
    node = world.store.get("Node", "", "node-0") or {}
    world.store.update("Node", {**node, "spec": {**node["spec"], "unschedulable": True}})
    add(world.store, "Pod", "p")
    world.settle()
    assert world.phases() == {"Pending": 1}
    node = world.store.get("Node", "", "node-0") or {}
    world.store.update("Node", {**node, "spec": {}})
    world.settle()
    assert world.phases() == {"Running": 1}


def test_a_no_execute_taint_empties_a_node() -> None:
    world = World(nodes=2)
    for i in range(10):
        add(world.store, "Pod", f"p{i}")
    world.settle()
    node = world.store.get("Node", "", "node-0") or {}
    taints = [{"key": "k", "effect": "NoExecute"}]
    world.store.update("Node", {**node, "spec": {**node["spec"], "taints": taints}})
    world.settle()
    assert {pod["spec"]["nodeName"] for pod in world.store.list("Pod")} == {"node-1"}


def test_the_pods_of_a_deleted_node_are_given_up() -> None:
    world = World(nodes=2, gone_node_ms=1000)
    for i in range(10):
        add(world.store, "Pod", f"p{i}")
    world.settle()
    world.store.delete("Node", "", "node-0")
    world.settle()
    assert world.phases() == {"Running": 10}
    world.settle(1.0)
    assert {pod["spec"]["nodeName"] for pod in world.store.list("Pod")} == {"node-1"}


def begin_delete(world: World, name: str) -> None:
    """The first half of a DELETE, as a request that is cancelled between its two writes leaves it."""
    stored = world.store.require("Pod", "default", name)
    kind = world.store.kinds["Pod"]
    step = deletion.plan(kind, stored.obj, deletion.UNSAID, world.store.clock())
    assert step.write is not None
    world.store._commit("MODIFIED", kind, ("default", name), step.write, stored)


def test_a_delete_that_was_cancelled_half_way_is_finished() -> None:
    """Nobody else does: no kubelet is told of a pod without a node, and its controller has deleted it already."""
    world = World(nodes=1, terminate_ms=100)
    spec = {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"operator": "Exists"}]}
    add(world.store, "Pod", "bound", spec={**spec, "terminationGracePeriodSeconds": 30})
    world.settle()
    set_ready(world, "node-0", "Unknown")
    world.settle()
    for name in ("waiting", "held"):
        add(world.store, "Pod", name, meta={"finalizers": ["a/b"]} if name == "held" else {})
    world.settle()
    for name in ("bound", "waiting", "held"):
        begin_delete(world, name)
    world.settle()
    world.settle(19.9)
    assert names(world.store, "Pod") == ["bound", "held", "waiting"]
    world.settle(0.2)
    assert names(world.store, "Pod") == ["bound", "held"], "the kubelet of a node out of reach may come back"
    assert world.pod("held")["status"]["phase"] == "Failed"
    node = node_of(world, "node-0")
    out = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    world.store.update("Node", {**node, "spec": {**node["spec"], "taints": [*node["spec"]["taints"], out]}})
    world.settle(20.1)
    assert names(world.store, "Pod") == ["held"], "somebody has said that it will not"
    before = world.store.rv
    world.settle(60.0)
    assert world.store.rv == before, "whoever set the finalizer is waited for, and nothing is written meanwhile"


def test_who_leaves_the_lifecycle_to_others_finishes_no_deletes() -> None:
    world = World(nodes=0, lifecycle=False)
    add(world.store, "Pod", "p")
    begin_delete(world, "p")
    world.settle()
    world.settle(60.0)
    assert names(world.store, "Pod") == ["p"]


def node_of(world: World, name: str) -> Obj:
    return world.store.get("Node", "", name) or {}


def set_ready(world: World, name: str, ready: str) -> None:
    node = node_of(world, name)
    others = [c for c in node["status"]["conditions"] if c["type"] != "Ready"]
    status = {**node["status"], "conditions": [*others, {"type": "Ready", "status": ready}]}
    world.store.update("Node", {**node, "status": status})


def taint_keys(world: World, name: str) -> set[str]:
    return {f"{t['key']}:{t['effect']}" for t in node_of(world, name)["spec"].get("taints", [])}


def test_a_cordon_is_a_taint() -> None:
    world = World(nodes=1)
    node = node_of(world, "node-0")
    world.store.update("Node", {**node, "spec": {**node["spec"], "unschedulable": True}})
    world.settle()
    assert taint_keys(world, "node-0") == {"node.kubernetes.io/unschedulable:NoSchedule"}
    daemon = {"containers": [], "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}
    add(world.store, "Pod", "daemon", spec=daemon)
    add(world.store, "Pod", "other")
    world.settle()
    assert (world.pod("daemon")["status"]["phase"], world.pod("other")["status"]["phase"]) == ("Running", "Pending")
    node = node_of(world, "node-0")
    world.store.update("Node", {**node, "spec": {"taints": node["spec"]["taints"]}})
    world.settle()
    assert taint_keys(world, "node-0") == set()
    assert world.pod("other")["status"]["phase"] == "Running"


def test_a_node_that_is_not_ready_loses_the_pods_that_do_not_bear_it() -> None:
    world = World(nodes=1)
    not_ready = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    add(world.store, "Pod", "plain")
    add(
        world.store, "Pod", "patient", spec={"containers": [], "tolerations": [{**not_ready, "tolerationSeconds": 300}]}
    )
    add(world.store, "Pod", "daemon", spec={"containers": [], "tolerations": [not_ready]})
    world.settle()
    set_ready(world, "node-0", "False")
    world.settle()
    assert taint_keys(world, "node-0") == {
        "node.kubernetes.io/not-ready:NoSchedule",
        "node.kubernetes.io/not-ready:NoExecute",
    }
    assert {p["metadata"]["name"] for p in world.store.list("Pod")} == {"patient", "daemon"}
    assert ready_pods(world) == set()
    world.settle(299)
    assert world.pod("patient")
    world.settle(1)
    assert {p["metadata"]["name"] for p in world.store.list("Pod")} == {"daemon"}
    set_ready(world, "node-0", "True")
    world.settle()
    assert taint_keys(world, "node-0") == set()
    assert ready_pods(world) == {"daemon"}


def ready_pods(world: World) -> set[str]:
    return {
        pod["metadata"]["name"]
        for pod in world.store.list("Pod")
        if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
    }


def test_pods_do_not_leave_a_node_out_of_reach() -> None:
    world = World(nodes=1)
    add(world.store, "Pod", "p", spec={"containers": [], "terminationGracePeriodSeconds": 30})
    world.settle()
    set_ready(world, "node-0", "Unknown")
    world.settle()
    assert "node.kubernetes.io/unreachable:NoExecute" in taint_keys(world, "node-0")
    assert world.pod("p")["metadata"]["deletionTimestamp"], "evicted"
    set_ready(world, "node-0", "True")
    world.settle()
    assert world.pod("p") == {}


def test_heartbeats_change_nothing_else() -> None:
    world = World(nodes=4, heartbeat_ms=10_000)
    world.settle()
    before = {node["metadata"]["name"]: node for node in world.store.list("Node")}
    rv = world.store.rv
    world.store.clock = lambda: 1_800_000_100.0
    world.nodes._clock = world.store.clock
    world.settle(10)
    assert world.store.rv == rv + 4
    for node in world.store.list("Node"):
        was = before[node["metadata"]["name"]]
        assert (node["spec"], node["metadata"]["labels"]) == (was["spec"], was["metadata"]["labels"])
        assert {c["lastHeartbeatTime"] for c in node["status"]["conditions"]} == {"2027-01-15T08:01:40Z"}
        assert [c["lastTransitionTime"] for c in node["status"]["conditions"]] == [
            c["lastTransitionTime"] for c in was["status"]["conditions"]
        ]


def test_a_node_that_comes_and_goes_many_times_over() -> None:
    world = World(nodes=0, gone_node_ms=1000)
    spec = {"containers": [], "nodeSelector": {"kubernetes.io/hostname": "n"}}
    for turn in range(3):
        world.store.create("Node", {"metadata": {"name": "n"}})
        add(world.store, "Pod", f"p{turn}", spec=spec)
        world.settle()
        assert world.phases() == {"Running": 1}
        world.store.delete("Node", "", "n")
        world.settle()
        world.settle(1)
        assert world.phases() == {}


def test_many_nodes_at_once() -> None:
    world = World(nodes=0)
    for i in range(200):
        world.store.create("Node", {"metadata": {"name": f"n{i}"}, "spec": {"unschedulable": i % 2 == 0}})
    world.settle()
    nodes = world.store.list("Node")
    assert all(node["status"]["conditions"][-1]["status"] == "True" for node in nodes)
    assert sum(bool(node["spec"].get("taints")) for node in nodes) == 100
    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 200
    assert world.store.rv == 1 + 1 + 200 + 200 + 100, "one write to register, one for a taint"


def test_a_node_of_somebody_else_is_taken_over() -> None:
    world = World(nodes=0)
    add(world.store, "Pod", "p")
    world.settle()
    assert world.phases() == {"Pending": 1}
    world.store.create("Node", {"metadata": {"name": "mine"}, "status": {"capacity": {"pods": "2"}}})
    world.settle()
    node = world.store.get("Node", "", "mine") or {}
    assert node["status"]["capacity"] == node["status"]["allocatable"]
    assert (node["status"]["capacity"]["pods"], node["status"]["capacity"]["cpu"]) == ("2", "64")
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"
    assert world.pod("p")["spec"]["nodeName"] == "mine"
    assert world.phases() == {"Running": 1}


def test_another_pod_of_the_same_name_is_left_alone() -> None:
    world = World()
    pod = add(world.store, "Pod", "p")
    world.settle()
    stale = PodRef("default", "p", "another uid")
    before = world.store.rv
    api = StorePodApi(world.store)

    async def write() -> None:
        await api.bind([(stale, "node-1"), (PodRef("default", "p", pod["metadata"]["uid"]), "node-1")])
        await api.write_status([(stale, {"phase": "Failed"})])
        await api.delete([stale, PodRef("default", "none", "x")], now=True)

    asyncio.run(write())
    assert world.store.rv == before


def test_a_condition_that_stays_keeps_its_time() -> None:
    old = {"phase": "Pending", "conditions": [{"type": "A", "status": "True", "lastTransitionTime": "t0"}]}
    new = {
        "phase": "Running",
        "conditions": [
            {"type": "A", "status": "True", "lastTransitionTime": "t1"},
            {"type": "B", "status": "True", "lastTransitionTime": "t1"},
        ],
    }
    assert merged_status(old, new) == {
        "phase": "Running",
        "conditions": [
            {"type": "A", "status": "True", "lastTransitionTime": "t0"},
            {"type": "B", "status": "True", "lastTransitionTime": "t1"},
        ],
    }


async def until(store: Store, want: dict[str, int]) -> None:
    """Wait for a count of pods by phase; the deadline only ends a failing run."""
    async with asyncio.timeout(10):
        while Counter(pod["status"]["phase"] for pod in store.list("Pod")) != want:
            await asyncio.sleep(0)


@pytest.mark.parametrize(("others_s", "bound"), [(0.0, 64), (0.004, 64), (0.010, 128), (1.0, 192)])
def test_turns_take_as_long_as_the_others_had(others_s: float, bound: int) -> None:
    world = World(ready_ms=1_000.0)
    asyncio.run(world.nodes.turns())
    world.now_s += others_s

    def written(event: Event) -> None:
        if event.type == "MODIFIED":
            world.now_s += 0.0045 / 64  # a batch of them takes 4.5 ms

    world.store.subscribe(written)
    for i in range(500):
        add(world.store, "Pod", f"p{i}")
    assert asyncio.run(world.nodes.turns())
    assert sum("nodeName" in pod["spec"] for pod in world.store.list("Pod")) == bound


@pytest.mark.parametrize("ready_ms", [0, 5])
def test_in_a_running_loop(ready_ms: float) -> None:
    async def scenario() -> None:
        store = store_with()
        nodes = Simulator(StorePodApi(store), NodeSettings(ready_ms=ready_ms, pods_per_node=1000), clock=store.clock)
        nodes.start()
        for i in range(500):
            add(store, "Pod", f"p{i}")
        await until(store, {"Running": 500})
        for i in range(500):
            store.delete("Pod", "default", f"p{i}")
        await until(store, {})
        add(store, "Pod", "late")
        await until(store, {"Running": 1})
        await nodes.stop()
        add(store, "Pod", "too-late")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (store.get("Pod", "default", "too-late") or {})["status"]["phase"] == "Pending"

    asyncio.run(scenario())


def test_a_failing_turn_does_not_end_the_nodes(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(StorePodApi):
        async def bind(self, bindings: Any) -> None:
            raise RuntimeError("the store is on fire")

    async def scenario() -> bool:
        store = store_with()
        nodes = Simulator(Broken(store), NodeSettings(), clock=store.clock)
        nodes.start()
        add(store, "Pod", "p")
        async with asyncio.timeout(10):
            while not caplog.records:
                await asyncio.sleep(0)
        alive = nodes._task is not None and not nodes._task.done()
        await nodes.stop()
        return alive

    assert asyncio.run(scenario())
    assert "the store is on fire" in caplog.text
