"""Drains: a worker takes no more keys and leaves, a supervisor begins no others; and acts that are handed over once."""

from __future__ import annotations

import pytest

from oarlock.broker.values.claims import Batch, Idle
from oarlock.broker.values.turns import Finish, Verdict
from tests.broker import broker_state
from tests.broker.broker_cases import QUEUE, Case, claim_one, claim_reply, opened


def filled(case: Case) -> Case:
    """Two supervisors, the first with two workers, and a queued key."""
    opened(case, holders=())
    for holder, supervisor in (("w1", "s1"), ("w2", "s1"), ("w3", "s2")):
        assert case.worker.register(holder, supervisor, [QUEUE]) is True
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    return case


def test_a_drained_worker_may_end_its_turns_and_begins_no_others(queue_case: Case) -> None:
    case = filled(queue_case)
    one = claim_one(case, "w1")
    assert case.worker.drain("drain", "w1", "by=me") == ["w1"]
    assert claim_reply(case, "w1") is Idle.DRAIN
    assert case.worker.finish([Finish(QUEUE, one.key, one.nonce, Verdict.OK)]) == [0]
    assert isinstance(claim_reply(case, "w2"), Batch)
    assert broker_state.problems(case.state()) == []


def test_another_may_take_its_place(queue_case: Case) -> None:
    case = filled(queue_case)
    case.worker.drain("drain", "w1", "by=me")
    assert case.worker.release("w1") == []
    assert case.worker.register("w4", "s1", [QUEUE]) is True
    assert isinstance(claim_reply(case, "w4"), Batch)


def test_a_worker_that_dies_before_it_leaves_loses_no_key(queue_case: Case) -> None:
    case = filled(queue_case)
    one = claim_one(case, "w1")
    case.worker.drain("drain", "w1", "by=me")
    assert case.worker.release("w1") == [f"{QUEUE}:{one.key}"]
    assert broker_state.problems(case.state()) == []


def test_a_drained_supervisor_begins_no_worker_until_it_is_undrained(queue_case: Case) -> None:
    case = filled(queue_case)
    assert case.worker.drain("drain", "s1", "by=me") == ["w1", "w2"]
    assert [claim_reply(case, each) for each in ("w1", "w2")] == [Idle.DRAIN, Idle.DRAIN]
    case.worker.release("w1")
    case.worker.release("w2")
    assert case.worker.register("w4", "s1", [QUEUE]) is False
    assert claim_reply(case, "w4") is Idle.UNKNOWN
    assert case.worker.drain("undrain", "s1", "by=me") == []
    assert case.worker.register("w4", "s1", [QUEUE]) is True
    assert case.state()["audit"] == ["drain s1: by=me", "undrain s1: by=me"]


def test_a_drain_that_is_asked_for_twice_is_one(queue_case: Case) -> None:
    case = filled(queue_case)
    for _ in range(2):
        assert case.worker.drain("drain", "s1", "by=me") == ["w1", "w2"]
    assert case.state()["holders"]["w1"].count("drain") == 1
    case.worker.release("w1")
    case.worker.release("w2")
    assert case.worker.drain("drain", "s1", "by=me") == [], "it is known though it has no worker"


def test_a_worker_leaves_though_the_fleet_is_paused(queue_case: Case) -> None:
    case = filled(queue_case)
    case.worker.steer("pause", "all", "by=me")
    case.worker.drain("drain", "w1", "by=me")
    assert (claim_reply(case, "w1"), claim_reply(case, "w2")) == (Idle.DRAIN, Idle.WAIT)
    case.ingestor.pause("somebody else is at work")
    assert (claim_reply(case, "w1"), claim_reply(case, "w2")) == (Idle.DRAIN, Idle.WAIT)


@pytest.mark.parametrize("act", ["drain", "undrain"])
def test_nobody_of_that_name(act: str, queue_case: Case) -> None:
    case = filled(queue_case)
    assert case.worker.drain(act, "w9", "by=me") is None
    assert "audit" not in case.state()


def test_a_supervisor_that_does_not_ask_for_a_day_is_forgotten(queue_case: Case) -> None:
    case = filled(queue_case)
    case.worker.drain("drain", "s1", "by=me")
    case.advance(80_000_000)
    assert case.worker.register("w4", "s1", [QUEUE]) is False
    case.advance(80_000_000)
    case.worker.drain("drain", "s2", "by=me")
    assert sorted(case.state()["drains"]) == ["s1", "s2"]
    case.advance(86_400_000)
    case.worker.drain("drain", "s2", "by=me")
    assert sorted(case.state()["drains"]) == ["s2"]


def test_each_act_is_handed_over_once_and_in_order(queue_case: Case) -> None:
    case = filled(queue_case)
    assert case.worker.acts() == []
    for n in range(3):
        case.worker.steer("note", f"requeue {n}", "by=me")
    assert case.worker.acts(2) == ["requeue 0: by=me", "requeue 1: by=me"]
    case.worker.drain("drain", "w1", "by=me")
    assert case.worker.acts(2) == ["requeue 2: by=me", "drain w1: by=me"]
    assert case.worker.acts(2) == []


def test_acts_beyond_what_the_stream_keeps_are_not_told(queue_case: Case) -> None:
    case = opened(queue_case)
    for n in range(1_002):
        case.worker.steer("note", f"requeue {n}", "by=me")
    assert case.worker.acts(1) == ["requeue 2: by=me"]
