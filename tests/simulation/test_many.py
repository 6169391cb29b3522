"""The search over many seeds: it goes on where it stopped, and says how a seed that fails is run alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.simulation import __main__ as command
from tests.simulation import many
from tests.simulation.checker import Violation
from tests.simulation.families import CHURNED, DAEMONS, FAMILIES, REPLICAS, Family
from tests.simulation.many import Failure, Part, Place, Search, places, run
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.mutant_table import rows

USUAL = Place("replicas", "usual")


def test_each_seed_runs_the_scenario_of_its_number() -> None:
    chosen = places("two fleets") + places("replicas: usual")
    assert chosen == [Place("daemons", "two fleets"), USUAL]
    part = run(chosen, first=1, count=2)
    assert part.failure is None
    seen = Counter(REPLICAS.run(MemoryRig(), "usual", 1)) + Counter(DAEMONS.run(MemoryRig(), "two fleets", 2))
    assert (part.seeds, part.seen) == (2, seen)
    assert len(places()) == sum(len(family.scenarios) for family in FAMILIES.values())


def test_a_run_ends_at_the_first_seed_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Family, rig: Any, scenario: str, seed: int) -> dict[str, int]:
        if seed == 7:
            raise Violation("I1: one too many")
        return {"pause": 1}

    monkeypatch.setattr(Family, "run", fails)
    part = run([USUAL], first=5, count=10)
    assert (part.seeds, dict(part.seen)) == (2, {"pause": 2})
    assert part.failure == Failure(USUAL, 7, "I1: one too many")


class Told:
    """``parts`` that run nothing; ``begins`` has with which seed each search began."""

    def __init__(self, failure: Failure | None = None) -> None:
        self.begins: list[int] = []
        self._failure = failure

    def __call__(self, chosen: Sequence[Place], first: int, last: int, processes: int) -> Iterator[Part]:
        self.begins.append(first)
        failure = self._failure
        seen = {"late commits": 3, CHURNED: 5_400_000}
        yield Part(failure.seed - first if failure else last + 1 - first, 1.0, seen, failure)


def test_it_goes_on_over_the_same_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told, kept = Told(), str(tmp_path / "build" / "sim.json")
    monkeypatch.setattr(command, "parts", told)
    assert command.main(["run", "--seeds", "10", "--kept", kept]) == 0
    assert command.main(["run", "--seeds", "25", "--kept", kept]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "seeds 1 to 10 have been run over this code" in said
    assert said[-2].startswith("25 seeds of ")
    assert "6 late commits" in said[-2]
    assert ", 3.0 hours of simulated churn, " in said[-2]
    assert said[-1] == "750 seeds a minute of a core"
    monkeypatch.setattr(many, "fingerprint", lambda: "other code")
    assert command.main(["run", "--seeds", "25", "--kept", kept]) == 0
    assert command.main(["run", "--seeds", "25", "--only", "usual", "--kept", kept]) == 0
    assert told.begins == [1, 11, 1, 1]


def test_a_seed_that_fails_is_named_with_the_command_that_runs_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "sim.json"
    monkeypatch.setattr(command, "parts", Told(Failure(USUAL, 4, "I1: one too many")))
    assert command.main(["run", "--seeds", "10", "--kept", str(kept)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "seed 4 fails: I1: one too many",
        "it is run alone by: python -m tests.simulation run --only 'replicas: usual' --first 4 --seeds 1",
    ]
    assert Search.begun(kept, "", 1).next == 4, "the seed that failed is run again"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "nothing"], "simulation: --only 'nothing': no scenario has it in its name; see --list"),
        (["--seeds", "0"], "simulation: --seeds, --first and --jobs are numbers from 1 on"),
    ],
)
def test_bad_input_is_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["run", *words]) == 2
    assert capsys.readouterr().err.splitlines() == [told]


def test_what_is_taken_out_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["mutants"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    found = rows()
    assert len({each.test for each in found}) == len(found) == len(lines)
    assert last.startswith(f"{len(found)} mechanisms are taken out")
    assert len(found) >= 100
