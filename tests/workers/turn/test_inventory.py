"""Upstream's unit cases that need more than one turn, as they read here. Numbers: tests/controllers/deviations.md."""

from __future__ import annotations

import random
from functools import partial

import msgspec
import orjson
import pytest

from oarlock.cluster.answer import Answer
from oarlock.controllers.flavour import REPLICASET
from oarlock.controllers.objects.model import OwnerRef, controller_of, label_selector
from oarlock.controllers.registry import CONTROLLERS
from oarlock.controllers.replicaset.decide import decide
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.status import PUT_OFF_MS
from tests.controllers.pod_names import slot_name
from tests.simulation.world import refusal
from tests.workers.turn.turn_inventory import inventory
from tests.workers.turn.turn_rig import UNANSWERED, Rig, fail_with

KEY = "default/web"


@inventory("11.2.3 100 wanted, 10 allowed: 15 calls")
def test_slow_start_stops_at_the_first_failure() -> None:
    rig = Rig()
    uid = rig.owner(100)
    rig.world.quota = 10
    (ended,) = rig.turns()
    assert ended.error == "Forbidden"
    assert (rig.count("create"), len(rig.pods(uid))) == (15, 10)
    assert [pod.name for pod in rig.pods(uid)] == [slot_name("web", uid, index) for index in range(10)]
    (condition,) = rig.world.owners["web"][1].status.conditions
    assert (condition.type, condition.reason) == ("ReplicaFailure", "FailedCreate")
    rig.world.quota = None
    rig.read()
    rig.later(5)
    rig.rest()
    assert len(rig.pods(uid)) == 100
    assert rig.world.owners["web"][1].status.conditions == ()


@inventory("11.2.4 dormancy")
def test_nothing_is_created_before_what_was_created_is_read() -> None:
    rig = Rig()
    uid = rig.owner(1)
    rig.rest()
    (first,) = rig.pods(uid)
    rig.world.change_owner("web", replicas=2)
    rig.read("replicasets")
    writes = len(rig.api.writes)
    rig.world.change_pod(first.name, phase="Running", node_name="n1", ready=True)  # not read yet

    def since() -> list[str]:
        nonlocal writes
        new, writes = rig.api.writes[writes:], len(rig.api.writes)
        return [write.verb for write in new]

    rig.turns()
    assert since() == ["create"], "one pod is missing; the status is left to the turn that its event asks for"
    rig.read("replicasets")
    rig.read("pods", 1)  # the first pod is ready; the second one is not there yet
    rig.turns()
    assert since() == [], "dormant"
    rig.later(PUT_OFF_MS)
    rig.broker.add("replicaset", ["default/web"])
    rig.turns()
    assert since() == ["status"], "dormant, while the status follows"
    assert rig.world.owners["web"][1].status.ready == 1
    rig.read()
    rig.turns()
    assert since() == ["status"], "the second pod counts"

    rig.world.remove_pod(first.name)
    rig.api.refuse = fail_with(refusal(403, "Forbidden"), "create", 1)
    rig.read()
    (ended,) = rig.turns()
    assert since() == ["create", "status"], "refused"
    assert ended.error == "Forbidden"
    assert [line.partition(" ")[0] for line in rig.record()] == ["owner:", "passed"], "no create is expected any more"
    rig.read("replicasets")
    rig.turns()
    assert since() == ["create"], "so the next turn creates again"
    assert len(rig.pods(uid)) == 2


@inventory("11.2.8 a watched owner reaches a turn")
def test_a_new_owner_is_acted_on() -> None:
    rig = Rig()
    assert rig.turns() == []
    uid = rig.owner(1)
    assert [ended.key for ended in rig.turns()] == [KEY]
    assert len(rig.pods(uid)) == 1


@inventory("11.2.9 a pod that fails wakes its owner")
def test_a_failed_pod_is_replaced() -> None:
    rig = Rig()
    uid = rig.owner(1)
    rig.rest()
    (pod,) = rig.pods(uid)
    rig.world.change_pod(pod.name, phase="Failed")
    rig.read()
    rig.turns()
    (other,) = rig.pods(uid)
    assert other.name != pod.name, "the failed one stays and keeps its name"
    assert len(rig.world.existing(uid)) == 2


@inventory("11.2.11 a failing status write: the turn fails and the key comes again")
def test_a_failing_status_write() -> None:
    rig = Rig()
    rig.owner(0)
    rig.api.refuse = fail_with(Answer(500), "status", 2)
    (first,) = rig.turns()
    assert first.error == "status of default/web: the server answered 500"
    assert list(rig.queue.delayed) == [KEY]
    assert rig.turns() == [], "with back-off"
    rig.later(5)
    (second,) = rig.turns()
    assert (first.failures, second.failures) == (1, 2)
    rig.later(9)
    assert rig.turns() == []
    rig.later(1)
    (third,) = rig.turns()
    assert (third.error, third.failures) == ("", 0)


@inventory("11.2.12 a status on a version that has changed")
def test_a_conflict_is_computed_again() -> None:
    """Upstream: 1 GET and 2 PUTs. Here no GET: the change has to be read, by its event, before the second."""
    rig = Rig()
    rig.owner(0)
    rig.world.change_owner("web", replicas=0)  # a change that the cache has not read
    (ended,) = rig.turns()
    assert (ended.error, ended.failures) == ("", 1)
    assert (rig.count("status"), rig.api.reads) == (1, [])
    generation = rig.world.owners["web"][1].generation
    assert rig.world.owners["web"][1].status.observed_generation == 0
    rig.read()
    rig.turns()
    assert (rig.count("status"), rig.api.reads) == (2, [])
    assert rig.world.owners["web"][1].status.observed_generation == generation


@pytest.mark.parametrize(
    ("burst", "replicas"),
    [
        pytest.param(5, 30, id="11.2.13 burst 5, 30 replicas"),
        pytest.param(5, 12, id="11.2.13 burst 5, 12 replicas"),
        pytest.param(3, 2, id="11.2.13 burst 3, 2 replicas"),
    ],
)
def test_bursts_one_event_missing(burst: int, replicas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up in steps of the burst, then down to 0; with one event missing nothing further happens."""
    flavour = msgspec.structs.replace(REPLICASET, burst=burst)
    controller = msgspec.structs.replace(CONTROLLERS["replicaset"], decide=partial(decide, flavour=flavour))
    monkeypatch.setitem(CONTROLLERS, "replicaset", controller)
    rig = Rig()
    uid = rig.owner(replicas)
    for wanted in (replicas, 0):
        rig.world.change_owner("web", replicas=wanted)
        rig.read("replicasets")
        while (missing := abs(wanted - len(rig.pods(uid)))) > 0:
            step = min(missing, burst)
            before = len(rig.pods(uid))
            assert rig.turns(), "the key was woken"
            assert abs(len(rig.pods(uid)) - before) == step
            for _ in range(step - 1):
                rig.read("replicasets")
                rig.read("pods", 1)
                at = len(rig.pods(uid))
                rig.turns()
                assert len(rig.pods(uid)) == at, "an event is missing"
            rig.read()
    rig.rest()
    assert rig.pods(uid) == []
    assert (rig.count("create"), rig.count("delete")) == (replicas, replicas)


@inventory("11.2.13 the compiled-in burst is 500")
def test_a_burst_of_500(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one decision: a turn may have several (test_go_on)."""
    monkeypatch.setattr(Engine, "may_go_on", lambda self: False)
    rig = Rig()
    uid = rig.owner(600)
    rig.turns()
    assert rig.count("create") == 500
    rig.rest()
    assert (rig.count("create"), len(rig.pods(uid))) == (600, 600)
    rig.world.change_owner("web", replicas=0)
    rig.read("replicasets")
    rig.turns()
    assert rig.count("delete") == 500
    rig.rest()
    assert (rig.count("create"), rig.count("delete"), len(rig.world.pods)) == (600, 600, 0)


@inventory("11.2.14 a pod that enters the store during the check")
def test_what_is_checked_and_what_is_listed_are_of_one_moment() -> None:
    rig = Rig()
    uid = rig.owner(2)
    rig.turns()
    rig.read("pods", 1)
    batch = rig.claim()
    rig.read("pods", 1)  # the second pod comes while the key is in hand
    rig.run(batch, batch.claims[0])
    assert rig.count("create") == 2, "unsatisfied when it was claimed"
    batch = rig.claim()  # the event came during the turn: at once again
    assert sum(batch.claims[0].counts.values()) == 2
    rig.run(batch, batch.claims[0])
    rig.rest()
    assert (rig.count("create"), len(rig.pods(uid))) == (2, 2)


@inventory("11.2.15 an owner that is deleted takes its record along")
def test_a_deleted_owner() -> None:
    rig = Rig()
    rig.owner(2)
    rig.api.refuse = fail_with(UNANSWERED, "create")
    rig.turns()
    assert [line.partition(" ")[0] for line in rig.record()] == ["create", "owner:", "said:"]
    rig.world._commit("replicasets", "web", None)
    rig.read()
    writes = len(rig.api.writes)
    assert [ended.finish.verdict for ended in rig.turns() if ended.finish] == ["gone"]
    assert (rig.record(), rig.queue.min_rv, rig.queue.unsettled) == ([], {}, {})
    rig.later(60_000)  # the back-off of the turn before
    assert len(rig.turns()) == 1
    assert len(rig.api.writes) == writes, "nothing is written for it any more"
    assert rig.queue.delayed == {}


@inventory("11.2.16 an owner that is made anew under its name")
def test_a_successor_starts_afresh() -> None:
    rig = Rig()
    old = rig.owner(2)
    rig.api.refuse = fail_with(UNANSWERED, "create")
    rig.turns()
    rig.api.refuse = lambda write: None
    rig.world._commit("replicasets", "web", None)
    new = rig.owner(2)
    rig.turns()
    assert len(rig.pods(new)) == 2, "at once"
    assert rig.pods(old) == []
    assert [line for line in rig.record() if slot_name("web", old, 0) in line] == []
    rig.rest()
    assert rig.record() == []
    assert len(rig.world.pods) == 2


@inventory("11.2.17 nine owners with the same labels")
def test_a_pod_wakes_only_its_owner() -> None:
    rig = Rig()
    selector = {"app": "same"}
    template = b'{"metadata":{"labels":{"app":"same"}},"spec":{}}'
    for number in range(9):
        rig.owner(1, f"web{number}", selector=label_selector(selector), template=template, template_labels=selector)
    rig.rest()
    assert len(rig.world.pods) == 9
    (pod,) = [pod for _, pod in rig.world.pods.values() if (ref := controller_of(pod)) and ref.name == "web4"]
    rig.world.change_pod(pod.name, phase="Running")
    rig.read()
    assert [ended.key for ended in rig.turns()] == ["default/web4"]


def running(rig: Rig, count: int) -> tuple[str, list[str]]:
    """An owner at rest with pods that end gracefully. Its UID, and their names."""
    uid = rig.owner(count)
    rig.rest()
    names = [pod.name for pod in rig.pods(uid)]
    for name in names:
        rig.world.change_pod(name, phase="Running", node_name="n1", ready=True, ready_since_ms=1)
    rig.rest()
    return uid, names


@inventory("11.2.18 only the end of the pod that was deleted counts, once")
def test_deletion_timestamps() -> None:
    rig = Rig()
    uid, (victim, *others) = running(rig, 4)
    rig.world.change_pod(victim, ready=False, ready_since_ms=0)
    rig.rest()
    rig.world.change_owner("web", replicas=3)
    rig.read("replicasets")
    for name in others[:2]:
        rig.world.change_pod(name, deleting_ms=1)  # of their own accord, and nobody has read it yet
    rig.world.remove_pod(others[0])
    rig.turns()
    assert [write.name for write in rig.api.writes if write.verb == "delete"] == [victim]

    rig.read("pods", 3)  # the ends of the others: a timestamp each, and a final one
    rig.read("replicasets")
    rig.turns()
    assert rig.count("create") == 4, "two are missing by now, but our delete is still to be seen"
    assert rig.record() == [f"delete pods/{victim}: answered", f"owner: {uid}"]
    rig.read()
    rig.turns()
    assert rig.count("create") == 6, "its timestamp is seen"
    rig.world.remove_pod(victim)
    rig.world.remove_pod(others[1])
    rig.rest()
    assert (rig.count("create"), rig.count("delete"), len(rig.pods(uid)), rig.record()) == (6, 1, 3, [])


@inventory("11.2.19 a matching pod of another owner")
def test_a_pod_of_another_is_left_alone() -> None:
    rig = Rig()
    uid = rig.owner(2)
    rig.bare_pod("theirs", {"app": "web"}, owner_refs=(OwnerRef("apps/v1", "ReplicaSet", "api", "x", True, True),))
    rig.rest()
    assert (rig.count("create"), rig.count("patch"), len(rig.pods(uid))) == (2, 0, 2)


@inventory("11.2.20 an adoption patch that fails")
def test_a_failing_adoption() -> None:
    """Two turns, two attempts, no create; each failed and the key came again."""
    rig = Rig()
    rig.owner(2)
    rig.bare_pod("orphan", {"app": "web"})
    rig.read()
    rig.api.refuse = fail_with(Answer(500), "patch")
    (first,) = rig.turns()
    assert first.error == "adopt Pod default/orphan: the server answered 500"
    assert list(rig.queue.delayed) == [KEY]
    rig.later(5)
    (second,) = rig.turns()
    assert (first.failures, second.failures) == (1, 2)
    assert (rig.count("patch"), rig.count("create"), rig.count("status")) == (2, 0, 0)


@inventory("11.2.21 an owner being deleted")
def test_an_owner_being_deleted_does_nothing() -> None:
    rig = Rig()
    rig.owner(2, deleting_ms=1)
    rig.bare_pod("orphan", {"app": "web"})
    rig.rest()
    assert (rig.count("create"), rig.count("patch"), rig.api.reads) == (0, 0, [])


@inventory("11.2.22 alive in the cache, being deleted in truth")
def test_the_live_look_before_an_adoption() -> None:
    rig = Rig()
    rig.owner(2)
    rig.bare_pod("orphan", {"app": "web"})
    rig.world.change_owner("web", deleting_ms=1_750_000_000_000)
    rig.read("pods")
    (ended,) = rig.turns()
    assert ended.error.startswith("can't adopt Pod default/orphan (pod-2): default/web has just been deleted at ")
    assert (rig.api.reads, rig.api.writes) == ([("replicasets", "web")], [])


@inventory("11.2.28 terminatingReplicas goes from absent to 0")
def test_one_status_write_for_the_new_field() -> None:
    rig = Rig()
    rig.owner(0)
    assert "terminating=None" in repr(rig.world.owners["web"][1].status)
    rig.rest()
    assert (rig.world.owners["web"][1].status.terminating, rig.count("status")) == (0, 1)
    rig.broker.add("replicaset", [KEY])
    assert len(rig.turns()) == 1
    assert rig.count("status") == 1
    off = Rig(terminating_replicas=False)
    off.owner(0)
    off.rest()
    assert (off.world.owners["web"][1].status.terminating, off.count("status")) == (None, 1)


@inventory("11.4.1 what others create is not counted; eleven observations of ten are not all of them")
def test_creates_are_expected_by_name() -> None:
    rig = Rig()
    uid = rig.owner(10)
    for number in range(11):
        rig.bare_pod(f"theirs-{number}", {"app": "web"}, owner_refs=(OwnerRef("v1", "ReplicaSet", "web", uid, True),))
    rig.turns()  # before the cache has any of them
    assert rig.count("create") == 10
    rig.world.change_owner("web", replicas=30)
    rig.read("replicasets")
    rig.read("pods", 11 + 9)
    rig.turns()
    assert rig.count("create") == 10, "eleven strangers and nine of ours have been seen"
    rig.read("pods", 1)
    rig.read("replicasets")
    rig.turns()
    assert rig.count("create") == 19, "now the tenth: nine are missing of thirty"


@inventory("11.4.1 the life time passes")
def test_time_satisfies_nothing() -> None:
    """What was created is not read: not in five minutes, not in an hour."""
    rig = Rig()
    uid = rig.owner(2)
    rig.turns()
    for _ in range(12):
        rig.later(300_000)
        rig.broker.add("replicaset", [KEY])
        rig.turns()
    assert (rig.count("create"), len(rig.pods(uid))) == (2, 2)
    rig.rest()
    assert (rig.count("create"), rig.api.lists) == (2, 0)


@inventory("11.4.1 a record that is lost is not one that is satisfied")
def test_an_expired_record_asks_for_a_live_list() -> None:
    """Nobody acts for eight days while a create is unanswered: the record has gone, its mark has not."""
    rig = Rig()
    uid = rig.owner(2)
    rig.api.refuse = lambda write: rig.world.handle(write) and UNANSWERED if write.verb == "create" else None
    rig.turns()
    assert len(rig.pods(uid)) == 1
    assert [line.partition(" ")[0] for line in rig.record()] == ["create", "owner:", "said:"]
    rig.api.refuse = lambda write: None
    rig.read("replicasets")
    rig.later(700_000_000)
    assert (rig.record(), list(rig.queue.unsettled)) == ([], [KEY])
    rig.turns()
    assert (rig.api.lists, len(rig.pods(uid)), rig.count("create")) == (1, 2, 2)
    rig.rest()
    assert (rig.api.lists, rig.queue.unsettled, len(rig.pods(uid))) == (1, {}, 2)


@inventory("11.4.2 deletes of four owners, seen in random order")
@pytest.mark.parametrize("seed", range(3))
def test_deletes_are_expected_by_uid(seed: int) -> None:
    rng = random.Random(seed)
    rig = Rig()
    names = [f"web{number}" for number in range(4)]
    for name in names:
        rig.owner(5, name)
    rig.rest()
    for _, pod in list(rig.world.pods.values()):
        rig.world.change_pod(pod.name, phase="Running", node_name="n1")
    rig.rest()
    rig.world.clock_ms = lambda: 0  # deleted, and nothing to be seen of it: the events are drawn below
    deletes = dict.fromkeys(names, 5)
    for name in names:
        rig.world.change_owner(name, replicas=0)
    rig.read("replicasets")
    rig.turns()
    assert rig.count("delete") == 20
    victims = [(pod.name, pod.owner_refs[0].name) for _, pod in rig.world.pods.values()]
    rng.shuffle(victims)
    for victim, owner in victims:
        rig.world.change_pod(victim, deleting_ms=1)
        rig.read()
        rig.turns()
        deletes[owner] -= 1
        assert len([line for line in rig.record(f"default/{owner}") if "answered" in line]) == deletes[owner]
    assert rig.queue.expectations == {}
    assert rig.count("delete") == 20


@inventory("11.4.3 the answer of a create is what has to be read")
def test_the_new_object_is_needed() -> None:
    rig = Rig()
    uid = rig.owner(1)
    (ended,) = rig.turns()
    assert ended.finish is not None
    rv, _ = rig.world.pods[slot_name("web", uid, 0)]
    assert [change.value for change in ended.finish.changes if (change.op, change.name) == ("need", "pods")] == [
        str(rv)
    ]
    body = orjson.loads(next(write.body for write in rig.api.writes if write.verb == "create"))
    assert body["metadata"]["generateName"] == "web-"
    assert body["metadata"]["labels"] == {"app": "web"}
    assert body["metadata"]["ownerReferences"][0]["uid"] == uid


@inventory("11.4.4 an adoption that finds no pod leaves nothing to be read")
def test_no_callback_after_not_found() -> None:
    rig = Rig()
    uid = rig.owner(1)
    rig.bare_pod("orphan", {"app": "web"})
    rig.read()
    rig.world.remove_pod("orphan")
    (ended,) = rig.turns()
    assert (ended.error, rig.count("patch"), len(rig.pods(uid))) == ("", 1, 1)
    rig.rest()
    assert len(rig.world.pods) == 1


@inventory("11.4.5 a delete of a pod that is missing")
def test_a_delete_that_finds_no_pod() -> None:
    """No error and no event; until the cache shows it gone no other pod is taken in its place."""
    rig = Rig()
    uid, (victim, *others) = running(rig, 3)
    rig.world.change_pod(victim, ready=False, ready_since_ms=0)
    rig.rest()
    rig.world.change_owner("web", replicas=2)
    rig.read("replicasets")
    told = len(rig.api.told)
    rig.world.change_pod(others[0], ready=False, ready_since_ms=0, phase="Pending", node_name="")  # ranks first by now
    rig.world.remove_pod(victim)
    (ended,) = rig.turns()
    assert (ended.error, rig.count("delete"), rig.api.told[told:]) == ("", 1, [])
    rig.read("pods", 1)
    rig.read("replicasets")
    rig.turns()
    assert rig.count("delete") == 1, "the cache shows three pods, of which one is known to be gone"
    rig.rest()
    assert (rig.count("delete"), len(rig.pods(uid))) == (1, 2)


def test_turns_of_a_key_never_overlap() -> None:
    """A key in hand is handed to nobody else; what changes meanwhile leads to one more turn, after it."""
    rig = Rig()
    uid = rig.owner(3)
    other = rig.worker("worker-2")
    batch = rig.claim()
    rig.broker.add("replicaset", [KEY, KEY])
    rig.world.change_owner("web", replicas=4)
    rig.read("replicasets")
    assert other.claim("worker-2", 8) == "EMPTY"
    rig.run(batch, batch.claims[0])
    assert len(rig.pods(uid)) == 3
    (second,) = rig.turns()
    assert second.error == ""
    rig.rest()
    assert (rig.count("create"), len(rig.pods(uid))) == (4, 4)


def test_one_event_a_pod() -> None:
    """SuccessfulCreate and SuccessfulDelete, told about the owner as the turn read it."""
    rig = Rig()
    rig.owner(3)
    rig.rest()
    reasons = [event.reason for _, _, event in rig.api.told]
    assert reasons == ["SuccessfulCreate"] * 3
    rig.world.change_owner("web", replicas=1)
    rig.rest()
    reasons = [event.reason for _, _, event in rig.api.told]
    assert reasons == ["SuccessfulCreate"] * 3 + ["SuccessfulDelete"] * 2
