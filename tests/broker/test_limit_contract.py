"""Limits of namespaces: so many turns a second begin for their keys, and nobody else waits for those that may not."""

from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.broker.pauses import note
from oarlock.broker.values.claims import Batch, LoadSpec
from oarlock.broker.values.errors import EpochOver
from tests.broker import broker_state
from tests.broker.broker_cases import (
    QUEUE,
    SPECS,
    Case,
    MemoryCase,
    RedisCase,
    claim,
    claim_reply,
    crash,
    finish,
    opened,
    state_of,
)

OTHER = "daemonset"
BOTH = (SPECS[0], LoadSpec(OTHER, "replicasets"))


def limit(case: Case, rate: str, namespace: str = "shop") -> None:
    act = "resume" if rate == "none" else "limit"
    assert case.worker.steer(act, f"rate namespace {namespace}", note("me", f"rate={rate} why")) is not None


def full(case: Case, keys: int = 40, namespace: str = "shop") -> Case:
    """So many keys are queued."""
    opened(case, holders=())
    for holder in ("w1", "w2"):
        case.worker.register(holder, "supervisor", [QUEUE, OTHER])
    case.worker.add(QUEUE, [f"{namespace}/{number:03}" for number in range(keys)])
    return case


def began(case: Case, holder: str = "w1", **limits: int) -> list[str]:
    """The keys whose turns begin now; they end at once."""
    found: list[str] = []
    while isinstance(reply := claim_reply(case, holder, specs=BOTH, **limits), Batch):
        for one in reply.claims:
            finish(case, one)
        found += [one.key for one in reply.claims]
    return found


def passes(case: Case, ms: int, step_ms: int = 20) -> list[str]:
    """Time passes with a supervisor and a worker at work. Returns the keys whose turns began."""
    found = []
    for _ in range(0, ms, step_ms):
        case.advance(step_ms)
        case.worker.due()
        found += began(case)
    assert broker_state.problems(case.state()) == []
    return found


def test_a_flood_begins_at_the_limit_s_pace_in_its_order(queue_case: Case) -> None:
    """Whatever is queued already."""
    case = full(queue_case)
    limit(case, "10")
    first = began(case)
    seconds = [passes(case, 1_000) for _ in range(3)]
    assert len(first) == 1
    assert [len(each) for each in seconds] == [10, 10, 10]
    assert [*first, *chain(*seconds)] == [f"shop/{number:03}" for number in range(31)]


def test_nobody_else_waits(queue_case: Case) -> None:
    case = full(queue_case, keys=100)
    limit(case, "1")
    case.worker.add(QUEUE, ["bank/a", "c"])
    case.worker.add(OTHER, ["bank/b"])
    assert sorted(began(case)) == ["bank/a", "bank/b", "c", "shop/000"]


def test_all_controllers_and_workers_share_it(queue_case: Case) -> None:
    case = full(queue_case, keys=3)
    case.worker.add(OTHER, ["shop/d", "shop/e"])
    limit(case, "2")
    assert began(case, "w1") == ["shop/000"]
    assert began(case, "w2") == []
    assert sorted(passes(case, 2_000)) == ["shop/001", "shop/002", "shop/d", "shop/e"]


def test_a_namespace_that_was_idle_has_no_burst(queue_case: Case) -> None:
    case = full(queue_case, keys=0)
    limit(case, "5")
    case.advance(3_600_000)
    case.worker.add(QUEUE, [f"shop/{number:03}" for number in range(20)])
    assert len(began(case)) == 1
    assert len(passes(case, 1_000)) == 5


def test_keys_that_come_one_by_one_keep_the_pace(queue_case: Case) -> None:
    """Though none waits when the next one comes."""
    case = full(queue_case, keys=0)
    limit(case, "5")
    times = []
    for number in range(60):
        case.worker.add(QUEUE, [f"shop/{number:03}"])
        times += [case.now_ms()] * len(passes(case, 60))
    assert [len([at for at in times if 0 < at - times[0] - second <= 1_000]) for second in (0, 1_000, 2_000)] == [
        5,
        5,
        5,
    ]


def test_a_key_that_is_asked_for_again_keeps_its_place(queue_case: Case) -> None:
    case = full(queue_case, keys=4)
    limit(case, "1")
    assert began(case) == ["shop/000"]
    case.worker.add(QUEUE, ["shop/003", "shop/002", "shop/000"])
    assert state_of(case, "shop/002") == "held"
    assert passes(case, 4_000) == ["shop/001", "shop/002", "shop/003", "shop/000"]


def test_workers_that_stood_still_do_not_begin_all_at_once(queue_case: Case) -> None:
    """The line goes on meanwhile. Those that may not begin go back to their places."""
    case = full(queue_case, keys=60)
    limit(case, "4")
    assert began(case) == ["shop/000"]
    for _ in range(20):
        case.advance(500)
        case.worker.due()
    assert broker_state.problems(case.state()) == []
    assert began(case) == [f"shop/{number:03}" for number in range(1, 5)]
    assert state_of(case, "shop/005") == "held"
    assert passes(case, 4_000) == [f"shop/{number:03}" for number in range(5, 21)]


def test_the_line_does_not_catch_up_after_a_standstill(queue_case: Case) -> None:
    """Nor where there was no supervisor."""
    case = full(queue_case)
    limit(case, "10")
    began(case)
    case.advance(60_000)
    case.worker.due()
    assert len(began(case)) == 3
    assert len(passes(case, 1_000)) == 10


@pytest.mark.parametrize("again", ["none", "1000", "x"])
def test_a_limit_that_is_taken_back_lets_all_go(queue_case: Case, again: str) -> None:
    case = full(queue_case, keys=600)
    limit(case, "0.001")
    assert began(case) == ["shop/000"]
    case.worker.add(QUEUE, ["shop/000"])
    assert began(case) == []
    limit(case, again)
    assert len(passes(case, 1_000)) == 600
    state = case.state()
    assert [each for each in ("held_back", "lines") if each in state] == []


def test_another_pace_counts_at_once(queue_case: Case) -> None:
    case = full(queue_case, keys=30)
    limit(case, "0.001")
    began(case)
    limit(case, "10")
    assert len(passes(case, 1_000)) == 10


def test_a_limit_with_an_end_ends(queue_case: Case) -> None:
    """As any scope may have one."""
    case = full(queue_case, keys=5)
    assert case.worker.steer("limit", "rate namespace shop", "by=me rate=0.001", for_ms=1_000)
    assert began(case) == ["shop/000"]
    assert len(passes(case, 1_100)) == 4
    assert "lines" not in case.state()


def test_a_pause_and_a_limit_over_the_same_keys(queue_case: Case) -> None:
    case = full(queue_case, keys=4)
    limit(case, "1")
    began(case)
    case.worker.steer("pause", "key replicaset:shop/001", note("me", ""))
    assert passes(case, 4_000) == ["shop/002", "shop/003"]
    case.worker.steer("resume", "key replicaset:shop/001", note("me", ""))
    assert passes(case, 1_000) == ["shop/001"]


def test_the_end_of_a_pause_lets_nobody_out_of_the_line(queue_case: Case) -> None:
    case = full(queue_case, keys=5)
    limit(case, "1")
    began(case)
    case.worker.steer("pause", "namespace shop", note("me", ""))
    case.worker.steer("resume", "namespace shop", note("me", ""))
    case.worker.due()
    assert state_of(case, "shop/001") == "held"
    assert passes(case, 2_000) == ["shop/001", "shop/002"]


def test_a_controller_that_is_paused_stops_no_other(queue_case: Case) -> None:
    """Its keys that have left the line stay in their queue, and those of others pass them."""
    case = full(queue_case, keys=6)
    case.worker.add(OTHER, [f"shop/d{number}" for number in range(6)])
    limit(case, "2")
    began(case)
    case.worker.steer("pause", f"queue {QUEUE}", note("me", ""))
    assert [key for key in passes(case, 6_000) if key.startswith("shop/d")] == [f"shop/d{n}" for n in range(6)]


def test_a_turn_that_is_lost_is_counted_again(queue_case: Case) -> None:
    case = full(queue_case, keys=1)
    limit(case, "1")
    crash(case, "shop/000", 1)
    assert began(case) == []
    assert state_of(case, "shop/000") == "held"
    assert passes(case, 1_000) == ["shop/000"]


def test_a_key_that_a_claim_leaves_behind_begins_with_the_next(queue_case: Case) -> None:
    case = full(queue_case, keys=3)
    limit(case, "1000")
    assert [one.key for one in claim(case)] == ["shop/000"]
    case.advance(20)
    case.worker.due()
    assert sorted(began(case, bytes_max=1)) == ["shop/001", "shop/002"]


def test_a_clock_that_goes_back_starves_nobody(queue_case: Case) -> None:
    case = full(queue_case)
    limit(case, "5")
    began(case)
    case.jump(-3_600_000)
    assert 4 <= len(passes(case, 1_000)) <= 6


def test_a_supervisor_that_sleeps_is_told_of_the_first_in_line(queue_case: Case) -> None:
    case = full(queue_case, keys=3)
    limit(case, "0.5")
    case.worker.wait_timer()
    assert case.worker.due()[1] is None
    began(case)
    assert case.worker.wait_timer()
    assert case.worker.due()[1] == 2_000
    case.advance(2_000)
    assert case.worker.due() == (1, 2_000), "and of each of the others"
    case.advance(2_000)
    assert case.worker.due() == (1, None)


def test_without_a_limit_nothing_is_kept(queue_case: Case) -> None:
    case = full(queue_case)
    limit(case, "5", namespace="bank")
    assert len(began(case)) == 40
    assert [each for each in ("limits", "lines") if each in case.state()] == []


@pytest.mark.parametrize("name", ["limits", "limited:shop"])
def test_a_key_of_a_wrong_type_loses_no_key(real: RedisCase, name: str) -> None:
    case = full(real)
    limit(case, "5")
    planted = f"oarlock:{case.epoch}:{{0}}:{name}"
    real.admin.set(planted, "planted")
    with pytest.raises(EpochOver):
        claim_reply(case, specs=BOTH)
    real.admin.delete(planted)
    assert broker_state.problems(case.state()) == []
    assert len(broker_state.queued(case.state(), QUEUE)) == 40


@settings(max_examples=120, deadline=None)
@given(
    rate=st.sampled_from(("0.7", "3", "12.5", "90")),
    steps=st.lists(
        st.tuples(
            st.sampled_from(("claim", "claim", "claim", "due", "due", "add", "pause", "resume", "standstill")),
            st.sampled_from((1, 20, 90, 400)),
        ),
        min_size=5,
        max_size=60,
    ),
)
def test_no_stretch_of_time_brings_more_than_the_limit_and_a_second_s_worth(
    rate: str, steps: list[tuple[str, int]]
) -> None:
    """Whoever stands still, and whatever is paused meanwhile. No key is lost, and with workers at work none starves."""
    case, took = full(MemoryCase(), keys=300), list[tuple[int, int]]()
    limit(case, rate)
    for step, ms in steps:
        case.advance(ms)
        if step == "claim":
            took.append((case.now_ms(), len(began(case))))
        elif step == "due":
            case.worker.due()
        elif step == "add":
            case.worker.add(OTHER, ["shop/late", f"shop/late-{ms}"])
        elif step == "standstill":
            for _ in range(40):
                case.advance(50)
                case.worker.due()
        else:
            case.worker.steer(step, "namespace shop", note("me", ""))
        assert broker_state.problems(case.state()) == []
    per_s = float(rate)
    for first, last in combinations(range(len(took)), 2):
        span_s = (took[last][0] - took[first][0]) / 1_000
        assert sum(each for _, each in took[first : last + 1]) <= max(1.0, per_s) + per_s * span_s + 0.01
    case.worker.steer("resume", "namespace shop", note("me", ""))
    assert len(passes(case, int(2_000 / per_s) + 1_000)) >= 2
    limit(case, "none")
    passes(case, 1_000)
    assert case.state().get("state", {}) == {}
