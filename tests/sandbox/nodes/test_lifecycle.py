"""Taints that follow from a node's state, and the heartbeats of nodes. Pure; time is given."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.sandbox.nodes.heartbeats import TICK_MS, Heartbeats
from oarlock.sandbox.nodes.lifecycle import tainted, wants_taints
from oarlock.sandbox.nodes.node_objects import beaten, needs_registering, node_object, registered

Obj = dict[str, Any]

AT = "2027-01-01T00:00:00Z"
LATER = "2027-01-01T00:01:00Z"
MINE: Obj = {"key": "mine", "value": "v", "effect": "NoExecute"}


def node(ready: str | None = "True", taints: list[Obj] | None = None, cordoned: bool = False, **others: str) -> Obj:
    """`others`: further conditions by type."""
    conditions = [{"type": type_, "status": status} for type_, status in others.items()]
    if ready is not None:
        conditions.append({"type": "Ready", "status": ready})
    spec: Obj = {"providerID": "x"}
    if taints is not None:
        spec["taints"] = taints
    if cordoned:
        spec["unschedulable"] = True
    return {"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": conditions}}


def marks(obj: Obj) -> list[tuple[str, str]]:
    return [(t["key"].removeprefix("node.kubernetes.io/"), t["effect"]) for t in obj["spec"].get("taints", [])]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (node(), []),
        (node(cordoned=True), [("unschedulable", "NoSchedule")]),
        (node("False"), [("not-ready", "NoExecute"), ("not-ready", "NoSchedule")]),
        (node("Unknown"), [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")]),
        (node(MemoryPressure="True"), [("memory-pressure", "NoSchedule")]),
        (node(MemoryPressure="False", DiskPressure="Unknown"), []),
        (
            node(DiskPressure="True", PIDPressure="True"),
            [("disk-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule")],
        ),
        (node(NetworkUnavailable="True"), [("network-unavailable", "NoSchedule")]),
        (
            node("False", cordoned=True),
            [("not-ready", "NoExecute"), ("not-ready", "NoSchedule"), ("unschedulable", "NoSchedule")],
        ),
    ],
)
def test_the_taints_of_a_state(obj: Obj, expected: list[tuple[str, str]]) -> None:
    assert wants_taints(obj) is bool(expected)
    after = tainted(obj, AT)
    assert marks(after) == expected
    assert all(taint["timeAdded"] == AT for taint in after["spec"].get("taints", []))
    assert not wants_taints(after)


def test_the_taints_of_others_stay_where_they_are_and_old_ones_keep_their_time() -> None:
    before = tainted(node("False", [MINE]), AT)
    worse = {**before, "spec": {**before["spec"], "unschedulable": True}}
    after = tainted(worse, LATER)
    assert after["spec"]["taints"][0] == MINE
    assert [taint.get("timeAdded") for taint in after["spec"]["taints"]] == [None, AT, AT, LATER]


def test_what_no_longer_holds_is_taken_away() -> None:
    before = tainted(node("False", [MINE], cordoned=True), AT)
    healthy = {**before, "spec": {**before["spec"], "unschedulable": False}, "status": node()["status"]}
    assert wants_taints(healthy)
    assert tainted(healthy, LATER)["spec"]["taints"] == [MINE]
    only_ours = {**healthy, "spec": {"taints": before["spec"]["taints"][1:]}}
    assert "taints" not in tainted(only_ours, LATER)["spec"]


def test_a_taint_of_a_state_that_somebody_sets_by_hand_does_not_stay() -> None:
    lied = node("True", [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}])
    assert tainted(lied, AT)["spec"] == {"providerID": "x"}


def test_a_taint_of_ours_that_stands_there_twice_stands_there_once() -> None:
    twice = node(cordoned=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}] * 2)
    assert wants_taints(twice)
    assert marks(tainted(twice, AT)) == [("unschedulable", "NoSchedule")]


def test_nobody_is_judged_before_it_has_reported() -> None:
    assert not wants_taints(node(None, cordoned=True))


def test_a_node_of_others_registers_with_what_it_lacks() -> None:
    made = {"metadata": {"name": "w", "labels": {"kubernetes.io/os": "windows", "zone": "a"}}}
    assert needs_registering(made)
    after = registered(made, 7, 30, AT)
    assert not needs_registering(after)
    assert after["metadata"]["labels"] == {
        "kubernetes.io/hostname": "w",
        "kubernetes.io/os": "windows",
        "kubernetes.io/arch": "amd64",
        "zone": "a",
    }
    assert after["status"]["nodeInfo"]["operatingSystem"] == "windows"
    assert after["status"]["allocatable"]["pods"] == "30"
    assert after["status"]["addresses"][0]["address"] == "192.168.0.8"


def test_what_a_node_says_of_itself_stays() -> None:
    status = {
        "capacity": {"pods": "3", "nvidia.com/gpu": "8"},
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "Own", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.9.9.9"}],
    }
    after = registered({"metadata": {"name": "n"}, "status": status}, 0, 30, AT)["status"]
    assert after["allocatable"] == {**after["capacity"], "pods": "3", "nvidia.com/gpu": "8"}
    assert after["addresses"] == status["addresses"]
    stated = {condition["type"]: condition["status"] for condition in after["conditions"]}
    assert stated == {
        "Ready": "False",
        "Own": "True",
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
    }


def test_a_heartbeat_says_the_same_again() -> None:
    before = node_object(0, 10, AT)
    after = beaten(before, LATER)
    assert {c["lastHeartbeatTime"] for c in after["status"]["conditions"]} == {LATER}
    assert {c["lastTransitionTime"] for c in after["status"]["conditions"]} == {AT}
    assert {**after, "status": 0} == {**before, "status": 0}


def named(name: str, ready: str = "True") -> Obj:
    return {**node(ready), "metadata": {"name": name}}


def test_heartbeats_are_spread_over_the_period() -> None:
    beats = Heartbeats(100_000)
    for i in range(1000):
        beats.node_changed(named(f"node-{i}"), 0)
    counts = [len(beats.due(1000.0 * second, 1000)) for second in range(1, 301)]
    assert sum(counts[:100]) == sum(counts[100:200]) == sum(counts[200:]) == 1000
    assert max(counts) < 40, "10 a second on average"


def test_heartbeats_come_in_ticks_and_so_many_at_a_time() -> None:
    beats = Heartbeats(1000)
    assert beats.next_ms() is None
    for i in range(10):
        beats.node_changed(named(f"node-{i}"), 0)
    first_ms = beats.next_ms()
    assert first_ms is not None
    assert TICK_MS <= first_ms < TICK_MS + 1000
    assert [len(beats.due(1000, 4)) for _ in range(4)] == [4, 4, 2, 0]


def test_who_is_out_of_reach_or_gone_has_no_heartbeat() -> None:
    beats = Heartbeats(1000)
    for name in ("lost", "gone", "here"):
        beats.node_changed(named(name), 0)
    beats.node_changed(named("lost", "Unknown"), 1)
    beats.node_gone("gone")
    beats.node_gone("never-was")
    assert beats.due(1000, 9) == ["here"]
    beats.node_changed(named("lost", "False"), 1000)
    assert sorted(beats.due(3000, 9)) == ["here", "lost"]


def test_no_period_no_heartbeats() -> None:
    beats = Heartbeats(0)
    beats.node_changed(named("n"), 0)
    assert beats.next_ms() is None
