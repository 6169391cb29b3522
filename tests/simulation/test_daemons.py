"""Seeded runs over DaemonSets, their nodes and revisions. A failure names its scenario, seed and step.

The invariants are looked at with every commit and every step; at the end the faults stop and all must come to rest.
``OARLOCK_SEEDS`` runs more seeds of each scenario, from ``OARLOCK_SEED`` on.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from tests.simulation.checker import Violation
from tests.simulation.daemon_scenarios import OPPORTUNITIES, SCENARIOS
from tests.simulation.daemon_simulation import DaemonSimulation, with_second_fleet
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.redis_rig import RedisRig

FIRST_SEED = int(os.environ.get("OARLOCK_SEED", "1"))
SEEDS = int(os.environ.get("OARLOCK_SEEDS", "0"))
STEPS = 2000


def made(rig: Any, scenario: str, seed: int) -> DaemonSimulation:
    """A run that is about to begin."""
    rig.reset()
    options = dict(SCENARIOS[scenario])
    second = options.pop("second", False)
    simulation = DaemonSimulation(seed, rig.broker, rig.clock, **options)
    if second:
        other = MemoryRig()
        with_second_fleet(simulation, other.broker, other.clock, weights=options["weights"])
    return simulation


def campaign(rig: Any, scenario: str, seeds: int, steps: int = STEPS) -> Counter[str]:
    """Run the seeds. Raises Violation with the first that fails."""
    seen: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + (SEEDS or seeds)):
        simulation = made(rig, scenario, seed)
        try:
            simulation.run(steps)
        except Violation as violation:
            raise Violation(f"scenario {scenario!r}, {steps} steps: {violation}") from None
        seen.update(simulation.world.seen)
    return seen


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_twin(memory_rig: MemoryRig, scenario: str) -> None:
    """Over the twin, whose runs are quick."""
    seen = campaign(memory_rig, scenario, 12)
    missing = [each for each in OPPORTUNITIES.get(scenario, ()) if not seen[each]]
    assert not missing, f"no opportunity: {missing} of {seen}"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_real_scripts(redis_rig: RedisRig, scenario: str) -> None:
    """Over the released scripts on a real Redis."""
    campaign(redis_rig, scenario, 1)


def test_opportunities(memory_rig: MemoryRig) -> None:
    """What the protocol is built against does happen in these runs."""
    seen: Counter[str] = Counter()
    for scenario in SCENARIOS:
        seen += campaign(memory_rig, scenario, 3)
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
        simulation = made(redis_rig, "nodes come and go", FIRST_SEED)
        simulation.run(1000)
        histories.append([(each.rv, each.resource, each.key, each.gone) for each in simulation.world.journal])
    assert histories[0] == histories[1]


def test_both_rigs_tell_the_same_story(redis_rig: RedisRig, memory_rig: MemoryRig) -> None:
    """The scripts and the twin, under the same seed, bring about the same history."""
    histories = []
    for rig in (redis_rig, memory_rig):
        simulation = made(rig, "rolling", FIRST_SEED)
        simulation.run(1000)
        histories.append([(each.rv, each.resource, each.key, each.gone) for each in simulation.world.journal])
    assert histories[0] == histories[1]
