"""The judge of the campaigns finds what it is there to find."""

from __future__ import annotations

from typing import Any

from tests.redis.failover.fleet_stage import Judge


def owner(rv: int, replicas: int) -> dict[str, Any]:
    return {
        "type": "MODIFIED",
        "object": {"metadata": {"uid": "u", "resourceVersion": str(rv)}, "spec": {"replicas": replicas}},
    }


def pod(rv: int, name: str, kind: str = "ADDED", **meta: Any) -> dict[str, Any]:
    about = {"name": name, "resourceVersion": str(rv), "ownerReferences": [{"uid": "u"}], **meta}
    return {"type": kind, "object": {"metadata": about, "status": {"phase": "Running"}}}


def test_one_pod_too_many_is_found_where_it_was_made() -> None:
    judge = Judge(pods=[pod(2, "a"), pod(3, "b"), pod(4, "c")], owners=[owner(1, 2)])
    assert judge.over_creations() == ["4: c is 3 of 2"]


def test_what_was_asked_for_or_replaced_is_none() -> None:
    grown = Judge(pods=[pod(9, "a"), pod(11, "b")], owners=[owner(1, 1), owner(10, 2)])
    replaced = Judge(
        pods=[pod(2, "a"), pod(3, "a", "MODIFIED", deletionTimestamp="now"), pod(4, "b"), pod(5, "a", "DELETED")],
        owners=[owner(1, 1)],
    )
    assert grown.over_creations() == replaced.over_creations() == []


def test_a_pod_that_is_replaced_before_it_leaves_is_found() -> None:
    judge = Judge(pods=[pod(2, "a"), pod(3, "b"), pod(4, "a", "DELETED")], owners=[owner(1, 1)])
    assert judge.over_creations() == ["3: b is 2 of 1"]


def test_a_judge_has_heard_all_when_both_watches_are_as_far_as_what_is_there() -> None:
    events = [owner(1, 1), pod(2, "a"), pod(4, "b"), owner(5, 2)]
    pods, owners = [events[1]["object"], events[2]["object"]], [events[3]["object"]]
    assert not Judge().has_heard(pods, owners)
    assert not Judge(pods=events[1:2], owners=[events[0], events[3]]).has_heard(pods, owners)
    assert not Judge(pods=events[1:3], owners=events[:1]).has_heard(pods, owners)
    assert Judge(pods=events[1:3], owners=[events[0], events[3]]).has_heard(pods, owners)
    assert Judge().has_heard([], [])
