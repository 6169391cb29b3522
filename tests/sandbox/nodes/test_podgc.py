"""Which pods are given up because nobody else takes them away, and when. Pure; time is given."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from oarlock.sandbox.nodes.pod_gc import EVERY_MS, OUT_OF_SERVICE, PodCollector

Obj = dict[str, Any]

_numbers = itertools.count()


def pod(name: str = "p", node: str = "", phase: str = "Pending", *, deleted: bool = False, **more: Any) -> Obj:
    """`more`: created (seconds), reason."""
    meta = {"namespace": "default", "name": name, "uid": f"{name}-{next(_numbers)}"}
    meta["creationTimestamp"] = f"2027-01-01T00:00:{more.get('created', 0):02d}Z"
    if deleted:
        meta["deletionTimestamp"] = "2027-01-01T00:01:00Z"
    status = {"phase": phase, "reason": more.get("reason", "")}
    return {"metadata": meta, "spec": {"nodeName": node} if node else {}, "status": status}


def node(name: str, ready: str | None, *taints: str) -> Obj:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    spec = {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]}
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}


def given_up(collector: PodCollector, now_ms: float = EVERY_MS, count_max: int = 512) -> list[str]:
    return [ref.name for ref in collector.due(now_ms, count_max).removals]


@pytest.mark.parametrize(
    ("ready", "taints", "where", "goes"),
    [
        ("True", [], "", True),
        ("True", [], "n", False),
        ("False", [], "n", False),
        ("Unknown", ["node.kubernetes.io/unreachable"], "n", False),
        ("True", [OUT_OF_SERVICE], "n", False),
        ("False", [OUT_OF_SERVICE], "n", True),
        ("Unknown", [OUT_OF_SERVICE], "n", True),
        (None, [OUT_OF_SERVICE], "n", True),
        ("Unknown", [OUT_OF_SERVICE], "other", False),
    ],
)
def test_deleted_pods_on_nodes_of_all_kinds(ready: str | None, taints: list[str], where: str, goes: bool) -> None:
    collector = PodCollector()
    collector.node_changed(node("n", ready, *taints))
    collector.pod_changed(pod("stays", where), 0.0)
    collector.pod_changed(pod("deleted", where, deleted=True), 0.0)
    assert given_up(collector) == (["deleted"] if goes else [])


def test_a_node_that_is_back_or_gone_is_out_of_service_no_more() -> None:
    for end in ("back", "gone"):
        collector = PodCollector()
        collector.node_changed(node("n", "Unknown", OUT_OF_SERVICE))
        collector.pod_changed(pod("p", "n", deleted=True), 0.0)
        if end == "back":
            collector.node_changed(node("n", "True", OUT_OF_SERVICE))
        else:
            collector.node_gone("n")
        assert given_up(collector) == []


def test_it_is_asked_every_twenty_seconds_while_there_may_be_work() -> None:
    collector = PodCollector()
    collector.pod_changed(pod("p"), 0.0)
    assert collector.next_ms() is None
    deleted = pod("q", deleted=True)
    collector.pod_changed(deleted, 1_000.0)
    assert collector.next_ms() == 21_000.0
    assert given_up(collector, 20_999.0) == []
    assert given_up(collector, 21_000.0) == ["q"]
    assert collector.next_ms() == 41_000.0, "again, for a write may fail"
    assert given_up(collector, 41_000.0) == ["q"]
    collector.pod_gone(deleted["metadata"]["uid"])
    assert given_up(collector, 61_000.0) == []
    assert collector.next_ms() is None


def test_only_what_is_not_over_is_marked_as_failed() -> None:
    collector = PodCollector()
    for name, phase in (("a", "Pending"), ("b", "Running"), ("c", "Failed"), ("d", "Succeeded")):
        collector.pod_changed(pod(name, phase=phase, deleted=True), 0.0)
    actions = collector.due(EVERY_MS)
    assert [(ref.name, status) for ref, status in actions.statuses] == [
        ("a", {"phase": "Failed"}),
        ("b", {"phase": "Failed"}),
    ]
    assert [ref.name for ref in actions.removals] == ["a", "b", "c", "d"]


def test_of_too_many_that_are_over_the_evicted_and_the_oldest_go() -> None:
    collector = PodCollector(ended_max=3)
    for name, created, more in (
        ("old", 1, {}),
        ("b", 2, {}),
        ("a", 2, {}),
        ("new", 9, {}),
        ("evicted", 8, {"reason": "Evicted"}),
        ("newest", 10, {"phase": "Succeeded"}),
    ):
        collector.pod_changed(pod(name, "n", **{"phase": "Failed", **more}, created=created), 0.0)
    collector.pod_changed(pod("running", "n", "Running"), 0.0)
    assert given_up(collector) == ["evicted", "old", "a"]


def test_as_many_as_may_be_written_at_once() -> None:
    collector = PodCollector()
    pods = [pod(f"p{number}", deleted=True) for number in range(5)]
    for each in pods:
        collector.pod_changed(each, 0.0)
    assert given_up(collector, EVERY_MS, 2) == ["p0", "p1"]
    assert collector.next_ms() == 0.0
    collector.pod_gone(pods[2]["metadata"]["uid"])
    assert given_up(collector, EVERY_MS, 2) == ["p3", "p4"]
    assert collector.next_ms() == 2 * EVERY_MS
