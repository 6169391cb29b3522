"""A turn that has created as many pods as one decision may ask for decides on more, for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import pytest

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import Entry, NameTaken
from oarlock.cluster.answer import Answer
from oarlock.workers.turn.steps import Grant, Write
from oarlock.workers.turn.turn import GO_ON_MS, PLANS_MAX
from tests.bursts import bursts_of
from tests.simulation.world import refusal
from tests.workers.turn.daemon_rig import DaemonRig
from tests.workers.turn.turn_rig import UNANSWERED, Rig, fail_with

BURST = 3


@pytest.fixture(autouse=True)
def small_bursts() -> Iterator[None]:
    with bursts_of(BURST):
        yield


def waves(rig: Rig) -> list[int]:
    """How many creates went out together, wave by wave."""
    return [len(writes) for writes, _, _ in rig.api.sends if writes[0].verb == "create"]


def at_create(rig: Rig, number: int, act: Callable[[], None]) -> None:
    """Have it happen while the create of this number is under way, from 1 on."""

    def refuse(write: Write) -> Answer | None:
        if write.verb == "create" and rig.count("create") >= number and not done:
            done.append(True)
            act()
        return None

    done: list[bool] = []
    rig.api.refuse = refuse


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        pytest.param(2, [1, 1], id="fewer than a decision may ask for: no more is asked"),
        pytest.param(3, [1, 2], id="as many"),
        pytest.param(4, [1, 2, 1], id="one more"),
        pytest.param(6, [1, 2, 3], id="twice as many"),
        pytest.param(40, [1, 2, 3], id="two plans at most"),
    ],
)
def test_one_turn(replicas: int, expected: list[int]) -> None:
    rig = Rig()
    uid = rig.owner(replicas)
    [ended] = rig.turns()
    assert (waves(rig), ended.error) == (expected, "")
    assert len(rig.pods(uid)) == sum(expected) == min(replicas, PLANS_MAX * BURST)
    assert rig.record() == [], "every create has its answer"
    rig.rest()
    assert len(rig.pods(uid)) == rig.count("create") == replicas


def test_after_the_last_plan_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    rig, looks = Rig(), []
    look = rig.broker.look
    monkeypatch.setattr(rig.broker, "look", lambda *given, **more: looks.append(given) or look(*given, **more))
    rig.owner(40)
    batch = rig.claim()
    rig.run(batch, batch.claims[0])
    assert (rig.count("create"), len(looks)) == (PLANS_MAX * BURST, PLANS_MAX - 1)


def test_strict_owners_too() -> None:
    rig = Rig()
    uid = rig.owner(5, strict=True)
    rig.turns()
    assert (waves(rig), len(rig.pods(uid))) == ([1, 2, 2], 5)


def test_names_of_a_later_plan_are_announced_before_they_are_sent() -> None:
    rig, announced = Rig(), []

    def refuse(write: Write) -> Answer | None:
        announced.append(f"create pods/{write.name}: pending" in rig.record())
        return None

    rig.owner(6)
    rig.api.refuse = refuse
    rig.turns()
    assert announced == [True] * 6


def test_a_later_plan_has_one_announcement(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small waves of the turn are over: nothing speaks for another announcement in between."""
    rig, sizes = Rig(), []

    def announce(claim: Claim, owner_uid: str, entries: Sequence[Entry], *, lease_ms: int) -> list[NameTaken]:
        sizes.append(len(entries))
        return real(claim, owner_uid, entries, lease_ms=lease_ms)

    real = rig.broker.announce
    monkeypatch.setattr(rig.broker, "announce", announce)
    with bursts_of(50):
        rig.owner(100)
        rig.turns()
    assert (sizes, waves(rig)) == ([31, 19, 50], [1, 2, 4, 8, 16, 19, 38, 12])


@pytest.mark.parametrize(
    ("took_ms", "plans"),
    [
        pytest.param(0, 2, id="no time at all"),
        pytest.param(GO_ON_MS // 2, 2, id="half: another half fits"),
        pytest.param(GO_ON_MS // 2 + 1, 1, id="more than half: as much again would be too long"),
        pytest.param(5 * GO_ON_MS, 1, id="very long"),
    ],
)
def test_it_goes_on_if_that_can_be_done_in_time(took_ms: int, plans: int) -> None:
    rig = Rig()
    rig.owner(9)

    at_create(rig, 1, lambda: rig.clock.advance(took_ms))
    batch = rig.claim()
    rig.run(batch, batch.claims[0])
    assert rig.count("create") == plans * BURST


@pytest.mark.parametrize("replicas", [0, 2, 4, 20])
def test_an_owner_that_is_scaled_meanwhile_is_claimed_anew(replicas: int) -> None:
    rig = Rig()
    uid = rig.owner(9)

    def scale() -> None:
        rig.world.change_owner("web", replicas=replicas)
        rig.read("replicasets")

    at_create(rig, 2, scale)
    batch = rig.claim()
    rig.run(batch, batch.claims[0])
    assert rig.count("create") == BURST
    rig.rest()
    assert len(rig.pods(uid)) == replicas


def test_an_owner_that_has_gone_is_claimed_anew() -> None:
    rig = Rig()
    rig.owner(9)

    def remove() -> None:
        rig.world._commit("replicasets", "web", None)
        rig.read("replicasets")

    at_create(rig, 2, remove)
    rig.turns()
    assert rig.count("create") == BURST


def test_pods_that_are_read_meanwhile_change_nothing() -> None:
    """They are among those that may have come."""
    rig = Rig()
    uid = rig.owner(5)
    at_create(rig, 3, lambda: rig.read("pods"))
    rig.turns()
    assert (waves(rig), len(rig.pods(uid))) == ([1, 2, 2], 5)


def test_nor_does_the_status() -> None:
    """It may be our own, put off before and written at the begin of the turn."""
    rig = Rig()
    uid = rig.owner(5)

    def tell() -> None:
        _, owner = rig.world.owners["web"]
        status = msgspec.structs.replace(owner.status, replicas=2)
        rig.world._commit("replicasets", "web", msgspec.structs.replace(owner, status=status))
        rig.read("replicasets")

    at_create(rig, 3, tell)
    batch = rig.claim()
    rig.run(batch, batch.claims[0])
    assert (waves(rig), len(rig.pods(uid))) == ([1, 2, 2], 5)


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(Answer(422, b'{"kind":"Status","message":"no","code":422}'), id="refused"),
        pytest.param(Answer(500, b"{}"), id="a fault of the server"),
        pytest.param(UNANSWERED, id="no answer"),
    ],
)
def test_a_create_that_fails_is_the_end(refusal: Answer) -> None:
    rig = Rig()
    rig.owner(9)
    rig.api.refuse = fail_with(refusal, "create", 1)
    at_first = rig.turns()
    assert rig.count("create") == 1
    assert at_first[0].failures == 1


def test_a_name_of_which_nothing_could_be_learned_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    rig.owner(9)
    rig.api.refuse = fail_with(refusal(409, "AlreadyExists"), "create", 1)
    monkeypatch.setattr(rig.world, "get", lambda resource, name: Answer(500))
    batch = rig.claim()
    rig.run(batch, batch.claims[0])
    assert rig.count("create") == BURST


def test_a_plan_that_deletes_as_well_does_that_first() -> None:
    """A strict owner whose finished pod has to go before another takes its place."""
    rig = Rig()
    uid = rig.owner(1, strict=True)
    rig.rest()
    [pod] = rig.pods(uid)
    rig.world.change_pod(pod.name, phase="Failed")
    rig.world.change_owner("web", replicas=9)
    rig.read()
    batch = rig.claim()
    rig.run(batch, batch.claims[0])
    assert (rig.count("create"), rig.count("delete")) == (1 + BURST, 1)


def test_not_beside_another_turn_that_writes() -> None:
    """That one would go on while this one waits for the cache."""
    rig = Rig()
    rig.owner(9)
    rig.owner(1, "other")
    batch = rig.claim()
    web, other = (rig.engine.start(batch, claim) for claim in batch.claims)
    at_create(rig, 2, lambda: rig.engine._window.reserve(other, 1))
    rig.run(batch, web.claim)
    assert rig.count("create") == BURST


def test_not_where_keys_of_the_same_claim_wait_for_its_end() -> None:
    """As where it is said how many objects of the kind are synced at once."""
    rig = Rig(concurrent_syncs={"replicaset": 5})
    rig.owner(9)
    rig.owner(1, "other")
    batch = rig.claim()
    rig.run(batch, batch.claims[0])
    assert rig.count("create") == BURST


def test_a_limit_of_requests_is_the_end() -> None:
    rig = Rig()
    rig.owner(9)
    rig.api.grants = [Grant(1, 0), Grant(2, 0), Grant(2, 40)]
    batch = rig.claim()
    ended = rig.run(batch, batch.claims[0])
    assert ended.finish is not None
    assert (waves(rig), ended.finish.delay_ms) == ([1, 2, 2], 40)
    assert rig.record() == [], "what was not sent is expected no longer"


def test_a_name_that_is_taken_counts_as_a_pod() -> None:
    """Somebody has made a pod of a name that the second plan chooses, and the cache has it."""
    rig = Rig()
    uid = rig.owner(5)
    first = Rig()
    first.owner(5)
    first.turns()
    name = [write.name for write in first.api.writes if write.verb == "create"][4]

    def make() -> None:
        rig.bare_pod(name, {"app": "other"})
        rig.read("pods")

    at_create(rig, 3, make)
    rig.turns()
    rig.rest()
    assert len(rig.pods(uid)) == 5


def test_daemons() -> None:
    rig = DaemonRig(nodes=6)
    rig.turn()
    assert sorted(pod.target_node for pod in rig.pods()) == [f"n{number}" for number in range(1, 7)]
    rig.read()
    rig.turns()
    assert sum(write.verb == "create" and write.resource == "pods" for write in rig.api.writes) == 6


def test_daemons_for_nodes_that_come_meanwhile_wait_for_the_next_turn() -> None:
    rig = DaemonRig(nodes=4)
    seen: list[str] = []

    def refuse(write: Write) -> Answer | None:
        if write.resource == "pods" and not seen:
            seen.append(write.name)
            rig.node("n9")
            rig.read("nodes")
        return None

    rig.api.refuse = refuse
    rig.turn()
    assert len(rig.pods()) == 4
    rig.rest()
    assert len(rig.pods()) == 5
