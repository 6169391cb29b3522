"""The scheduler: who goes where, who waits, and what wakes the waiting."""

from __future__ import annotations

from collections import Counter
from typing import Any

from oarlock.sandbox.nodes.scheduler.scheduler import Decisions, Scheduler

Obj = dict[str, Any]


def node(name: str, pods: int = 110, labels: Obj | None = None, **spec: Any) -> Obj:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {"allocatable": {"pods": str(pods)}},
    }


def pod(name: str, phase: str = "Pending", meta: Obj | None = None, **spec: Any) -> Obj:
    return {
        "metadata": {"name": name, "namespace": "d", "uid": name, **(meta or {})},
        "spec": spec,
        "status": {"phase": phase},
    }


def scheduler(*nodes: Obj) -> Scheduler:
    made = Scheduler()
    for entry in nodes:
        made.node_changed(entry)
    return made


def placed(decisions: Decisions) -> dict[str, str]:
    return {ref.name: where for ref, where in decisions.bindings}


def told(decisions: Decisions) -> dict[str, str]:
    return {ref.name: status["conditions"][0]["message"] for ref, status in decisions.unschedulable}


def put(s: Scheduler, *pods: Obj) -> Decisions:
    for entry in pods:
        s.pod_changed(entry)
    return s.schedule(0.0)


def test_least_loaded_first() -> None:
    s = scheduler(node("a"), node("b"), node("c"))
    put(s, pod("x", nodeName="a"), pod("y", nodeName="b"))
    assert placed(put(s, pod("p"))) == {"p": "c"}


def test_many_are_spread_evenly() -> None:
    s = scheduler(*(node(f"n{i}") for i in range(5)))
    decisions = put(s, *(pod(f"p{i}") for i in range(100)))
    assert Counter(placed(decisions).values()) == {f"n{i}": 20 for i in range(5)}


def test_many_nodes_are_filled_evenly_though_a_pod_is_shown_a_part_of_them() -> None:
    s = scheduler(*(node(f"n{i}", pods=4) for i in range(350)))
    for entry in (pod(f"p{i}") for i in range(1_050)):
        s.pod_changed(entry)
    bindings = [binding for _ in range(3) for binding in s.schedule(0.0).bindings]
    counts = Counter(where for _, where in bindings)
    assert (len(counts), sum(counts.values()), set(counts.values())) == (350, 1_050, {3})


def test_the_only_one_of_many_nodes_that_has_room_is_found() -> None:
    s = scheduler(*(node(f"n{i}", pods=int(i == 250)) for i in range(300)))
    assert placed(put(s, pod("p"))) == {"p": "n250"}
    assert "300 Too many pods" in told(put(s, pod("q")))["q"]


def test_in_order_of_arrival_and_so_many_at_a_time() -> None:
    s = scheduler(node("a"))
    for i in range(10):
        s.pod_changed(pod(f"p{i}"))
    assert list(placed(s.schedule(0.0, 4))) == ["p0", "p1", "p2", "p3"]
    assert s.waiting == 6
    assert len(placed(s.schedule(0.0, 100))) == 6


def test_a_bound_pod_takes_its_place_once() -> None:
    s = scheduler(node("a", pods=2))
    assert placed(put(s, pod("p"))) == {"p": "a"}
    assert placed(put(s, pod("p"))) == {}, "an event from before the binding"
    assert placed(put(s, pod("p", nodeName="a"))) == {}, "the event of the binding"
    assert placed(put(s, pod("q"))) == {"q": "a"}
    assert told(put(s, pod("r"))) == {"r": "0/1 nodes are available: 1 Too many pods."}


def test_room_is_given_back() -> None:
    s = scheduler(node("a", pods=1))
    put(s, pod("p"), pod("q"))
    s.pod_gone("p")
    assert placed(s.schedule(0.0)) == {"q": "a"}
    s.pod_changed(pod("q", "Failed", nodeName="a"))
    assert placed(put(s, pod("r"))) == {"r": "a"}


def test_who_is_not_our_business() -> None:
    s = scheduler(node("a"))
    decisions = put(
        s,
        pod("other", schedulerName="mine"),
        pod("leaving", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        pod("gated", schedulingGates=[{"name": "g"}]),
        pod("over", "Failed"),
    )
    assert decisions == Decisions()
    assert placed(put(s, pod("gated", schedulingGates=[]))) == {"gated": "a"}


def test_no_node_will_do() -> None:
    s = scheduler(
        node("a", labels={"zone": "a"}),
        node("b", unschedulable=True),
        node("c", labels={"zone": "b"}, taints=[{"key": "k", "effect": "NoSchedule"}]),
        node("d", pods=0, labels={"zone": "b"}),
    )
    assert told(put(s, pod("p", nodeSelector={"zone": "b"}))) == {
        "p": "0/4 nodes are available: 1 Too many pods, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    }


def test_no_nodes_at_all() -> None:
    assert told(put(scheduler(), pod("p"))) == {"p": "0/0 nodes are available."}


def test_the_unschedulable_are_told_once_and_tried_again_when_a_node_changes() -> None:
    s = scheduler(node("a", unschedulable=True))
    decisions = put(s, pod("p"))
    (ref, status) = decisions.unschedulable[0]
    assert (ref.name, status["conditions"][0]["reason"]) == ("p", "Unschedulable")
    told_pod = {**pod("p"), "status": {"phase": "Pending", **status}}
    assert put(s, told_pod) == Decisions(), "our own condition is no reason to look again"
    s.node_changed(node("b", unschedulable=True, taints=[]))
    assert told(s.schedule(0.0)) == {"p": "0/2 nodes are available: 2 node(s) were unschedulable."}
    s.node_changed(node("a"))
    assert placed(s.schedule(0.0)) == {"p": "a"}


def test_a_heartbeat_wakes_nobody() -> None:
    s = scheduler(node("a", unschedulable=True))
    put(s, pod("p"))
    beat = node("a", unschedulable=True)
    beat["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    s.node_changed(beat)
    assert s.waiting == 0


def test_a_changed_pod_is_tried_again() -> None:
    s = scheduler(node("a", taints=[{"key": "k", "effect": "NoSchedule"}]))
    put(s, pod("p"))
    assert placed(put(s, pod("p", tolerations=[{"operator": "Exists"}]))) == {"p": "a"}


def test_prefer_no_schedule_is_the_last_resort() -> None:
    s = scheduler(node("poor", taints=[{"key": "k", "effect": "PreferNoSchedule"}]), node("good", pods=2))
    assert Counter(placed(put(s, *(pod(f"p{i}") for i in range(3)))).values()) == {"good": 2, "poor": 1}


def test_pods_made_for_one_node_go_there() -> None:
    s = scheduler(*(node(f"n{i}") for i in range(50)))
    field = {"key": "metadata.name", "operator": "In"}
    pods = []
    for i in range(50):
        terms = [{"matchFields": [{**field, "values": [f"n{i}"]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pods.append(pod(f"p{i}", affinity={"nodeAffinity": required}))
    assert placed(put(s, *pods)) == {f"p{i}": f"n{i}" for i in range(50)}


def pinned(name: str, *nodes: str, **spec: Any) -> Obj:
    """A pod for certain nodes only, as daemon pods are."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return pod(name, affinity={"nodeAffinity": required}, **spec)


class Counted(dict[str, Any]):
    """Counts how often something is looked up or gone through."""

    looks = 0

    def __getitem__(self, key: str) -> Any:
        self.looks += 1
        return super().__getitem__(key)

    def __iter__(self) -> Any:
        self.looks += len(self)
        return super().__iter__()


def test_a_pod_made_for_one_node_costs_the_same_on_a_thousand() -> None:
    def looks(nodes: int) -> int:
        s = scheduler(*(node(f"n{i}") for i in range(nodes)))
        s._nodes = counted = Counted(s._nodes)
        assert placed(put(s, pinned("p", "n1"), pinned("none", "ghost"))) == {"p": "n1"}
        return counted.looks

    assert looks(1000) == looks(2) < 10


def test_only_its_own_node_wakes_a_pod_made_for_one() -> None:
    s = scheduler(node("a", pods=0), node("b"))
    assert told(put(s, pinned("p", "a"), pinned("q", "ghost", "a"), pod("r", nodeSelector={"x": "y"}))) == {
        "p": "0/2 nodes are available: 1 Too many pods.",
        "q": "0/2 nodes are available: 1 Too many pods.",
        "r": "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
    }
    s.node_changed(node("b", labels={"x": "z"}))
    assert s.waiting == 1, "r may go anywhere, p and q may not"
    assert list(told(s.schedule(0.0))) == ["r"]
    s.node_changed(node("ghost"))
    assert placed(s.schedule(0.0)) == {"q": "ghost"}
    s.node_changed(node("a"))
    assert placed(s.schedule(0.0)) == {"p": "a"}
    s.node_changed(node("c"))
    s.pod_changed(pod("r", meta=LEAVING))
    assert s.schedule(0.0) == Decisions(), "nobody is parked any more"


def test_a_parked_pod_that_goes_is_forgotten_by_its_node() -> None:
    s = scheduler(node("a", pods=0))
    put(s, pinned("gone", "a", "b"), pinned("changed", "a", "b"))
    s.pod_gone("gone")
    s.pod_changed(pinned("changed", "b"))
    assert told(s.schedule(0.0)) == {"changed": "0/1 nodes are available."}
    assert len(s._parked) == 1
    s.node_changed(node("a"))
    assert s.waiting == 0
    s.node_changed(node("b"))
    assert placed(s.schedule(0.0)) == {"changed": "b"}


def test_room_that_is_given_back_wakes_who_waits_for_it() -> None:
    s = scheduler(node("a", pods=1), node("b", pods=1))
    put(s, pod("x", nodeName="a"), pod("y", nodeName="b"))
    put(s, pinned("p", "a"), pinned("q", "b"))
    s.pod_gone("x")
    assert placed(s.schedule(0.0)) == {"p": "a"}
    assert s.waiting == 0


def test_a_gone_node_takes_nobody_and_comes_back_with_its_pods() -> None:
    s = scheduler(node("a", pods=1), node("b", pods=1))
    put(s, pod("x", nodeName="a"))
    s.node_gone("a")
    s.node_gone("b")
    assert told(put(s, pod("p"))) == {"p": "0/0 nodes are available."}
    s.node_changed(node("a", pods=1))
    assert told(s.schedule(0.0)) == {"p": "0/1 nodes are available: 1 Too many pods."}
    s.node_changed(node("a", pods=2))
    assert placed(s.schedule(0.0)) == {"p": "a"}


def test_nodes_of_unreadable_capacity_take_nobody() -> None:
    s = scheduler({"metadata": {"name": "a"}, "status": {"allocatable": {"pods": "many"}}}, {"metadata": {"name": "b"}})
    assert told(put(s, pod("p"))) == {"p": "0/2 nodes are available: 2 Too many pods."}


LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def test_who_goes_while_waiting_is_forgotten() -> None:
    s = scheduler(node("a"))
    for name in ("gone", "leaving", "bound", "stays"):
        s.pod_changed(pod(name))
    s.pod_gone("gone")
    s.pod_changed(pod("leaving", meta=LEAVING))
    s.pod_changed(pod("bound", nodeName="a"))
    assert placed(s.schedule(0.0)) == {"stays": "a"}


def test_who_goes_while_parked_is_forgotten() -> None:
    s = scheduler(node("a", unschedulable=True))
    put(s, *(pod(name) for name in ("gone", "leaving", "bound", "stays")))
    s.pod_gone("gone")
    s.pod_changed(pod("leaving", meta=LEAVING))
    s.pod_changed(pod("bound", nodeName="a"))
    s.node_changed(node("a"))
    assert placed(s.schedule(0.0)) == {"stays": "a"}
    s.node_changed(node("a", labels={"x": "y"}))
    assert s.waiting == 0, "who was placed is not parked any more"


def test_a_pod_that_somebody_else_placed_takes_its_place_there() -> None:
    s = scheduler(node("a", pods=1), node("b", pods=1, unschedulable=True))
    assert placed(put(s, pod("p"))) == {"p": "a"}
    s.pod_changed(pod("p", nodeName="b"))
    assert placed(put(s, pod("q"))) == {"q": "a"}
    s.node_changed(node("b", pods=1))
    assert told(put(s, pod("r"))) == {"r": "0/2 nodes are available: 2 Too many pods."}


def test_each_end_frees_one_place() -> None:
    s = scheduler(node("a", pods=3))
    put(s, pod("p"), pod("q"), pod("r"))
    s.pod_gone("p")
    s.pod_gone("p")
    assert placed(put(s, pod("t"))) == {"t": "a"}
    assert placed(put(s, pod("u"))) == {}


def test_a_gone_node_is_not_remembered() -> None:
    s = scheduler(node("a"), node("b"))
    assert placed(put(s, pod("p"))) == {"p": "a"}
    s.node_gone("a")
    s.node_gone("a")
    assert set(placed(put(s, pod("q"), pod("r"))).values()) == {"b"}


def test_the_same_words_are_not_written_twice() -> None:
    s = scheduler(node("a", unschedulable=True))
    status = put(s, pod("p")).unschedulable[0][1]
    s.pod_changed({**pod("p"), "status": {"phase": "Pending", **status}})
    s.node_changed(node("a", unschedulable=True, taints=[]))
    assert s.waiting == 1
    assert s.schedule(0.0) == Decisions()
