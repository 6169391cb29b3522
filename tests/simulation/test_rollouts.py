"""Seeded runs over Deployments and their ReplicaSets. A failure names its scenario, seed and step.

The limits are looked at with every commit; at the end the faults stop and all must come to rest.
"""

from __future__ import annotations

import pytest

from tests.simulation.families import ROLLOUTS
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.redis_rig import RedisRig


@pytest.mark.parametrize("scenario", ROLLOUTS.scenarios)
def test_twin(memory_rig: MemoryRig, scenario: str) -> None:
    """Over the twin, whose runs are quick."""
    seen = ROLLOUTS.campaign(memory_rig, scenario, range(1, 7))
    missing = ROLLOUTS.missing(scenario, seen)
    assert not missing, f"no opportunity: {missing} of {seen}"


@pytest.mark.parametrize("scenario", ROLLOUTS.scenarios)
def test_real_scripts(redis_rig: RedisRig, scenario: str) -> None:
    """Over the released scripts on a real Redis."""
    ROLLOUTS.run(redis_rig, scenario, 1)


def test_both_rigs_tell_the_same_story(redis_rig: RedisRig, memory_rig: MemoryRig) -> None:
    """The scripts and the twin, under the same seed, bring about the same history."""
    histories = []
    for rig in (redis_rig, memory_rig):
        simulation = ROLLOUTS.begun(rig, "strategies change", 1)
        simulation.run(1500)
        histories.append([(each.rv, each.resource, each.key, each.gone) for each in simulation.world.journal])
    assert histories[0] == histories[1]
