"""Seeded runs over Deployments and their ReplicaSets. A failure names its scenario, seed and step.

The limits are looked at with every commit; at the end the faults stop and all must come to rest. ``OARLOCK_SEEDS`` runs
more seeds of each scenario, from ``OARLOCK_SEED`` on.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from tests.simulation.checker import Violation
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.redis_rig import RedisRig
from tests.simulation.rollout_scenarios import OPPORTUNITIES, SCENARIOS
from tests.simulation.rollout_simulation import RolloutSimulation

FIRST_SEED = int(os.environ.get("OARLOCK_SEED", "1"))
SEEDS = int(os.environ.get("OARLOCK_SEEDS", "0"))
STEPS = 2500


def made(rig: Any, scenario: str, seed: int) -> RolloutSimulation:
    """A run that is about to begin."""
    rig.reset()
    return RolloutSimulation(seed, rig.broker, rig.clock, **{"owners": 1, **SCENARIOS[scenario]})


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


def test_both_rigs_tell_the_same_story(redis_rig: RedisRig, memory_rig: MemoryRig) -> None:
    """The scripts and the twin, under the same seed, bring about the same history."""
    histories = []
    for rig in (redis_rig, memory_rig):
        simulation = made(rig, "strategies change", FIRST_SEED)
        simulation.run(1500)
        histories.append([(each.rv, each.resource, each.key, each.gone) for each in simulation.world.journal])
    assert histories[0] == histories[1]
