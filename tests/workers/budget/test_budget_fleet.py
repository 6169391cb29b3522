"""A fleet's budget in virtual time: what is sent, by how many workers and supervisors ever."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.broker.budget import EVENTS
from tests.workers.budget.budget_fleet import BudgetFleet

TEAMS = [(1,), (2,), (10,), (50,), (1, 1), (5, 5), (1,) * 10, (10,) * 5]


@pytest.mark.parametrize("teams", TEAMS, ids=str)
def test_all_of_it_is_sent_and_no_more_whatever_the_number_of_workers(teams: tuple[int, ...]) -> None:
    fleet = BudgetFleet(*teams)
    fleet.run(4)
    fleet.run(8)
    assert 95 <= fleet.rate(8) <= 100
    assert 95 <= fleet.rate(1) <= 101


@pytest.mark.parametrize("teams", [(10,), (1,) * 10, (5, 5)], ids=str)
def test_one_busy_worker_gets_what_the_others_leave(teams: tuple[int, ...]) -> None:
    fleet = BudgetFleet(*teams)
    for worker in fleet.workers[1:]:
        worker.per_s = 0.0
    fleet.run(14)
    assert 95 <= fleet.rate(10) <= 100


def test_an_idle_worker_has_its_first_request_at_once() -> None:
    """While another takes all it may: a part of the budget is never lent to the busy."""
    fleet = BudgetFleet(1, 1)
    busy, idle = fleet.workers
    idle.per_s = 0.0
    fleet.run(10)
    idle.per_s, begun_ms = None, fleet.clock.mono_ms()
    fleet.run(0.02)
    assert idle.sent_ms[0] == begun_ms
    fleet.run(4)
    assert fleet.rate(2, [idle]) == pytest.approx(50, abs=3), "and half of the budget within two seconds"
    assert fleet.rate(2, [busy]) == pytest.approx(50, abs=3)


def test_controllers_share_it_however_many_workers_they_have() -> None:
    fleet = BudgetFleet(9, 1)
    few = fleet.workers[9]
    few.lane = "deployment"
    fleet.run(10)
    assert fleet.rate(5, [few]) == pytest.approx(50, abs=4)
    few.per_s, few.owed = 20.0, 0.0
    fleet.run(20)
    assert fleet.rate(5, [few]) == pytest.approx(20, abs=1), "all that it wants"
    assert fleet.rate(5) >= 95, "the rest is not left over"


def test_events_do_not_crowd_out_turns() -> None:
    fleet = BudgetFleet(4)
    fleet.workers[0].lane = EVENTS
    fleet.run(15)
    assert fleet.rate(10, fleet.workers[:1]) <= 15
    assert 95 <= fleet.rate(10) <= 101


def test_a_killed_supervisor_s_part_comes_back_with_the_end_of_its_lease() -> None:
    fleet = BudgetFleet(1, 1)
    fleet.run(10)
    del fleet.supervisors[1]
    fleet.run(fleet.settings.lease_ms / 1_000 + 2)
    assert 95 <= fleet.rate(1) <= 101


def test_without_redis_a_tenth_remains() -> None:
    fleet = BudgetFleet(2, 2)
    fleet.run(5)
    for _, cut, _ in fleet.supervisors:
        cut.silent = True
    fleet.run(3)
    assert 95 <= fleet.rate(2) <= 101, "the shares count until their lease ends"
    fleet.run(10)
    assert 8 <= fleet.rate(5) <= 10
    for _, cut, _ in fleet.supervisors:
        cut.silent = False
    fleet.run(4)
    assert 95 <= fleet.rate(1) <= 101


def test_a_worker_that_never_had_a_share_is_not_without_a_limit() -> None:
    fleet = BudgetFleet(1)
    fleet.supervisors[0][1].silent = True
    fleet.run(10)
    assert fleet.rate(10) <= 1.1, "a hundredth of the budget"


def test_one_429_holds_all_of_them_and_slows_them() -> None:
    fleet = BudgetFleet(2, 2)
    fleet.run(5.25)
    fleet.workers[0].buckets.told_to_wait(3.0)
    told_ms = fleet.clock.mono_ms()
    fleet.run(3)
    assert all(at < told_ms for at in fleet.workers[0].sent_ms), "it waits at once"
    others = [at - told_ms for worker in fleet.workers[1:] for at in worker.sent_ms if at >= told_ms]
    assert others, "they have not heard of it yet"
    assert max(others) <= 1_000, "they have it from Redis: two reports later at most"
    fleet.run(1.5)
    assert fleet.rate(1) < 85
    fleet.run(10)
    assert 95 <= fleet.rate(1) <= 101, "step by step back"


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(
        st.tuples(
            st.integers(0, 15), st.sampled_from((None, 0.0, 3.0, 40.0)), st.sampled_from(("replicaset", "daemonset"))
        ),
        max_size=6,
    ),
)
def test_no_second_has_more_than_the_budget_and_its_burst(
    teams: list[int], changes: list[tuple[int, float | None, str]]
) -> None:
    """Whatever the workers do: what a second's worth can save up is the burst, and a token more for each bucket."""
    fleet = BudgetFleet(*teams)
    fleet.run(2)
    for which, per_s, lane in changes:
        worker = fleet.workers[which % len(fleet.workers)]
        if worker.waiting:
            worker.buckets.waits(worker.lane, -1)
            worker.waiting = False
        worker.per_s, worker.lane = per_s, lane
        fleet.run(1.3)
    assert fleet.busiest_second() <= 200 + 3 * len(fleet.workers)


def test_shards_have_equal_parts() -> None:
    limits = BudgetFleet(1, qps=100.0, shards=4, fleet_api_in_flight=10).settings.budget
    assert limits == (25_000, 2_500, 2)
