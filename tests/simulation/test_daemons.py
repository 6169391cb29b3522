"""Seeded runs over DaemonSets, their nodes and revisions. A failure names its scenario, seed and step.

The invariants are looked at with every commit and every step; at the end the faults stop and all must come to rest.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.simulation.families import DAEMONS
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.redis_rig import RedisRig


@cache
def over_the_twin(scenario: str) -> Counter[str]:
    # `make sim` runs many more. A node on which a pod fails again is rare.
    seeds = 20 if scenario == "pods fail" else 8
    return DAEMONS.campaign(MemoryRig(), scenario, range(1, seeds + 1))


@pytest.mark.parametrize("scenario", DAEMONS.scenarios)
def test_twin(scenario: str) -> None:
    """Over the twin, whose runs are quick."""
    seen = over_the_twin(scenario)
    missing = DAEMONS.missing(scenario, seen)
    assert not missing, f"no opportunity: {missing} of {seen}"


@pytest.mark.parametrize("scenario", DAEMONS.scenarios)
def test_real_scripts(redis_rig: RedisRig, scenario: str) -> None:
    """Over the released scripts on a real Redis."""
    DAEMONS.run(redis_rig, scenario, 1)


def test_opportunities() -> None:
    """What the protocol is built against does happen in these runs."""
    seen = sum(map(over_the_twin, DAEMONS.scenarios), Counter[str]())
    wanted = ("already exists", "late commits", "killed with a write under way", "unanswered", "precondition refused")
    wanted += ("status conflicts", "old lists", "redis losses", "grants cut", "faulty looks", "available pods deleted")
    wanted += ("turns at once",)
    wanted += ("fault 429", "fault 500", "fault 500 late", "fault 409")
    wanted += (
        "creates refused for ever",
        "deletes refused for ever",
        "looks after D",
        "passed over",
        "borne after a rest",
    )
    assert not [each for each in wanted if not seen[each]], seen


def test_a_run_repeats_itself(redis_rig: RedisRig) -> None:
    """The same seed gives the same history, to the last resourceVersion."""
    histories = []
    for _ in range(2):
        simulation = DAEMONS.begun(redis_rig, "nodes come and go", 1)
        simulation.run(1000)
        histories.append([(each.rv, each.resource, each.key, each.gone) for each in simulation.world.journal])
    assert histories[0] == histories[1]


def test_both_rigs_tell_the_same_story(redis_rig: RedisRig, memory_rig: MemoryRig) -> None:
    """The scripts and the twin, under the same seed, bring about the same history."""
    histories = []
    for rig in (redis_rig, memory_rig):
        simulation = DAEMONS.begun(rig, "rolling", 1)
        simulation.run(1000)
        histories.append([(each.rv, each.resource, each.key, each.gone) for each in simulation.world.journal])
    assert histories[0] == histories[1]
