"""Claims beside turns that wait: which keys a worker gets, and who takes those that are claimed alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from oarlock.broker.values.claims import Batch, Idle, LoadSpec
from tests.broker.broker_cases import (
    DRAIN_MS,
    QUEUE,
    SPECS,
    Case,
    claim,
    claim_one,
    claim_reply,
    crash,
    finish,
    opened,
    state_of,
)

OTHER = "daemonset"


def beside(case: Case, holder: str = "w1", *crowded: str, keys_max: int = 8) -> list[str] | Idle:
    """The keys that a worker with turns under way is given."""
    reply = claim_reply(case, holder, keys_max=keys_max, beside=crowded)
    return [each.key for each in reply.claims] if isinstance(reply, Batch) else reply


def with_lone_key(case: Case, *others: str) -> Case:
    """``a/lone`` killed a worker; behind it are others."""
    opened(case, holders=("w1", "w2", "w3"))
    case.worker.add(QUEUE, ["a/lone"])
    crash(case, "a/lone", 1)
    case.worker.add(QUEUE, others)
    return case


def test_no_more_keys_of_a_crowded_namespace(case: Case) -> None:
    opened(case, holders=("w1", "w2"))
    case.worker.add(QUEUE, ["slow/1", "a/1", "slow/2", "b/1", "slower/1", "a/2"])
    assert beside(case, "w1", "slow", "slower", keys_max=2) == ["a/1", "b/1"]
    assert beside(case, "w1", "slow", "slower") == ["a/2"]
    assert beside(case, "w1", "slow", "slower") is Idle.EMPTY
    assert state_of(case, "slow/1") == "queued"
    assert [each.key for each in claim(case, "w2")] == ["slow/1", "slow/2", "slower/1"], "in their old order"


def test_the_namespace_of_keys_without_one_can_be_crowded(case: Case) -> None:
    opened(case)
    case.worker.add(QUEUE, ["cluster-wide", "a/1"])
    assert beside(case, "w1", "") == ["a/1"]
    assert beside(case, "w1") == ["cluster-wide"]


def flood(case: Case, namespaces: Sequence[str], count: int) -> None:
    for number in range(count):
        case.worker.add(QUEUE, [f"{namespace}/{number:03d}" for namespace in namespaces])


def test_keys_behind_a_flood_of_a_crowded_namespace_are_found(case: Case) -> None:
    """The front is full of its keys; in the backlog each namespace has one key a round."""
    opened(case, holders=("w1", "w2"))
    flood(case, ["slow"], 60)
    case.worker.add(QUEUE, ["a/1", "a/2", "b/1"])
    assert beside(case, "w1", "slow") == ["a/1", "b/1", "a/2"]
    assert beside(case, "w1", "slow") is Idle.EMPTY
    taken = [each.key for _ in range(10) for each in claim(case, "w2")]
    assert taken == [f"slow/{number:03d}" for number in range(60)]


def test_a_namespace_that_is_passed_over_loses_no_round_and_others_gain_none(case: Case) -> None:
    opened(case, holders=("w1", "w2"))
    flood(case, ["slow"], 33)
    flood(case, ["a", "b"], 3)
    assert beside(case, "w1", "slow") == ["a/000", "b/000", "a/001", "b/001", "a/002", "b/002"]
    case.worker.add(QUEUE, ["slow/next", "a/next", "a/last"])
    for _ in range(4):
        claim(case, "w2")
    assert [each.key for each in claim(case, "w2")] == ["slow/032", "slow/next", "a/next", "a/last"]


def test_a_key_that_crashed_a_worker_is_not_claimed_beside_others(case: Case) -> None:
    with_lone_key(case, "b/1")
    assert beside(case, "w1") is Idle.ALONE
    assert state_of(case, "a/lone") == "queued"
    assert state_of(case, "b/1") == "queued", "nothing was taken"


def test_a_worker_that_ends_its_turns_for_it_waits_for_no_token(case: Case) -> None:
    opened(case, holders=("w1",))
    assert claim_reply(case, "w1") is Idle.EMPTY
    assert list(case.state()["waiters"]) == ["w1"]
    case.worker.add(QUEUE, ["a/lone"])
    crash(case, "a/lone", 1)
    assert beside(case, "w1") is Idle.ALONE
    assert "waiters" not in case.state()


def test_one_worker_ends_its_turns_for_it_and_the_others_go_on(case: Case) -> None:
    with_lone_key(case, "b/1", "b/2")
    assert beside(case, "w1") is Idle.ALONE
    assert beside(case, "w2", keys_max=1) == ["b/1"]
    assert beside(case, "w1") is Idle.ALONE, "it is still the one"
    assert beside(case, "w2") == ["b/2"]
    assert beside(case, "w2") is Idle.EMPTY
    (lone,) = claim(case, "w1")
    assert (lone.key, lone.crashes) == ("a/lone", 1)
    assert "lone" not in case.state()
    assert finish(case, lone) == 0


def test_a_worker_that_has_ended_its_turns_for_it_asks_its_queue_first(case: Case) -> None:
    """Without that it would take keys of each other queue before."""
    with_lone_key(case)
    case.worker.register("w4", "s1", [OTHER])
    other = LoadSpec(OTHER, "replicasets")
    case.worker.add(OTHER, ["c/1", "c/2"])
    assert beside(case, "w1") is Idle.ALONE
    assert [each.key for each in claim(case, "w2", specs=(other, *SPECS), keys_max=1)] == ["c/1"]
    assert [each.key for each in claim(case, "w1", specs=(other, *SPECS))] == ["a/lone"]
    assert [each.key for each in claim(case, "w1", specs=(other, *SPECS))] == ["c/2"]


def test_another_worker_ends_its_turns_if_the_first_does_not_come_to_it(case: Case) -> None:
    with_lone_key(case)
    assert beside(case, "w1") is Idle.ALONE
    case.advance(DRAIN_MS - 1)
    assert beside(case, "w2") is Idle.EMPTY
    case.advance(1)
    assert beside(case, "w2") is Idle.ALONE
    assert beside(case, "w1") is Idle.EMPTY


def test_another_worker_ends_its_turns_as_soon_as_the_first_has_died(case: Case) -> None:
    with_lone_key(case)
    assert beside(case, "w1") is Idle.ALONE
    case.worker.release("w1")
    assert beside(case, "w2") is Idle.ALONE


def test_a_clock_that_went_back_keeps_nobody_from_it(case: Case) -> None:
    with_lone_key(case)
    assert beside(case, "w1") is Idle.ALONE
    case.advance(-1_000)
    assert beside(case, "w2") is Idle.ALONE


def test_a_worker_without_turns_takes_it_at_once(case: Case) -> None:
    with_lone_key(case, "b/1")
    assert beside(case, "w1") is Idle.ALONE
    assert claim_one(case, "w3").key == "a/lone"
    assert beside(case, "w1") == ["b/1"]


def test_a_lone_key_in_the_midst_ends_the_batch_before_it(case: Case) -> None:
    with_lone_key(case, "b/1")
    first = claim_one(case, "w1")
    case.worker.add(QUEUE, ["a/lone"])
    assert [each.key for each in claim(case, "w2")] == ["b/1"]
    case.worker.release("w1", blamed=f"{QUEUE}:{first.key}")
    case.advance(1_000)
    case.worker.due()
    assert beside(case, "w2") is Idle.ALONE


def test_a_worker_with_turns_under_way_waits_for_no_token(case: Case) -> None:
    opened(case, holders=("w1", "w2"))
    assert beside(case, "w1") is Idle.EMPTY
    assert "waiters" not in case.state()
    assert claim_reply(case, "w2") is Idle.EMPTY
    assert list(case.state()["waiters"]) == ["w2"]


@pytest.mark.parametrize("scope", ["namespace slow", f"queue {QUEUE}"])
def test_what_is_paused_is_not_claimed_beside_others_either(case: Case, scope: str) -> None:
    opened(case)
    case.worker.add(QUEUE, ["slow/1", "slow/2"])
    case.worker.steer("pause", scope, "by=me")
    assert beside(case, "w1", "slow") is Idle.EMPTY
    assert beside(case) is Idle.EMPTY


def test_a_rate_bounds_what_is_claimed_beside_others(case: Case) -> None:
    opened(case)
    case.worker.add(QUEUE, ["slow/1", "a/1", "a/2", "a/3"])
    case.worker.steer("limit", f"rate {QUEUE}", "rate=2 by=me")
    assert beside(case, "w1", "slow") == ["a/1", "a/2"]
    assert beside(case, "w1", "slow") is Idle.LIMITED


def test_who_asks_beside_its_turns_hears_that_others_wait_for_keys(case: Case) -> None:
    """One of the same queues takes whatever comes next: then there is no hurry to ask again."""
    opened(case, holders=("w1", "w2", "w3"))
    assert beside(case, "w1") is Idle.EMPTY
    assert claim_reply(case, "w2") is Idle.EMPTY
    assert beside(case, "w1") is Idle.SERVED
    assert beside(case, "w1") is Idle.SERVED, "whoever asks beside its turns does not count as waiting"
    assert claim_reply(case, "w3") is Idle.EMPTY, "nor is it said to whoever is to wait"
    case.worker.add(QUEUE, ["a/1", "a/2"])
    assert len(claim(case, "w2")) == 2
    assert beside(case, "w1") is Idle.SERVED
    case.worker.release("w3")
    assert beside(case, "w1") is Idle.EMPTY


def test_a_worker_that_leaves_or_has_other_queues_or_has_waited_for_long_serves_nobody(case: Case) -> None:
    opened(case, holders=("w1", "w2"))
    case.worker.register("other", "s", [OTHER])
    assert claim_reply(case, "other", specs=[LoadSpec(OTHER, "daemonsets")]) is Idle.EMPTY
    assert beside(case, "w1") is Idle.EMPTY
    case.advance(2_000)
    assert claim_reply(case, "w2") is Idle.EMPTY
    assert beside(case, "w1") is Idle.SERVED
    case.worker.drain("drain", "w2", "by=me")
    assert beside(case, "w1") is Idle.EMPTY
    case.advance(2_000)
    assert beside(case, "w1") is Idle.EMPTY
