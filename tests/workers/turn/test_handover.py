"""What one holder leaves unanswered and the next one makes of it: never one pod too many, never one too few."""

from __future__ import annotations

from itertools import pairwise

import pytest

from oarlock.broker.values.claims import Batch
from oarlock.cluster.answer import NOT_SENT, PAST_DEADLINE, Answer
from oarlock.controllers.objects.model import OwnerRef
from oarlock.workers.turn import expectations
from oarlock.workers.turn.expectations import TRIES_MAX
from oarlock.workers.turn.steps import Write
from tests.controllers.pod_names import slot_name
from tests.simulation.world import refusal
from tests.workers.turn.turn_rig import UNANSWERED, WORKER, Rig, fail_with

KEY = "default/web"


def unanswered(rig: Rig, verb: str, *, done: bool) -> list[Write]:
    """From now on writes of a verb get no answer; carried out or still under way, in the list that is returned."""
    under_way: list[Write] = []

    def refuse(write: Write) -> Answer | None:
        if write.verb != verb:
            return None
        if done:
            rig.world.handle(write)
        under_way.append(write)
        return UNANSWERED

    rig.api.refuse = refuse
    return under_way


def heal(rig: Rig) -> None:
    rig.api.refuse = lambda write: None
    rig.read("replicasets")


def running_three(rig: Rig) -> tuple[str, list[str]]:
    """Three pods at rest, on nodes, and an owner that asks for two; the first pod goes first."""
    uid = rig.owner(3)
    rig.rest()
    names = [pod.name for pod in rig.pods(uid)]
    for name in names:
        ready = name != names[0]
        rig.world.change_pod(name, phase="Running", node_name="n1", ready=ready, ready_since_ms=int(ready))
    rig.rest()
    rig.world.change_owner("web", replicas=2)
    rig.read("replicasets")
    return uid, names


def last_wave_unanswered(rig: Rig) -> str:
    """63 pods, of which a wave of 32 took effect without an answer; D is over since. The UID of their owner."""
    uid = rig.owner(63)
    rig.api.refuse = lambda write: None if len(rig.api.writes) < 63 else (rig.world.handle(write), UNANSWERED)[1]
    rig.turns()
    heal(rig)
    rig.later(1_000)
    rig.rest()
    rig.later(rig.settings.drain_ms + 1)
    return uid


@pytest.mark.parametrize(
    ("settings", "reads", "lists"),
    [
        pytest.param({"kube_api_qps": 0.0}, 32, 0, id="nothing limits requests: each is read"),
        pytest.param({}, 0, 1, id="a limit: they are listed"),
        pytest.param({"kube_api_qps": 0.0, "fleet_api_qps": 50.0}, 0, 1, id="a budget of the fleet: the same"),
    ],
)
def test_many_creates_that_took_effect(settings: dict[str, float], reads: int, lists: int) -> None:
    """D later their names are looked up: a list costs what the whole namespace has."""
    rig = Rig(**settings)
    uid = last_wave_unanswered(rig)
    before = len(rig.api.reads)
    rig.rest()
    assert (len(rig.api.reads) - before, rig.api.lists, len(rig.pods(uid)), rig.record()) == (reads, lists, 63, [])


def test_very_many_creates_that_took_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing limits requests, a turn reads some of the names and the next ones the others: nothing is listed."""
    monkeypatch.setattr(expectations, "READS_A_TURN", 10)
    rig = Rig(kube_api_qps=0.0)
    uid = last_wave_unanswered(rig)
    reads, ended = [len(rig.api.reads)], []
    while isinstance(batch := rig.engine.claim(WORKER, 1), Batch):
        ended.append(rig.run(batch, batch.claims[0]))
        reads.append(len(rig.api.reads))
        rig.later(100)
    assert [after - before for before, after in pairwise(reads)] == [10, 10, 10, 2]
    assert not any(each.error for each in ended)
    assert (rig.api.lists, len(rig.pods(uid)), rig.record()) == (0, 63, [])


def test_a_create_that_took_effect() -> None:
    """Sent again: AlreadyExists, ours, done. Its name stays reserved until D and a look that shows who bears it."""
    rig = Rig()
    uid = rig.owner(1)
    unanswered(rig, "create", done=True)
    (failed,) = rig.turns()
    assert failed.error == "no answer within 4 s"
    heal(rig)
    rig.later(5)
    assert len(rig.turns()) >= 1
    rig.rest()
    assert (rig.count("create"), len(rig.pods(uid)), list(rig.queue.unsettled)) == (2, 1, [KEY])
    assert [line.partition(" ")[0] for line in rig.record()] == ["owner:", "reserved"]
    rig.later(rig.settings.drain_ms)
    rig.rest()
    assert (rig.count("create"), rig.record(), rig.queue.unsettled, rig.queue.delayed) == (2, [], {}, {})
    assert [name for resource, name in rig.api.reads] == [slot_name("web", uid, 0)] * 2, "AlreadyExists, and D"


def test_a_create_that_lands_late() -> None:
    """Written again and done; the one under way then meets its own name."""
    rig = Rig()
    uid = rig.owner(1)
    (late,) = (unanswered(rig, "create", done=False), rig.turns())[0]
    heal(rig)
    rig.later(5)
    rig.rest()
    assert rig.world.handle(late).code == 409
    assert len(rig.pods(uid)) == 1


def test_a_refused_name_stays_reserved() -> None:
    """The quota refuses what is sent again, while the first may land yet: it takes its place until a look."""
    rig = Rig()
    uid = rig.owner(2)
    (late,) = (unanswered(rig, "create", done=False), rig.turns())[0]
    heal(rig)
    rig.api.refuse = lambda write: refusal(403, "Forbidden") if write.name == late.name else None
    rig.later(5)
    refused = rig.turns()[0]
    assert refused.error == "Forbidden"
    assert [line.split(":")[0] for line in rig.record()] == [
        "owner",
        f"passed pods/{late.name}",
        f"reserved pods/{late.name}",
        "said",
    ]
    assert rig.world.handle(late).code == 201
    rig.later(10)
    rig.turns()
    assert sorted(pod.name for pod in rig.pods(uid)) == sorted(slot_name("web", uid, index) for index in (0, 1))
    rig.rest()
    assert len(rig.pods(uid)) == 2


def test_one_name_is_refused_for_certain() -> None:
    """A policy that is against it. The others are created at once, and one more in its place."""
    rig = Rig()
    uid = rig.owner(10)
    bad = slot_name("web", uid, 0)
    refused = refusal(403, "Forbidden")
    rig.api.refuse = lambda write: refused if (write.verb, write.name) == ("create", bad) else None
    rig.turns()
    rig.later(5)
    rig.rest()
    assert (len(rig.pods(uid)), rig.count("create")) == (10, 11)


def test_a_delete_that_took_effect() -> None:
    """Written again it finds no pod. The cache still shows it, and by now would name another one: none is deleted."""
    rig = Rig()
    uid, names = running_three(rig)
    rig.world.change_pod(names[0], node_name="", phase="Pending")  # so that its delete removes it at once
    rig.read("pods")
    unanswered(rig, "delete", done=True)
    (failed,) = rig.turns()
    assert failed.error == "unable to delete pods: no answer within 4 s"
    heal(rig)
    rig.later(5)
    (settled, *_) = rig.turns()
    assert settled.finish is not None
    assert rig.record() == [f"delete pods/{names[0]}: answered", f"owner: {uid}"]
    change = rig.world.journal.pop()  # the end of the pod comes after a change that ranks another one first
    rig.world.change_pod(names[1], ready=False, ready_since_ms=0, phase="Pending", node_name="")
    rig.world.rv += 1
    change.rv = rig.world.rv
    rig.world.journal.append(change)
    rig.read("pods", 1)
    rig.broker.add("replicaset", [KEY])
    rig.turns()
    assert rig.count("delete") == 2
    rig.rest()
    assert (rig.count("delete"), len(rig.pods(uid)), rig.record()) == (2, 2, [])


def test_a_delete_under_way_while_the_next_one_is_too_late() -> None:
    """What could not be sent again stays announced: another victim now, and the first delete would make it two."""
    rig = Rig()
    uid, names = running_three(rig)
    (late,) = (unanswered(rig, "delete", done=False), rig.turns())[0]
    assert late.name == names[0]
    heal(rig)
    for answer in (PAST_DEADLINE, Answer(NOT_SENT, error="cannot connect"), Answer(429)):
        rig.api.refuse = fail_with(answer, "delete")
        rig.later(60_000)
        rig.turns()
        assert rig.record()[0] == f"delete pods/{names[0]}: pending"
    rig.world.change_pod(names[1], ready=False, ready_since_ms=0)
    rig.world.change_pod(names[2], ready=False, ready_since_ms=0)
    rig.rest()
    heal(rig)
    assert rig.world.handle(late).code == 200
    rig.later(60_000)
    rig.rest()
    assert (len(rig.pods(uid)), rig.record()) == (2, [])


def test_a_victim_that_changed() -> None:
    """409 with the same UID: refused, whoever sends it; ranked again once the change is read."""
    rig = Rig()
    uid, names = running_three(rig)
    rig.world.change_pod(names[0], ready=True, ready_since_ms=1)
    rig.world.change_pod(names[1], ready=False, ready_since_ms=0)
    (refused,) = rig.turns()
    assert (refused.error, refused.failures, rig.count("delete")) == ("", 1, 1)
    rig.read("replicasets")
    rig.later(5)
    rig.turns()
    assert rig.count("delete") == 1, "the change is not read yet"
    rig.rest()
    deleted = [write.name for write in rig.api.writes if write.verb == "delete"]
    assert deleted == [names[0], names[1]]
    assert len(rig.pods(uid)) == 2


def test_scaled_down_while_creates_are_open() -> None:
    """They are not sent again, for they are not wanted; what lands late is deleted once it is read."""
    rig = Rig()
    uid = rig.owner(3)
    (late,) = (unanswered(rig, "create", done=False), rig.turns())[0]
    rig.world.change_owner("web", replicas=0)
    heal(rig)
    rig.later(5)
    rig.turns()
    assert (rig.count("create"), len(rig.pods(uid))) == (1, 0)
    assert rig.world.handle(late).code == 201
    rig.rest()
    assert (rig.count("create"), rig.count("delete"), len(rig.pods(uid))) == (1, 1, 0)
    rig.later(rig.settings.drain_ms)
    rig.rest()
    assert (rig.count("create"), rig.count("delete"), rig.record(), rig.queue.delayed) == (1, 1, [], {})


def test_deletes_that_are_not_wanted_any_more() -> None:
    """Answered with 500 again and again, and meanwhile the owner asks for all its pods again: none of them goes."""
    rig = Rig()
    uid = rig.owner(10)
    rig.rest()
    rig.world.change_owner("web", replicas=5)
    rig.read("replicasets")
    rig.api.refuse = fail_with(refusal(500, "InternalError"), "delete")
    rig.turns()
    assert rig.count("delete") == 5
    rig.world.change_owner("web", replicas=10)
    heal(rig)
    for _ in range(20):
        rig.later(1_000)
        rig.rest()
    assert (rig.count("delete"), len(rig.pods(uid)), rig.record(), rig.queue.delayed) == (5, 10, [], {})


def test_one_name_is_refused_for_ever() -> None:
    """The owner does everything else, and in the end takes another name."""
    rig = Rig()
    uid = rig.owner(10)
    bad = slot_name("web", uid, 3)
    refused = refusal(500, "InternalError")
    rig.api.refuse = lambda write: refused if (write.verb, write.name) == ("create", bad) else None
    for _ in range(30):
        rig.later(1_000)
        rig.rest()
    names = {pod.name for pod in rig.pods(uid)}
    assert (len(names), bad in names) == (10, False)
    assert sum(write.name == bad for write in rig.api.writes) == TRIES_MAX
    assert any(line.startswith(f"passed pods/{bad}") for line in rig.record())
    rig.world.change_owner("web", replicas=2)
    rig.rest()
    assert len(rig.pods(uid)) == 2


@pytest.mark.parametrize("replicas", [0, 2, 11])
def test_a_refused_name_does_not_stop_what_comes_after(replicas: int) -> None:
    """10 -> 11 with a name that is refused, then another number: at once. It is observed once the name is settled."""
    rig = Rig()
    uid = rig.owner(10)
    rig.rest()
    rig.api.refuse = fail_with(refusal(500, "InternalError"), "create")
    rig.world.change_owner("web", replicas=11)
    rig.rest()
    rig.later(10)
    rig.turns()
    rig.world.change_owner("web", replicas=replicas)
    rig.rest()
    assert len(rig.pods(uid)) == min(replicas, 10)
    _, owner = rig.world.owners["web"]
    assert (owner.status.replicas, owner.status.observed_generation) == (
        min(replicas, 10),
        owner.generation - (replicas < 11),
    )
    assert [each.reason for each in owner.status.conditions] == ["FailedCreate"]
    heal(rig)
    for _ in range(20):
        rig.later(1_000)
        rig.rest()
    _, owner = rig.world.owners["web"]
    assert (owner.status.replicas, owner.status.observed_generation) == (replicas, owner.generation)


def test_a_list_that_is_ahead_of_the_cache() -> None:
    """A turn decided on a live list; the next one may not decide on a cache that does not know what the list showed."""
    rig = Rig()
    uid, names = running_three(rig)
    rig.world.remove_pod(names[1])
    rig.bare_pod("web-zzzzz", {"app": "web"}, owner_refs=rig.world.pods[names[0]][1].owner_refs)  # three again
    rig.clock.advance(rig.settings.view_age_max_ms + 1)  # nobody has confirmed the cache for so long
    rig.turns()
    assert rig.api.lists == 1
    assert [write.name for write in rig.api.writes if write.verb == "delete"] == ["web-zzzzz"], "pending goes first"
    rig.read("replicasets")
    rig.store.state.watermark_at["pods"] = rig.clock.wall_ms()  # confirmed, though not moved on
    rig.broker.add("replicaset", [KEY])
    rig.turns()
    assert rig.count("delete") == 1, "the cache still has the one that went and not the one we deleted: three"
    rig.rest()
    assert (rig.count("delete"), len(rig.pods(uid))) == (1, 2)


def test_a_foreign_pod_on_our_name() -> None:
    """Its name is blocked while it lives, and free when it has gone."""
    rig = Rig()
    uid = rig.owner(1)
    first = slot_name("web", uid, 0)
    rig.bare_pod(first, {"app": "else"}, owner_refs=(OwnerRef("apps/v1", "ReplicaSet", "x", "x", True),))
    rig.turns()
    assert rig.api.reads == [("pods", first)]
    assert f"blocked pods/{first}: uid=pod-2" in rig.record()
    rig.rest()
    assert [pod.name for pod in rig.pods(uid)] == [slot_name("web", uid, 1)]
    assert rig.count("create") == 2
    rig.world.remove_pod(first)
    rig.world.change_owner("web", replicas=2)
    rig.rest()
    assert (sorted(pod.name for pod in rig.pods(uid)), rig.record()) == (
        sorted(slot_name("web", uid, index) for index in (0, 1)),
        [],
    )
