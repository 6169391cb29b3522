"""Each mechanism that Deployments rely on, taken out in turn, must be missed: some seed has to break an invariant."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from oarlock.controllers.deployment import bodies, find
from oarlock.controllers.deployment.sizing import recreate, sizes
from oarlock.workers.turn import rollout, size_writes
from tests.simulation.checker import Violation
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.mutants import Mutant, distinct, take_out
from tests.simulation.rollout_scenarios import CHANGES, LATE, RECREATES, ROLLS, ROUGH, SCALES
from tests.simulation.rollout_simulation import RolloutSimulation
from tests.simulation.rollout_world import Habits

SEEDS_MAX = 1500
STEPS = 2000

SWINGS = replace(
    LATE,
    habits=Habits(deeds=("image", "scale"), limits=((1, 0), (0, 1)), sizes=(1, 4), min_ready_s=(0,)),
    **{"user": 8, "aimed": "patch", "kill": 8, "faulty": 0.0, "keeps_dead_writes": 0.99},
)
"""Sizes go up and down while a write of a dead worker is still under way."""
HANGING = replace(ROUGH, habits=replace(RECREATES, deeds=("image",), sizes=(1, 2), hangs=0.97), kubelet=80)
"""Pods take their time to go."""
BEHIND = replace(ROUGH, habits=replace(CHANGES, min_ready_s=(0,)), lag=0.9, user=6)


def _names_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    serial = count()
    monkeypatch.setattr(find, "replicaset_name", lambda name, hash_: f"{name}-{next(serial)}")


MUTANTS: dict[str, Mutant] = {
    "a size counts as observed": Mutant(
        code=((sizes.is_observed, "return generation <= _CREATED or", "return True or"),),
        weights=replace(ROUGH, habits=SCALES, user=5),
        first=169,
    ),
    "a size is for any version": Mutant(
        code=((bodies.update_patch, '"uid": uid, "resourceVersion": resource_version}', '"uid": uid}'),),
        weights=SWINGS,
        first=767,
    ),
    "own writes need not be read": Mutant(code=((rollout.rollout, "if claim.min_rv:", "if False:"),), weights=BEHIND),
    "sizes without an answer end before D": Mutant(
        code=((size_writes.resolve, "entry.open is not None and entry.open.over", "True"),),
        weights=SWINGS,
        first=520,
    ),
    "pods on their way out are not looked at": Mutant(
        code=((recreate.others_gone, "return Step(wants_pods=True)", "return Step(may_create=True)"),),
        weights=HANGING,
    ),
    "names are drawn": Mutant(patch=_names_drawn, weights=replace(LATE, habits=ROLLS, user=5)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_is_missed(name: str, memory_rig: MemoryRig, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    take_out(mutant, monkeypatch)
    for seed in range(mutant.first, mutant.first + SEEDS_MAX):
        try:
            run(memory_rig, mutant, seed)
        except Violation as violation:
            print(f"missed: {violation}")
            return
    pytest.fail(f"{SEEDS_MAX} runs without this mechanism broke nothing")


@pytest.mark.parametrize("name", distinct(MUTANTS))
def test_the_same_runs_pass_with_it(name: str, memory_rig: MemoryRig) -> None:
    """The conditions that show a mutant break nothing where nothing was taken out."""
    for seed in range(8):
        run(memory_rig, MUTANTS[name], seed)


def run(rig: Any, mutant: Mutant, seed: int) -> None:
    """Raises Violation."""
    rig.reset()
    RolloutSimulation(seed, rig.broker, rig.clock, owners=1, weights=mutant.weights, **mutant.options).run(STEPS)
