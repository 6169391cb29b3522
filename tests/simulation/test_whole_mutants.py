"""Each mechanism that controllers of one's own rely on, taken out in turn, must be missed: some seed has to break an
invariant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from oarlock.controllers import wanted
from oarlock.workers.turn.custom import child_writes, inputs, open_deletes
from tests.simulation.checker import Violation
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.mutants import Mutant, distinct, take_out
from tests.simulation.whole_scenarios import LATE, USUAL
from tests.simulation.whole_simulation import WholeSimulation, known
from tests.simulation.whole_world import WholeWorld

SEEDS_MAX = 300
STEPS = 1500

SWINGS = replace(
    LATE, deeds=("set", "drop"), values=(1,), user=8, aimed="delete", kill=20, faulty=0.0, keeps_dead_writes=0.97
)
"""A part comes and goes while a delete of a dead worker is still under way."""

MUTANTS: dict[str, Mutant] = {
    "a delete under way is not minded": Mutant(
        code=((wanted.changes, "live.obj.uid in at_risk or", ""),),
        weights=SWINGS,
        first=152,
    ),
    "deletes that may land are forgotten": Mutant(
        code=((open_deletes.OpenDeletes.__init__, "or each.open.over", "or True"),),
        weights=SWINGS,
        first=152,
    ),
    "deletes are for any version": Mutant(
        code=((child_writes._write_of, "uid=obj.uid, rv=rv", 'uid=obj.uid, rv=""'),), weights=SWINGS
    ),
    "names of others are not looked at, and force is used": Mutant(
        code=((child_writes._write_of, "job.body, manager=manager)", "job.body, manager=manager, force=True)"),),
        weights=USUAL,
    ),
    "what a worker saw at rest is for ever": Mutant(
        code=((inputs.versions_of_others, "found += [each.rv for each in others]", "pass"),),
        weights=replace(USUAL, values=(2,)),
        first=529,
    ),
    "edits are not seen": Mutant(
        code=((wanted.as_wanted, "return not found or", "return True or"),),
        weights=replace(USUAL, deeds=("edit", "set")),
    ),
}


@pytest.fixture(autouse=True, scope="module")
def _known() -> Iterator[None]:
    with known():
        yield


@pytest.mark.parametrize("name", MUTANTS)
def test_is_missed(name: str, memory_rig: MemoryRig, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    take_out(mutant, monkeypatch)
    for seed in range(mutant.first, mutant.first + SEEDS_MAX):
        try:
            run(memory_rig, mutant, seed)
        except Violation as violation:
            print(f"missed: seed {seed}: {str(violation)[:200]}")
            return
    pytest.fail(f"{SEEDS_MAX} runs without this mechanism broke nothing")


@pytest.mark.parametrize("name", distinct(MUTANTS))
def test_the_same_runs_pass_with_it(name: str, memory_rig: MemoryRig) -> None:
    """The conditions that show a mutant break nothing where nothing was taken out."""
    mutant = MUTANTS[name]
    for seed in range(mutant.first, mutant.first + 3):
        run(memory_rig, mutant, seed)


def run(rig: MemoryRig, mutant: Mutant, seed: int) -> WholeWorld:
    rig.reset()
    simulation = WholeSimulation(seed, rig.broker, rig.clock, weights=mutant.weights, owners=1, **mutant.options)
    simulation.run(STEPS)
    return simulation.world
