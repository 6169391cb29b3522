"""Seeded runs of a controller that says what is wanted. A failure names its scenario, seed and step.

``OARLOCK_SEEDS`` runs more seeds of each scenario, from ``OARLOCK_SEED`` on.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.checker import Violation
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.redis_rig import RedisRig
from tests.simulation.whole_simulation import WholeSimulation, WholeWeights, known

FIRST_SEED = int(os.environ.get("OARLOCK_SEED", "1"))
SEEDS = int(os.environ.get("OARLOCK_SEEDS", "0"))
STEPS = 2000

USUAL = WholeWeights()
LATE = replace(USUAL, kill=6, keeps_dead_writes=0.9, lose_answer=6, deeds=("set", "drop", "set", "drop", "again"))
SCENARIOS: dict[str, dict[str, Any]] = {
    "usual": {"weights": USUAL},
    "several sites": {"weights": USUAL, "owners": 3},
    "writes of the dead land late": {"weights": LATE},
    "killed while deleting": {"weights": replace(LATE, aimed="delete", kill=30, faulty=0.0)},
    "killed while applying": {"weights": replace(LATE, aimed="apply", kill=30, faulty=0.0)},
    "the cache lags": {"weights": replace(USUAL, lag=0.8)},
    "redis is lost": {"weights": replace(LATE, redis=0.3)},
    "others take names": {"weights": replace(USUAL, deeds=("plant", "set", "drop", "edit", "take"), user=8)},
}
OPPORTUNITIES = {
    "usual": ("created", "deleted", "rests", "precondition refused", "grants cut"),
    "writes of the dead land late": ("late commits", "killed with a write under way"),
    "killed while deleting": ("late commits", "killed with a write under way", "deleted"),
    "redis is lost": ("redis losses",),
    "others take names": ("planted",),
}


@pytest.fixture(autouse=True, scope="module")
def _known() -> Iterator[None]:
    with known():
        yield


def campaign(rig: Any, scenario: str, seeds: int, steps: int = STEPS) -> Counter[str]:
    """Run the seeds. Raises Violation with the first that fails."""
    seen: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + (SEEDS or seeds)):
        rig.reset()
        simulation = WholeSimulation(seed, rig.broker, rig.clock, **{"owners": 1, **SCENARIOS[scenario]})
        try:
            simulation.run(steps)
        except Violation as violation:
            raise Violation(f"scenario {scenario!r}, {steps} steps: {violation}") from None
        seen.update(simulation.world.seen)
    return seen


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_twin(memory_rig: MemoryRig, scenario: str) -> None:
    """Over the twin, whose runs are quick."""
    seen = campaign(memory_rig, scenario, 8)
    missing = [each for each in OPPORTUNITIES.get(scenario, ()) if not seen[each]]
    assert not missing, f"no opportunity: {missing} of {seen}"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_real_scripts(redis_rig: RedisRig, scenario: str) -> None:
    """Over the released scripts on a real Redis."""
    campaign(redis_rig, scenario, 1)
