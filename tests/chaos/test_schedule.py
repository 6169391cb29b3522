"""The schedule of faults: the mix, room for the drains, and the same for the same seed."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from oarlock.chaos.faults.mixes import HOSTS, LOSSES, MIXES, POINTS, USUAL
from oarlock.chaos.faults.points import POINTS as NAMED
from oarlock.chaos.faults.schedule import Timing, mix, schedule

TIMING = Timing(drain_s=7.0, lease_s=3.0)


def test_the_usual_mix() -> None:
    assert mix(300, 240.0, TIMING) == {"worker": 240, "ingestor": 30, "supervisor": 15, "pause": 10, "redis": 5}


def test_a_small_campaign_has_one_of_each() -> None:
    assert mix(15, 20.0, TIMING) == {"worker": 11, "ingestor": 1, "supervisor": 1, "pause": 1, "redis": 1}


def test_losses_of_redis_must_leave_time() -> None:
    counts = mix(300, 40.0, TIMING)
    assert counts["redis"] == 2
    assert sum(counts.values()) == 300


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("faults", "duration_s"), [(300, 240.0), (300, 120.0), (15, 20.0), (0, 20.0), (1, 10.0)])
def test_all_faults_come_in_time_and_most_not_in_a_drain(seed: int, faults: int, duration_s: float) -> None:
    plan = schedule(seed, faults, duration_s, TIMING)
    counts = Counter(each.kind for each in plan)
    assert {kind: count for kind, count in mix(faults, duration_s, TIMING).items() if count} == dict(counts)
    assert all(0 < each.at_s <= duration_s for each in plan)
    assert plan == sorted(plan)
    losses = [each.at_s for each in plan if each.kind == "redis"]
    needed_s = TIMING.drain_s + MIXES[USUAL].after_loss_s
    assert all(later - earlier >= needed_s - 1e-9 for earlier, later in pairwise(losses))
    in_drain = Counter(each.kind for each in plan for at_s in losses if at_s < each.at_s < at_s + needed_s - 1e-9)
    assert set(in_drain) <= {"ingestor"}
    assert in_drain["ingestor"] <= (len(losses) + 1) // 2


def test_the_seed_decides() -> None:
    assert schedule(7, 300, 240.0, TIMING) == schedule(7, 300, 240.0, TIMING)
    assert schedule(7, 300, 240.0, TIMING) != schedule(8, 300, 240.0, TIMING)


def test_pauses_last_longer_than_the_lease() -> None:
    pauses = [each for each in schedule(7, 300, 240.0, TIMING) if each.kind == "pause"]
    assert {each.detail for each in pauses} == {"host", "worker"}
    assert all(each.lasts_s > TIMING.lease_s for each in pauses)


def test_each_named_point_has_its_share() -> None:
    plan = schedule(7, 500, 100.0, TIMING, MIXES[POINTS])
    assert Counter(each.detail for each in plan) == dict.fromkeys(NAMED, 25)
    assert {each.kind for each in plan} == {"point"}
    assert len(NAMED) == 20


def test_hosts_and_losses_are_mixtures_of_their_own() -> None:
    assert mix(120, 120.0, TIMING, MIXES[HOSTS]) == {"supervisor": 40, "ingestor": 40, "pause": 40, "redis": 0}
    assert mix(20, 181.0, TIMING, MIXES[LOSSES]) == {"redis": 20}
    assert mix(20, 91.0, TIMING, MIXES[LOSSES]) == {"redis": 10}, "each waits for the drain of the one before"
    losses = schedule(7, 20, 181.0, TIMING, MIXES[LOSSES])
    assert Counter(each.detail for each in losses) == {"flushall": 10, "kill": 10}
    assert all(later.at_s - earlier.at_s >= TIMING.drain_s for earlier, later in pairwise(losses))
