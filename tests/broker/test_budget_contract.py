"""The API budget: what workers are lent of it, over the twin and every server."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.broker.budget import EVENTS, NO_LANES, BudgetLimits, BudgetView, LaneView, Lent, Report, Share
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.memory.budget import fill
from tests.broker.broker_cases import LEASE_MS, QUEUE, Case, MemoryCase, RedisCase

MOST = 100_000
LIMITS = BudgetLimits(MOST, 10_000)
ALL = 1_000_000


def hungry(holder: str, **lanes: int) -> Report:
    return Report(holder, wants=lanes or {QUEUE: ALL})


def begun(case: Case, *holders: str) -> Case:
    for holder in holders:
        case.worker.register(holder, "s", [QUEUE])
    return case


def lend(case: Case, *reports: Report, limits: BudgetLimits = LIMITS) -> Lent:
    return case.worker.budget(limits, reports, lease_ms=LEASE_MS)


def rates(lent: Lent) -> dict[str, int]:
    """Of each worker, all that it may use."""
    return {each.holder: each.spare + sum(each.rates.values()) for each in lent.shares}


def test_a_worker_alone_has_all_of_it(queue_case: Case) -> None:
    case = begun(queue_case, "w1")
    assert lend(case, hungry("w1")) == Lent(MOST, 0, [Share("w1", 4_000, 0, {QUEUE: 96_000})])


def test_workers_that_want_nothing_share_what_is_left(queue_case: Case) -> None:
    case = begun(queue_case, "w1", "w2")
    assert rates(lend(case, Report("w1"), Report("w2"))) == {"w1": 50_000, "w2": 50_000}


def test_what_others_hold_is_not_lent_twice(queue_case: Case) -> None:
    """Another supervisor's worker comes: it gets its part when the first has reported again and so given its own up."""
    case = begun(queue_case, "w1", "w2")
    assert rates(lend(case, hungry("w1"))) == {"w1": 100_000}
    assert rates(lend(case, hungry("w2"))) == {"w2": 0}
    assert rates(lend(case, hungry("w1"))) == {"w1": 50_000}
    assert rates(lend(case, hungry("w2"))) == {"w2": 50_000}


def test_who_wants_less_leaves_the_rest_to_others(queue_case: Case) -> None:
    case = begun(queue_case, "w1", "w2", "w3")
    lent = lend(case, hungry("w1", replicaset=6_000), hungry("w2"), hungry("w3"))
    assert {each.holder: each.rates[QUEUE] for each in lent.shares} == {"w1": 6_000, "w2": 45_000, "w3": 45_000}


def test_no_controller_takes_all_of_it(queue_case: Case) -> None:
    """Nine workers are busy with one controller, one with another: each controller gets half."""
    case = begun(queue_case, *(f"w{i}" for i in range(10)))
    reports = [hungry(f"w{i}") for i in range(9)]
    lent = lend(case, *reports, hungry("w9", deployment=ALL))
    assert lent.shares[9].rates == {"deployment": 48_000}
    assert sum(each.rates[QUEUE] for each in lent.shares[:9]) == pytest.approx(48_000, abs=9)
    alone = lend(case, *reports, Report("w9"))
    assert sum(each.rates[QUEUE] for each in alone.shares[:9]) == pytest.approx(96_000, abs=9), "none is left over"


def test_events_have_a_tenth_at_most(queue_case: Case) -> None:
    case = begun(queue_case, "w1")
    [share] = lend(case, hungry("w1", **{QUEUE: ALL, EVENTS: ALL})).shares
    assert share.rates == {QUEUE: 86_000, EVENTS: 10_000}


def test_a_released_worker_s_share_comes_back_at_once_and_a_silent_one_s_after_its_lease(queue_case: Case) -> None:
    case = begun(queue_case, "w1", "w2", "w3")
    lend(case, hungry("w1"), hungry("w2"), hungry("w3"))
    case.worker.release("w3")
    assert sum(rates(lend(case, hungry("w1"))).values()) == 50_000
    assert sum(rates(lend(case, hungry("w1"))).values()) == 50_000, "w2 may still be at work"
    case.advance(LEASE_MS)
    assert rates(lend(case, hungry("w1"))) == {"w1": 100_000}


def test_who_is_not_registered_gets_nothing(queue_case: Case) -> None:
    case = begun(queue_case, "w1")
    assert rates(lend(case, hungry("nobody"), hungry("w1"))) == {"w1": 100_000}


def test_a_clock_that_goes_back_keeps_no_share_for_longer_than_a_lease(queue_case: Case) -> None:
    case = begun(queue_case, "w1", "w2")
    lend(case, hungry("w1"), hungry("w2"))
    case.jump(-3_600_000)
    lend(case, hungry("w1"))
    case.advance(LEASE_MS)
    assert rates(lend(case, hungry("w1"))) == {"w1": 100_000}


def test_a_429_cuts_the_rate_once_a_second_and_all_wait_as_told(queue_case: Case) -> None:
    case = begun(queue_case, "w1", "w2")
    lend(case, Report("w1"), Report("w2"))
    refused = Report("w1", refused=3, wait_ms=2_500, wants={QUEUE: ALL})
    assert lend(case, refused)[:2] == (70_000, 2_500)
    assert lend(case, refused).rate == 70_000, "the same second"
    case.advance(1_000)
    assert lend(case, Report("w2"))[:2] == (70_000, 1_500)
    for _ in range(20):
        case.advance(1_000)
        lend(case, Report("w1", refused=1), Report("w2"))
    assert lend(case, Report("w2")).rate == LIMITS.least


def test_the_rate_rises_step_by_step_to_what_is_allowed(queue_case: Case) -> None:
    case = begun(queue_case, "w1")
    lend(case, Report("w1", refused=1))
    found = []
    for _ in range(8):
        case.advance(1_000)
        found.append(lend(case, Report("w1")).rate)
    assert found == [75_000, 80_000, 85_000, 90_000, 95_000, 100_000, 100_000, 100_000]


def test_most_workers_have_to_find_the_server_slow(queue_case: Case) -> None:
    """A slow webhook makes some answers slow; an overloaded server all of them."""
    case = begun(queue_case, "w1", "w2", "w3")
    lend(case, *(Report(holder) for holder in ("w1", "w2", "w3")))
    case.advance(500)
    slow, quick = Report("w1", slow=True), Report("w2", slow=False)
    assert lend(case, slow, quick, Report("w3")).rate == MOST
    assert lend(case, slow, quick, Report("w3", slow=True)).rate == 85_000


def test_another_ceiling_counts_at_once(queue_case: Case) -> None:
    case = begun(queue_case, "w1")
    lend(case, hungry("w1"))
    assert rates(lend(case, hungry("w1"), limits=BudgetLimits(5_000, 500))) == {"w1": 5_000}


def test_requests_under_way_are_shared_too(queue_case: Case) -> None:
    case, limits = begun(queue_case, "w1", "w2", "w3"), BudgetLimits(MOST, 10_000, 12)

    def flights(*reports: Report) -> dict[str, int]:
        return {each.holder: each.flights for each in lend(case, *reports, limits=limits).shares}

    assert flights(Report("w1"), Report("w2"), Report("w3")) == {"w1": 4, "w2": 4, "w3": 4}
    assert flights(Report("w1", flights=50), Report("w2"), Report("w3")) == {"w1": 10, "w2": 1, "w3": 1}
    assert flights(Report("w2", flights=50)) == {"w2": 1}, "w1 may have ten under way"
    assert flights(Report("w1", under_way=8, flights=50)) == {"w1": 5}
    assert flights(Report("w2", flights=50)) == {"w2": 3}, "eight of w1's are still under way"
    assert flights(Report("w1", under_way=5, flights=50)) == {"w1": 5}
    assert flights(Report("w2", flights=50)) == {"w2": 6}


def test_people_can_look_at_it(real: RedisCase) -> None:
    inspector = Inspector(real.admin, real.epoch, now_ms=real.now_ms)
    assert inspector.budget() is None
    begun(real, "w1")
    report = Report("w1", refused=1, wait_ms=1_500, under_way=3, flights=9, wants={QUEUE: 90_000})
    lend(real, report, limits=BudgetLimits(MOST, 10_000, 8))
    real.jump(500)
    lanes = {QUEUE: LaneView(90.0, 67.2)}
    assert inspector.budget() == BudgetView(70.0, 100.0, 500, "429", 1_000, 3, 8, 1, lanes)


@settings(max_examples=200)
@given(st.integers(0, 1_000), st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 400), max_size=8))
def test_max_min(room: int, wants: Mapping[str, int]) -> None:
    """Nothing is left over that anybody wants; and nobody has more than one who wants more."""
    shares = fill(room, wants)
    assert sum(shares.values()) == min(room, sum(wants.values()))
    for name, share in shares.items():
        assert 0 <= share <= wants[name]
        if share < wants[name]:
            assert max(shares.values()) <= share + 1


reports = st.lists(
    st.builds(
        Report,
        st.sampled_from([f"w{i}" for i in range(6)]),
        wants=st.dictionaries(st.sampled_from(("a", "b", EVENTS)), st.integers(0, 200_000), max_size=3),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each.holder,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3_000), reports), max_size=20))
def test_never_more_is_lent_than_there_is(steps: list[tuple[int, list[Report]]]) -> None:
    """Whoever reports when: what is lent at any time is the rate at most. Each worker counts its own lease."""
    case = MemoryCase()
    begun(case, *(f"w{i}" for i in range(6)))
    held: dict[str, tuple[int, int]] = {}
    for ms, told in steps:
        case.advance(ms)
        for holder, rate in rates(lend(case, *told)).items():
            held[holder] = (case.now_ms() + LEASE_MS, rate)
        assert sum(rate for until_ms, rate in held.values() if until_ms > case.now_ms()) <= MOST


def test_a_report_that_says_nothing_wants_nothing() -> None:
    assert Report("w").words == "w 0 0 - 0 0"
    assert Report("w").wants is NO_LANES
