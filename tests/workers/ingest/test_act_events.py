"""What people did is told as events, by one ingestor and once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.pauses import Act
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.broker.values.events import Event
from oarlock.cluster.event_correlator import Note, ObjectRef
from oarlock.workers.ingest.act_events import ACTS_AT_ONCE, MESSAGE_MAX, ActEvents
from tests.workers.ingest.ingest_processes import Stage, until

LEASE = ObjectRef("coordination.k8s.io/v1", "Lease", "kube-system", "oarlock", "")


@pytest.fixture
def broker() -> MemoryBroker:
    """Its cache has the ReplicaSet shop/a."""
    store = MemoryStore(lambda: 1_000)
    store.bootstrap(1)
    found = MemoryBroker(store, 1)
    found.stage("replicasets", "g", [Event("shop/a", "10", "u-a", b"x")])
    found.commit_list("replicasets", "g", "10")
    return found


def told(broker: MemoryBroker, now_ms: int = 0) -> list[Note]:
    notes: list[Note] = []
    ActEvents(notes.append, LEASE, "host").step(broker, now_ms)
    return notes


def test_an_act_on_a_key_is_an_event_on_its_object(broker: MemoryBroker) -> None:
    broker.steer("pause", "key replicaset:shop/a", "by=me its webhook is broken")
    broker.steer("note", "requeue replicaset:shop/a", "by=me")
    paused, requeued = told(broker)
    assert paused.about == requeued.about == ObjectRef("apps/v1", "ReplicaSet", "shop", "a", "u-a")
    assert (paused.type, paused.reason, paused.component, paused.host) == ("Normal", "Paused", "oarlock", "host")
    assert paused.message == "pause, by me: its webhook is broken"
    assert (requeued.reason, requeued.message) == ("Requeued", "requeue, by me")


@pytest.mark.parametrize(
    ("act", "scope", "reason", "message"),
    [
        ("pause", "namespace shop", "Paused", "pause namespace shop, by me: why"),
        ("resume", "all", "Resumed", "resume all, by me: why"),
        ("limit", "rate replicaset", "RateLimited", "limit rate replicaset, by me: why"),
        ("limit", "rate namespace x", "RateLimited", "limit rate namespace x, by me: why"),
        ("set", "weight namespace x", "WeightSet", "set weight namespace x, by me: why"),
        ("pause", "key replicaset:shop/gone", "Paused", "pause key replicaset:shop/gone, by me: why"),
        ("pause", "key nothing:shop/a", "Paused", "pause key nothing:shop/a, by me: why"),
        ("note", "requeue 40 keys, -l a=b -n shop", "Requeued", "requeue 40 keys, -l a=b -n shop, by me: why"),
        ("note", "drain w-1", "Draining", "drain w-1, by me: why"),
        ("note", "something else", "Steered", "something else, by me: why"),
    ],
)
def test_other_acts_are_events_on_the_lease(
    act: str, scope: str, reason: str, message: str, broker: MemoryBroker
) -> None:
    broker.steer(act, scope, "by=me why")
    (note,) = told(broker)
    assert (note.about, note.reason, note.message) == (LEASE, reason, message)


def test_one_ingestor_tells_it_and_once(broker: MemoryBroker) -> None:
    broker.steer("pause", "all", "by=me")
    assert [len(told(broker)) for _ in range(2)] == [1, 0]


def test_it_looks_once_a_second_and_takes_a_bounded_number(broker: MemoryBroker) -> None:
    notes: list[Note] = []
    acts = ActEvents(notes.append, LEASE, "host")
    for n in range(ACTS_AT_ONCE + 5):
        broker.steer("note", f"requeue {n}", "by=me")
    for now_ms, count in ((0, ACTS_AT_ONCE), (999, ACTS_AT_ONCE), (1_000, ACTS_AT_ONCE + 5)):
        acts.step(broker, now_ms)
        assert len(notes) == count


def test_acts_whose_objects_cannot_be_looked_for_are_told_on_the_lease(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise BrokerUnreachable("no answer")

    broker.steer("note", "requeue replicaset:shop/a", "by=me")
    broker.steer("pause", "all", "by=me")
    monkeypatch.setattr(broker, "look", unreachable)
    notes: list[Note] = []
    with pytest.raises(BrokerUnreachable):
        ActEvents(notes.append, LEASE, "host").step(broker, 0)
    assert [(each.about, each.reason) for each in notes] == [(LEASE, "Requeued"), (LEASE, "Paused")]


def test_what_somebody_else_wrote_there_is_shown_and_bounded(broker: MemoryBroker) -> None:
    broker.store.state.audit, broker.store.state.acts = ["\x1b[31m" + "x" * 5_000], 1
    (note,) = told(broker)
    assert (note.about, note.reason, len(note.message)) == (LEASE, "Steered", MESSAGE_MAX)
    assert "\x1b" not in note.message


@pytest.mark.parametrize(
    ("text", "act", "task"),
    [
        (
            "pause key replicaset:shop/a: by=me a: by=you",
            Act("pause", "key replicaset:shop/a", "me", "a: by=you"),
            True,
        ),
        ("resume namespace shop: by=me", Act("resume", "namespace shop", "me", ""), False),
        ("requeue replicaset:shop/a: by=me", Act("requeue", "replicaset:shop/a", "me", ""), True),
        ("requeue 4 keys, -l a:b=c: by=me", Act("requeue", "4 keys, -l a:b=c", "me", ""), False),
        ("nonsense", Act("nonsense", "", "", ""), False),
    ],
)
def test_a_line_is_read(text: str, act: Act, task: bool) -> None:
    assert Act.parse(text) == act
    assert act.task == (("replicaset", "shop/a") if task else None)


def test_the_events_are_in_the_api(tmp_path: Path) -> None:
    """Two ingestors as processes: each act is told once, and one that repeats itself is counted."""
    stage = Stage(tmp_path)
    try:
        uid = stage.cluster.create_owner("web", "a")
        ingestors = [stage.ingestor()]
        assert ingestors[0].said()["epoch"] == 1
        until(stage.in_step)
        broker = RedisBroker(stage.server.admin, 1)
        for _ in range(2):
            broker.steer("note", "requeue replicaset:default/web", "by=me")
        broker.steer("pause", "namespace shop", "by=me quota")

        def events(namespace: str) -> list[dict[str, Any]]:
            return [
                each
                for each in stage.cluster.ask("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
                if each["source"]["component"] == "oarlock"
            ]

        until(lambda: bool(events("kube-system")) and [each["count"] for each in events("default")] == [2])
        (requeued,), (paused,) = events("default"), events("kube-system")
        about = requeued["involvedObject"]
        assert (about["kind"], about["name"], about["uid"], requeued["count"]) == ("ReplicaSet", "web", uid, 2)
        assert (paused["involvedObject"]["kind"], paused["involvedObject"]["name"]) == ("Lease", "oarlock")
        assert (paused["reason"], paused["message"]) == ("Paused", "pause namespace shop, by me: quota")
        assert ingestors[0].end()[0] == 0
        ingestors.append(stage.ingestor())
        ingestors[1].said()
        broker.steer("resume", "namespace shop", "by=me")
        until(lambda: len(events("kube-system")) == 2)
    finally:
        stage.close()
