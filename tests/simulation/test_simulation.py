"""Seeded runs of the whole protocol over ReplicaSets. A failure names its scenario, seed and step.

Each run mixes steps of workers, ingestors, kubelets, users and faults; the invariants are looked at after every step,
and at the end everything must come to rest. A campaign without opportunities proves nothing, so these are counted too.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from oarlock.workers.turn import expectations
from tests.simulation.families import REPLICAS
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.redis_rig import RedisRig


@pytest.mark.parametrize("scenario", REPLICAS.scenarios)
def test_real_scripts(redis_rig: RedisRig, scenario: str) -> None:
    """The released scripts on a real Redis keep every invariant after every step."""
    REPLICAS.campaign(redis_rig, scenario, range(1, 9))


@cache
def over_the_twin(scenario: str) -> Counter[str]:
    seeds = 30 if scenario == "few at once" else 12  # `make sim` runs many more
    return REPLICAS.campaign(MemoryRig(), scenario, range(1, seeds + 1))


@pytest.mark.parametrize("scenario", REPLICAS.scenarios)
def test_twin(scenario: str) -> None:
    """So does the twin, whose records expire under the virtual clock."""
    seen = over_the_twin(scenario)
    missing = REPLICAS.missing(scenario, seen)
    assert not missing, f"no opportunity: {missing} of {seen}"


def test_opportunities() -> None:
    """The faults that the protocol is built against do happen in these runs."""
    seen = sum(map(over_the_twin, REPLICAS.scenarios), Counter[str]())
    wanted = ("already exists", "late commits", "killed with a write under way", "unanswered", "precondition refused")
    wanted += ("status conflicts", "too late to send", "old lists", "redis losses", "turns at once")
    wanted += (
        "creates refused for ever",
        "deletes refused for ever",
        "obsolete deletes",
        "looks after D",
        "passed over",
    )
    assert not [each for each in wanted if not seen[each]], seen


def test_what_is_looked_for_in_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a namespace with many names to look for, of which only a few are read one by one."""
    monkeypatch.setattr(expectations, "READS_MAX", 1)
    seen = sum((REPLICAS.campaign(MemoryRig(), each, range(101, 105)) for each in REPLICAS.scenarios), Counter[str]())
    wanted = ("looks after D", "live lists of selected pods", "live lists")
    assert not [each for each in wanted if not seen[each]], seen


def test_a_run_repeats_itself(redis_rig: RedisRig) -> None:
    """The same seed gives the same history, to the last resourceVersion."""
    histories = []
    for _ in range(2):
        simulation = REPLICAS.begun(redis_rig, "usual", 1)
        simulation.run(300)
        histories.append([(each.rv, each.resource, each.name, each.obj is None) for each in simulation.world.journal])
    assert histories[0] == histories[1]
