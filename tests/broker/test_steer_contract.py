"""Pauses that people ask for: no turn of what they are over begins, and no key is lost by one."""

from __future__ import annotations

import pytest

from oarlock.broker.pauses import Pause, digest, note, packed, unpacked
from oarlock.broker.values.claims import Batch, Idle, LoadSpec
from oarlock.broker.values.turns import Finish, Verdict
from tests.broker import broker_state
from tests.broker.broker_cases import QUEUE, SPECS, START_MS, Case, claim, claim_one, claim_reply, opened, state_of

OTHER = "daemonset"
BOTH = (SPECS[0], LoadSpec(OTHER, "replicasets"))


def filled(case: Case) -> Case:
    """Keys of two queues and two namespaces, and one without a namespace."""
    opened(case, holders=())
    for holder in ("w1", "w2"):
        case.worker.register(holder, "supervisor", [QUEUE, OTHER])
    case.worker.add(QUEUE, ["shop/a", "bank/b", "c"])
    case.worker.add(OTHER, ["shop/d"])
    return case


def pause(case: Case, scope: str, reason: str = "why") -> None:
    assert case.worker.steer("pause", scope, note("me", reason)) is True


def resume(case: Case, scope: str) -> None:
    assert case.worker.steer("resume", scope, note("me", "")) is True
    while case.state().get("resuming"):
        case.worker.due()


def taken(case: Case, holder: str = "w1") -> set[str]:
    """All that can be claimed now, of both queues."""
    found: set[str] = set()
    while isinstance(reply := claim_reply(case, holder, specs=BOTH), Batch):
        found |= {f"{each.queue}:{each.key}" for each in reply.claims}
    return found


EVERYTHING = {f"{QUEUE}:shop/a", f"{QUEUE}:bank/b", f"{QUEUE}:c", f"{OTHER}:shop/d"}


@pytest.mark.parametrize(
    ("scope", "stopped"),
    [
        ("all", EVERYTHING),
        (f"queue {QUEUE}", {f"{QUEUE}:shop/a", f"{QUEUE}:bank/b", f"{QUEUE}:c"}),
        ("namespace shop", {f"{QUEUE}:shop/a", f"{OTHER}:shop/d"}),
        ("namespace ", {f"{QUEUE}:c"}),
        (f"key {QUEUE}:shop/a", {f"{QUEUE}:shop/a"}),
        (f"key {QUEUE}:shop/d", set()),
        ("namespace sho", set()),
    ],
)
def test_what_a_pause_is_over_waits_until_it_ends(scope: str, stopped: set[str], queue_case: Case) -> None:
    case = filled(queue_case)
    pause(case, scope)
    assert taken(case) == EVERYTHING - stopped
    assert broker_state.problems(case.state()) == []
    resume(case, scope)
    assert taken(case, "w2") == stopped
    assert broker_state.problems(case.state()) == []


def test_a_key_that_is_held_stays_so_whatever_asks_for_it(queue_case: Case) -> None:
    case = filled(queue_case)
    pause(case, "namespace shop")
    taken(case)
    assert state_of(case, "shop/a") == "held"
    case.worker.add(QUEUE, ["shop/a"], unpark=True)
    case.worker.add_after(QUEUE, "shop/a", 10)
    case.advance(10)
    case.worker.due()
    assert (state_of(case, "shop/a"), taken(case, "w2")) == ("held", set())


def test_a_turn_under_way_ends_and_the_next_does_not_begin(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["shop/a"])
    one = claim_one(case)
    pause(case, "namespace shop")
    case.worker.add(QUEUE, ["shop/a"])
    assert case.worker.finish([Finish(QUEUE, "shop/a", one.nonce, Verdict.OK)]) == [0]
    assert claim(case) == []
    assert state_of(case, "shop/a") == "held"


def test_a_key_whose_worker_died_is_held_too(queue_case: Case) -> None:
    case = filled(queue_case)
    claim(case, "w1")
    pause(case, "namespace shop")
    case.worker.release("w1", blamed=f"{QUEUE}:shop/a")
    assert f"{QUEUE}:shop/a" not in taken(case, "w2")
    assert state_of(case, "shop/a") == "held"


def test_of_two_pauses_both_have_to_end(queue_case: Case) -> None:
    case = filled(queue_case)
    pause(case, "namespace shop")
    pause(case, f"key {QUEUE}:shop/a")
    taken(case)
    resume(case, "namespace shop")
    assert taken(case, "w2") == {f"{OTHER}:shop/d"}
    resume(case, f"key {QUEUE}:shop/a")
    assert taken(case, "w2") == {f"{QUEUE}:shop/a"}


def test_a_pause_that_is_over_before_any_claim_leaves_the_order(queue_case: Case) -> None:
    case = filled(queue_case)
    pause(case, "all")
    resume(case, "all")
    assert [each.key for each in claim(case)] == ["shop/a", "bank/b", "c"]


def test_the_keys_behind_those_that_are_held_are_reached(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, [f"shop/{i:03}" for i in range(60)])
    case.worker.add(QUEUE, ["bank/b"])
    pause(case, "namespace shop")
    assert [each.key for each in claim(case)] == ["bank/b"]


@pytest.mark.real
def test_a_claim_takes_out_five_hundred_and_lets_the_next_go_on(real: Case) -> None:
    case = opened(real)
    case.worker.add(QUEUE, [f"shop/{i:04}" for i in range(1_203)])
    pause(case, "namespace shop")
    assert [claim_reply(case), claim_reply(case)] == [Idle.EMPTY, Idle.EMPTY]
    assert len(broker_state.queued(case.state(), QUEUE)) == 1_203 - 2 * 504
    assert case.worker.wait([QUEUE], 0.1), "the next claim is asked for at once"
    case.worker.add(QUEUE, ["bank/b"])
    assert isinstance(claim_reply(case), Batch)
    resume(case, "namespace shop")
    assert len(broker_state.queued(case.state(), QUEUE)) == 1_203
    assert broker_state.problems(case.state()) == []


def test_why_it_is_queued_is_kept(queue_case: Case) -> None:
    case = filled(queue_case)
    pause(case, "namespace shop")
    taken(case)
    case.advance(1_000)
    resume(case, "namespace shop")
    assert case.state()["why"][QUEUE]["shop/a"] == f"{START_MS} 2 asked, resumed"


def test_what_is_changed_is_told_and_kept_for_people(queue_case: Case) -> None:
    case = opened(queue_case)
    pause(case, "namespace shop", "quota")
    assert case.worker.steer("pause", "namespace shop", note("you", "again")) is False
    assert case.state()["pauses"] == {"namespace shop": f"since_ms={START_MS} by=you again"}
    assert case.worker.steer("resume", "namespace bank", note("me", "")) is False
    resume(case, "namespace shop")
    assert case.state()["audit"] == [
        "pause namespace shop: by=me quota",
        "pause namespace shop: by=you again",
        "resume namespace bank: by=me",
        "resume namespace shop: by=me",
    ]


def test_a_hundred_scopes_may_be_paused(queue_case: Case) -> None:
    case = opened(queue_case)
    for n in range(100):
        pause(case, f"namespace n{n}")
    assert case.worker.steer("pause", "all", "by=me") is None
    assert case.worker.steer("pause", "namespace n0", "by=me") is False


def test_a_pause_is_restored_as_it_was_stored(queue_case: Case) -> None:
    case = opened(queue_case)
    stored = {"all": "since_ms=5 by=me it burns"}
    for scope, text in unpacked(packed(stored)).items():
        assert case.worker.steer("restore", scope, text) is True
    assert (case.state()["pauses"], "audit" in case.state()) == (stored, False)
    case.worker.steer("kept", digest(stored), "")
    assert case.state()["pauses_kept"] == digest(stored)


def test_the_pauses_are_read_with_what_the_lease_has_of_them(case: Case) -> None:
    opened(case)
    assert case.worker.pauses() == ({}, "")
    case.worker.steer("restore", "all", "since_ms=5 by=me")
    case.worker.steer("kept", digest({}), "")
    assert case.worker.pauses() == ({"all": "since_ms=5 by=me"}, digest({}))


@pytest.mark.parametrize(
    ("text", "pause_"),
    [
        ("since_ms=5 by=me it burns", Pause("all", 5, "me", "it burns")),
        ("since_ms=5 by=me", Pause("all", 5, "me", "")),
        ("since_ms=5 it burns", Pause("all", 5, "", "it burns")),
        ("it burns", Pause("all", 0, "", "it burns")),
        (f"since_ms={'9' * 5_000} ", Pause("all", 0, "", f"since_ms={'9' * 5_000} ")),
    ],
)
def test_a_pause_as_it_is_stored(text: str, pause_: Pause) -> None:
    assert Pause.parse("all", text) == pause_


@pytest.mark.parametrize("text", ["", "{", "[]", '{"all":5}', "null"])
def test_what_is_no_packed_pauses_is_none(text: str) -> None:
    assert unpacked(text) == {}


def test_a_note_is_a_line() -> None:
    assert note("a b", "x\ny  z") == "by=a-b x y z"
    assert note("", "") == "by=unknown"


@pytest.mark.parametrize(("declared", "taken_"), [(0.0, 2), (50.0, 2), (1.0, 2)])
def test_a_rate_that_people_set_holds_instead_of_the_declared_one(
    declared: float, taken_: int, queue_case: Case
) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, [f"shop/{i}" for i in range(9)])
    spec = SPECS[0]._replace(rate_per_s=declared)
    case.worker.steer("limit", f"rate {QUEUE}", "by=me rate=2 the server is slow")
    assert len(claim(case, specs=(spec,))) == taken_
    assert claim_reply(case, specs=(spec,)) is Idle.LIMITED
    case.worker.steer("resume", f"rate {QUEUE}", "by=me")
    assert len(claim(case, specs=(SPECS[0],))) == 7


@pytest.mark.parametrize("rate", ["x", "0", "-1", ""])
def test_what_is_no_rate_bounds_nothing(rate: str, queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["shop/a", "shop/b"])
    case.worker.steer("limit", f"rate {QUEUE}", f"by=me rate={rate} why")
    assert len(claim(case)) == 2


def test_a_rate_is_no_pause() -> None:
    limit = Pause.parse("rate daemonset", "since_ms=5 by=me rate=2.5 slow")
    assert (limit.rate_per_s, limit.covers("daemonset", "ns/a")) == (2.5, False)
    assert Pause.parse("namespace x", "since_ms=5 by=me rate=2.5").rate_per_s is None


def test_a_pause_with_an_end_ends_by_itself(queue_case: Case) -> None:
    case = filled(queue_case)
    assert case.worker.steer("pause", f"key {QUEUE}:shop/a", note("me", "crashes"), for_ms=5_000) is True
    assert case.state()["pauses"] == {
        f"key {QUEUE}:shop/a": f"since_ms={START_MS} until_ms={START_MS + 5_000} by=me crashes"
    }
    assert f"{QUEUE}:shop/a" not in taken(case)
    assert case.worker.due() == (0, 5_000), "who asks what is due next hears of the end"
    case.advance(4_999)
    assert (case.worker.due(), taken(case, "w2")) == ((0, 1), set())
    case.advance(1)
    while case.worker.due()[1] is not None:
        pass
    assert taken(case, "w2") == {f"{QUEUE}:shop/a"}
    assert "pauses" not in case.state()
    assert case.state()["audit"][-1] == f"resume key {QUEUE}:shop/a: by=oarlock its time is over"
    assert broker_state.problems(case.state()) == []


def test_only_the_pause_whose_time_is_over_ends(queue_case: Case) -> None:
    case = filled(queue_case)
    pause(case, "namespace shop")
    for for_ms, key in ((10, "shop/a"), (20, "bank/b")):
        case.worker.steer("pause", f"key {QUEUE}:{key}", "by=me", for_ms=for_ms)
    taken(case)
    case.advance(10)
    case.worker.due()
    assert list(case.state()["pauses"]) == ["namespace shop", f"key {QUEUE}:bank/b"]
    assert taken(case, "w2") == set()
    case.advance(10)
    case.worker.due()
    assert taken(case, "w2") == {f"{QUEUE}:bank/b"}


def test_a_reason_is_no_end(queue_case: Case) -> None:
    case = filled(queue_case)
    pause(case, "namespace shop", f"since_ms=1 until_ms={START_MS} by=x")
    case.advance(10)
    case.worker.due()
    assert list(case.state()["pauses"]) == ["namespace shop"]


def test_who_sleeps_until_the_next_is_due_does_not_while_keys_come_back(queue_case: Case) -> None:
    """More of them than a call takes: the next call is due at once."""
    case = opened(queue_case)
    case.worker.add(QUEUE, [f"shop/{number}" for number in range(600)])
    case.worker.steer("pause", "namespace shop", "by=me")
    for _ in range(3):
        assert claim(case) == []
    case.worker.steer("resume", "namespace shop", "by=me")
    calls = 0
    while (due_ms := case.worker.due(50)[1]) is not None:
        assert due_ms == 0
        calls += 1
    assert "held" not in case.state()
    assert calls > 0 or case.name in ("memory", "threads"), "a call of the twin takes all"


def test_a_pause_that_is_restored_ends_when_it_would_have(queue_case: Case) -> None:
    case = filled(queue_case)
    case.worker.steer("restore", "all", f"since_ms=5 until_ms={START_MS} by=me it burns")
    case.worker.due()
    assert taken(case) == EVERYTHING


def test_the_end_of_a_pause_wakes_who_waits_for_what_is_due(queue_case: Case) -> None:
    case = opened(queue_case)
    assert not case.worker.wait_timer(timeout_s=0.01)
    case.worker.steer("pause", "all", "by=me", for_ms=50)
    assert case.worker.wait_timer(timeout_s=0.1)


@pytest.mark.parametrize(
    ("text", "parked", "until_ms"),
    [
        ("since_ms=5 until_ms=9 by=me why", "replicaset:shop/a", 9),
        ("since_ms=5 by=me until_ms=9 why", "", None),
        ("since_ms=5 by=me why", "", None),
    ],
)
def test_a_key_is_parked_where_its_pause_has_an_end(text: str, parked: str, until_ms: int | None) -> None:
    found = Pause.parse("key replicaset:shop/a", text)
    assert (found.parked, found.until_ms, found.by) == (parked, until_ms, "me")
    assert Pause.parse("namespace shop", text).parked == ""
