"""The store by itself: one order of events, immutable objects, the index of dependents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.kinds.kinds import KINDS
from oarlock.sandbox.apiserver.loops.expiry import EventExpiry, HistoryExpiry
from oarlock.sandbox.apiserver.store import history
from oarlock.sandbox.apiserver.store.events import Event
from oarlock.sandbox.apiserver.store.history import FRESH_S, Log
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.store.stored import Stored
from oarlock.sandbox.apiserver.text.times import rfc3339


def pod(name: str, **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "d", **meta}, "spec": {}}


def test_every_commit_has_the_next_resource_version() -> None:
    store = Store()
    start = store.rv
    first, second = store.create("Pod", pod("a")), store.create("Node", {"metadata": {"name": "n"}})
    assert [int(o["metadata"]["resourceVersion"]) - start for o in (first, second)] == [1, 2]
    gone = store.remove("Pod", "d", "a")
    assert gone is not None
    assert int(gone["metadata"]["resourceVersion"]) - start == 3
    assert store.remove("Pod", "d", "a") is None


def test_events_are_delivered_in_order_even_to_a_subscriber_that_writes() -> None:
    """What one subscriber writes while it looks at an event reaches the next one after that event."""
    store = Store()
    seen: list[tuple[str, str]] = []

    def react(event: Event) -> None:
        if event.type == "ADDED" and event.name == "a":
            store.create("Pod", pod("b"))
            store.update("Pod", {**event.obj, "status": {"phase": "Running"}})

    store.subscribe(react)
    stop = store.subscribe(lambda event: seen.append((event.type, event.name)))
    store.create("Pod", pod("a"))
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a")]
    stop()
    store.create("Pod", pod("c"))
    assert len(seen) == 3


def test_an_event_carries_the_object_before_and_after() -> None:
    store = Store()
    events: list[Event] = []
    store.subscribe(events.append)
    made = store.create("Pod", pod("a", labels={"x": "1"}))
    store.update("Pod", {**made, "metadata": {**made["metadata"], "labels": {"x": "2"}}})
    store.remove("Pod", "d", "a")
    labels = [(e.type, e.old and e.old["metadata"]["labels"]["x"], e.obj["metadata"]["labels"]["x"]) for e in events]
    assert labels == [("ADDED", None, "1"), ("MODIFIED", "1", "2"), ("DELETED", "2", "2")]
    assert made["metadata"]["labels"] == {"x": "1"}, "an object handed out never changes"


def test_update_keeps_what_the_server_owns() -> None:
    store = Store(clock=lambda: 0.0)
    made = store.create("ReplicaSet", {"metadata": {"name": "a", "namespace": "d"}, "spec": {"replicas": 1}})
    changed = store.update(
        "ReplicaSet", {"metadata": {"name": "a", "namespace": "d", "uid": "x"}, "spec": {"replicas": 2}}
    )
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert changed["metadata"]["creationTimestamp"] == "1970-01-01T00:00:00Z"
    assert changed["metadata"]["generation"] == 2


def test_update_on_another_resource_version_conflicts() -> None:
    store = Store()
    made = store.create("Pod", pod("a"))
    with pytest.raises(ApiError) as refused:
        store.update("Pod", {**made, "status": {}}, expected_rv="1")
    assert refused.value.code == 409


def test_the_last_finalizer_lets_a_deleted_object_go() -> None:
    store = Store()
    made = store.create("ReplicaSet", {"metadata": {"name": "a", "namespace": "d", "finalizers": ["x.io/y"]}})
    marked, gone = store.delete("ReplicaSet", "d", "a")
    assert (gone, "deletionTimestamp" in marked["metadata"]) == (False, True)
    events: list[Event] = []
    store.subscribe(events.append)
    store.update("ReplicaSet", {**marked, "metadata": {**marked["metadata"], "finalizers": []}})
    assert [e.type for e in events] == ["DELETED"]
    assert store.get("ReplicaSet", "d", "a") is None
    assert made["metadata"]["uid"] == events[0].obj["metadata"]["uid"]


def test_dependents_follow_owner_references() -> None:
    store = Store()
    store.create("Pod", pod("a", ownerReferences=[{"uid": "u1"}]))
    made = store.create("Pod", pod("b", ownerReferences=[{"uid": "u1"}, {"uid": "u2"}]))
    assert store.owners.dependents("u1") == [("Pod", "d", "a"), ("Pod", "d", "b")]
    store.update("Pod", {**made, "metadata": {**made["metadata"], "ownerReferences": [{"uid": "u2"}]}})
    assert store.owners.dependents("u1") == [("Pod", "d", "a")]
    store.remove("Pod", "d", "b")
    assert store.owners.dependents("u2") == []


def test_lists_are_in_order_of_namespace_and_name() -> None:
    store = Store()
    for namespace, name in (("b", "y"), ("a", "z"), ("b", "x")):
        store.create("Pod", {"metadata": {"name": name, "namespace": namespace}})
    listed = [(o["metadata"]["namespace"], o["metadata"]["name"]) for o in store.list("Pod")]
    assert listed == [("a", "z"), ("b", "x"), ("b", "y")]
    assert (store.count("Pod"), store.count("Pod", "b"), store.count("Pod", "c")) == (3, 2, 0)
    assert list(store.keys_in("b")) == [("Pod", "b", "y"), ("Pod", "b", "x")]


def test_history_forgets_the_oldest_events_and_says_so() -> None:
    store = Store(history_events_max=10)
    for number in range(50):
        store.create("Pod", pod(f"p{number}"))
    log = store.logs["Pod"]
    assert 10 <= len(log.events) < 20
    assert log.position_after(log.floor_rv - 1) is None
    assert log.position_after(log.floor_rv) == log.base
    assert log.position_after(store.rv) == log.end
    assert log.since(log.base - 1) is None
    assert [e.rv for e in log.since(log.end - 2) or ()] == [store.rv - 1, store.rv]


@pytest.mark.parametrize(
    ("aged_s", "now_s", "kept"),
    [
        pytest.param([0.0] * 30, 1.0, 30, id="young"),
        pytest.param([0.0] * 10 + [50.0] * 20, FRESH_S + 0.5, 20, id="the old ones go"),
        pytest.param([0.0] * 30, 9_999.0, 5, id="some are kept, however old"),
        pytest.param([0.0] * 90, 1.0, 40, id="never more than the most"),
        pytest.param([50.0] * 30, 0.0, 30, id="a clock that went back"),
    ],
)
def test_what_a_history_keeps(monkeypatch: pytest.MonkeyPatch, aged_s: list[float], now_s: float, kept: int) -> None:
    monkeypatch.setattr(history, "LEAST_EVENTS", 5)
    log = Log(events_max=40)
    stored = Stored({}, b"{}", 0)
    for rv, at_s in enumerate(aged_s, 1):
        log.append(Event("ADDED", KINDS["Pod"], ("d", "a"), replace(stored, rv=rv), None, at_s))
        assert len(log.events) <= 40 + 5
    log.trim(now_s)
    assert [event.rv for event in log.events] == list(range(len(aged_s) - kept + 1, len(aged_s) + 1))
    assert log.floor_rv == len(aged_s) - kept
    log.trim(now_s)
    assert len(log.events) == kept


def test_the_history_of_a_kind_that_rests_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "LEAST_EVENTS", 5)
    now_s = 1_700_000_000.0
    store = Store(clock=lambda: now_s)
    for number in range(8):
        store.create("Pod", pod(f"p{number}"))
    HistoryExpiry(store).expire()
    assert len(store.logs["Pod"].events) == 8
    now_s += FRESH_S + 1
    HistoryExpiry(store).expire()
    assert [event.name for event in store.logs["Pod"].events] == ["p3", "p4", "p5", "p6", "p7"]


def test_events_come_by_handfuls_to_one_that_is_far_behind() -> None:
    store = Store()
    for number in range(7):
        store.create("Pod", pod(f"p{number}"))
    log = store.logs["Pod"]
    seen, position = [], log.base
    while found := log.since(position, 3) or []:
        seen.append([event.name for event in found])
        position += len(found)
    assert seen == [["p0", "p1", "p2"], ["p3", "p4", "p5"], ["p6"]]


def test_events_are_forgotten_after_an_hour() -> None:
    now_s = 1_700_000_000.0
    store = Store(clock=lambda: now_s)
    for name, last_s in (("old", now_s - 3700), ("repeated", now_s - 10)):
        store.create("Event", {"metadata": {"name": name, "namespace": "d"}, "lastTimestamp": rfc3339(last_s)})
    store.create("Event", {"metadata": {"name": "odd", "namespace": "d"}, "lastTimestamp": "yesterday"})
    expiry = EventExpiry(store)
    assert expiry.expire() == 1
    assert [e["metadata"]["name"] for e in store.list("Event")] == ["odd", "repeated"]
    now_s += 3700
    assert expiry.expire() == 2
