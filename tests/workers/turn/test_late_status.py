"""A turn that creates or deletes leaves the status to the turn that is sure to follow, for a second at most."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from oarlock.controllers.objects.model import Condition, OwnerRef, ReplicaSetStatus
from oarlock.workers.turn.status import OWNERS_MAX, PUT_OFF_MS, QUEUED_MS, LateStatus
from oarlock.workers.turn.steps import Grant
from tests.controllers.builders import NOW_MS, UID, S, pods, rs
from tests.simulation.world import refusal
from tests.workers.turn import turn_script
from tests.workers.turn.turn_rig import Rig, fail_with
from tests.workers.turn.turn_script import CONTROLLER, claimed, plays

FEW = 3


def statuses(rig: Rig) -> int:
    return rig.count("status")


def replicas(rig: Rig) -> int:
    return rig.world.owners["web"][1].status.replicas


def test_an_owner_has_one_status_write_for_all_its_pods() -> None:
    rig = Rig()
    uid = rig.owner(10)
    rig.rest()
    assert (len(rig.pods(uid)), statuses(rig), replicas(rig)) == (10, 1, 10)


def test_an_owner_that_is_made_smaller_has_one_status_write_too() -> None:
    rig = Rig()
    uid = rig.owner(10)
    rig.rest()
    rig.world.change_owner("web", replicas=4)
    rig.rest()
    assert (len(rig.pods(uid)), statuses(rig), replicas(rig)) == (4, 2, 4)


MADE = {"status": ReplicaSetStatus(), "owner_refs": (OwnerRef("apps/v1", "Deployment", "web", "dep", True, True),)}


@pytest.mark.parametrize(
    ("fields", "says", "waits"),
    [
        pytest.param(MADE, "status 0", True, id="its size follows"),
        pytest.param(MADE | {"owner_refs": ()}, "status 0", False, id="nobody made it"),
        pytest.param(MADE | {"generation": 2}, "status 0, observed 2", False, id="it had a size"),
    ],
)
def test_a_replicaset_made_without_pods_has_no_status_before_its_size(
    fields: dict[str, Any], says: str, waits: bool
) -> None:
    late, claim = LateStatus(), claimed(rs(0, **fields))
    told = f"send {says} @5 -> 200@20\nok: need replicasets 20"
    plays(claim, f"ok in {PUT_OFF_MS} ms" if waits else told, late=late)
    plays(claim, told, late=late, now_ms=NOW_MS + PUT_OFF_MS)


def test_what_was_put_off_is_written_once_a_second_where_the_events_of_pods_come_one_by_one() -> None:
    rig = Rig()
    rig.owner(4)
    rig.turns()
    for seen in (0, 2, 2):
        rig.read("pods", 1)
        rig.turns()
        assert replicas(rig) == seen
        rig.later(PUT_OFF_MS)
    rig.rest()
    assert replicas(rig) == 4


def test_a_failure_is_told_at_once() -> None:
    rig = Rig()
    rig.owner(10)
    rig.api.refuse = fail_with(refusal(403, "Forbidden"), "create")
    rig.turns()
    assert statuses(rig) == 1
    assert [each.reason for each in rig.world.owners["web"][1].status.conditions] == ["FailedCreate"]


def test_under_a_limit_the_status_follows_once_a_second() -> None:
    rig = Rig()
    uid = rig.owner(100)
    seen = []
    for _ in range(4):
        for _ in range(5):
            rig.api.grants = [Grant(1, 200), Grant(FEW - 1, 200), *[Grant(0, 200)] * 20]
            rig.turns()
            rig.read()
            rig.later(PUT_OFF_MS // 5)
        seen.append((statuses(rig), replicas(rig)))
    assert [count for count, _ in seen] == [0, 1, 2, 3], seen
    assert seen[-1][1] > 2 * FEW
    rig.api.grants = []
    rig.rest()
    assert (len(rig.pods(uid)), replicas(rig)) == (100, 100)


def test_where_the_limit_grants_nothing_the_status_takes_no_token_either() -> None:
    rig = Rig()
    rig.owner(100)
    rig.api.grants = [Grant(1, 50), Grant(1, 50)]
    rig.turns()
    rig.read()
    rig.api.grants = [Grant(0, 50)]
    rig.turns()
    assert (rig.count("create"), statuses(rig)) == (2, 0)


FAILURE = Condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota", NOW_MS - S)
EARLY = """
        send status 1, full 1, ready 1, available 1 @5 -> 200@30
        reserve 1         -> all
        announce create 1 -> recorded
        send create 1     -> 201@20
        ok: need replicasets 30; drop create 1; need pods 20
        """
LAST = """
        reserve 1         -> all
        announce create 1 -> recorded
        send create 1     -> 201@20
        send status 1, full 1, ready 1, available 1 @5 -> 200@30
        ok: drop create 1; need pods 20; need replicasets 30
        """
PUT_OFF_AGAIN = """
        reserve 1         -> all
        announce create 1 -> recorded
        send create 1     -> 201@20
        ok: drop create 1; need pods 20
        """
FAILS = "fails (status of default/web: Invalid), retry: drop create 1; need pods 20"


def put_off_for(ms: int) -> LateStatus:
    late = LateStatus()
    assert late.put_off(UID, NOW_MS - ms)
    return late


def test_one_that_may_not_wait_any_more_goes_before_the_creates() -> None:
    """Some hundreds of them take a second."""
    claim, late = claimed(rs(2), pods("R")), put_off_for(PUT_OFF_MS)
    plays(claim, EARLY, late=late)
    assert late.put_off(UID, NOW_MS), "counted anew: what they came to is for the next turn"
    plays(claim, PUT_OFF_AGAIN, late=put_off_for(PUT_OFF_MS - 1))


@pytest.mark.parametrize(
    ("burst", "waited_ms", "steps"),
    [
        pytest.param(1, QUEUED_MS, EARLY, id="many pods to come, and its key was queued for long"),
        pytest.param(1, QUEUED_MS - 1, PUT_OFF_AGAIN, id="not for so long"),
        pytest.param(2, 10 * QUEUED_MS, PUT_OFF_AGAIN, id="fewer than a decision may ask for"),
    ],
)
def test_nor_may_one_wait_where_there_is_much_to_do(
    burst: int, waited_ms: int, steps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker may have had the turns before: this one has put off nothing yet."""
    flavour = msgspec.structs.replace(CONTROLLER.flavour, burst=burst)
    monkeypatch.setattr(turn_script, "CONTROLLER", msgspec.structs.replace(CONTROLLER, flavour=flavour))
    plays(claimed(rs(2), pods("R")), steps, late=LateStatus(), waited_ms=waited_ms)


@pytest.mark.parametrize(
    ("answer", "last"),
    [
        pytest.param("conflict", "retry: drop create 1; need pods 20", id="the owner has changed"),
        pytest.param("429@7", "retry in 7000 ms: drop create 1; need pods 20", id="throttled"),
    ],
)
def test_if_it_cannot_be_written_then_it_cannot_be_after_them(answer: str, last: str) -> None:
    steps = PUT_OFF_AGAIN.replace("ok: drop create 1; need pods 20", last)
    first = f"send status 1, full 1, ready 1, available 1 @5 -> {answer}"
    plays(claimed(rs(2), pods("R")), first + steps, late=put_off_for(PUT_OFF_MS))


def test_if_it_is_forbidden_the_pods_come_all_the_same_and_the_turn_fails() -> None:
    first = "send status 1, full 1, ready 1, available 1 @5 -> 422"
    rest = LAST.replace("-> 200@30", "-> 422")
    rest = rest.replace("ok: drop create 1; need pods 20; need replicasets 30", FAILS)
    plays(claimed(rs(2), pods("R")), first + rest, late=put_off_for(PUT_OFF_MS))


@pytest.mark.parametrize(
    ("status", "last"),
    [
        pytest.param(ReplicaSetStatus(1, 1, 1, 1, None, 1), PUT_OFF_AGAIN, id="nothing is new"),
        pytest.param(
            ReplicaSetStatus(0, 0, 0, 0, None, 1, (FAILURE,)),
            LAST.replace(" @5", ", no conditions @5"),
            id="they may end a failure",
        ),
    ],
)
def test_what_else_may_not_be_told_before_them(status: ReplicaSetStatus, last: str) -> None:
    plays(claimed(rs(2, status=status), pods("R")), last, late=put_off_for(PUT_OFF_MS))


def test_a_failure_after_it_is_told_at_once_all_the_same() -> None:
    plays(
        claimed(rs(2), pods("R")),
        """
        send status 1, full 1, ready 1, available 1 @5 -> 200@30
        reserve 1         -> all
        announce create 1 -> recorded
        send create 1     -> 422
        send status 1, full 1, ready 1, available 1, FailedCreate (Invalid) @30 -> 200@31
        fails (Invalid), retry: need replicasets 30; drop create 1; passed 1; need replicasets 31
        """,
        late=put_off_for(PUT_OFF_MS),
    )


def test_after_a_clock_was_set_back_it_does_not_wait() -> None:
    late = put_off_for(0)
    assert not late.is_overdue(UID, NOW_MS)
    assert not late.is_overdue("another", NOW_MS - 1)
    assert late.is_overdue(UID, NOW_MS - 1)


def test_each_owner_has_a_second_of_its_own_and_another_one_after_a_status() -> None:
    late = LateStatus()
    assert late.put_off("a", 0)
    assert late.put_off("b", PUT_OFF_MS - 1)
    assert not late.put_off("a", PUT_OFF_MS)
    assert late.put_off("a", PUT_OFF_MS), "counted anew"
    late.forget("b")
    assert late.put_off("b", 2 * PUT_OFF_MS - 2)


def test_a_clock_that_was_set_back_puts_nothing_off_for_long() -> None:
    late = LateStatus()
    assert late.put_off("a", 10_000)
    assert not late.put_off("a", 9_999)


def test_it_keeps_no_more_owners_than_so_many() -> None:
    late = LateStatus()
    for number in range(2 * OWNERS_MAX + 5):
        late.put_off(str(number), 0)
    assert len(late._since_ms) <= OWNERS_MAX
