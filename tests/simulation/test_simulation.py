"""Seeded runs of the whole protocol. A failure names its seed and step: `Simulation(seed, ...).run(steps)` repeats it.

Each run mixes steps of workers, ingestors, kubelets, users and faults; the invariants are looked at after every step,
and at the end everything must come to rest. A campaign without opportunities proves nothing, so these are counted too.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.memory_rig import MemoryRig
from tests.simulation.redis_rig import RedisRig
from tests.simulation.simulation import Simulation, Weights

FIRST_SEED = int(os.environ.get("OARLOCK_SEED", "1"))
SEEDS = int(os.environ.get("OARLOCK_SEEDS", "0"))
"""How many of each scenario, instead of those that a test names."""

REFUSING = Weights(kubelet=12, user=3, pace_ms=(0, 1, 5, 20, 100, 400))
"""With ``refuses``: writes of some names are answered with 500 for ever, or for a while."""

SCENARIOS: dict[str, dict[str, Any]] = {
    "usual": {},
    "strict": {"strict": True, "weights": Weights(lose_answer=4, kill=3)},
    "answers get lost": {"weights": Weights(lose_answer=8, kill=3, arrive=6, kubelet=12)},
    "workers die": {"weights": Weights(kill=6, freeze=4, supervise=12)},
    "ingestors stumble": {"weights": Weights(ingestor=10, ingest=30)},
    "redis is lost": {"weights": Weights(redis=1, supervise=12, ingest=20)},
    "names are refused": {"weights": replace(REFUSING, refuses={"create": 0.5})},
    "names are refused to strict owners": {"strict": True, "weights": replace(REFUSING, refuses={"create": 0.5})},
    "deletes are refused": {
        "weights": replace(REFUSING, refuses={"delete": 0.6}, refuses_most=4, wishes=(5, 10), user=4)
    },
    "anything is refused": {"weights": replace(REFUSING, refuses={"create": 0.4, "delete": 0.4}, faulty=0.1)},
    "anything is refused to strict owners": {
        "strict": True,
        "weights": replace(REFUSING, refuses={"create": 0.4, "delete": 0.4}, faulty=0.1, kill=3),
    },
    "people steer": {"weights": Weights(people=8, supervise=14, user=4, kill=2)},
    "people steer and redis is lost": {"weights": Weights(people=6, supervise=14, ingest=20, redis=1)},
    "one owner, many workers": {"owners": 1, "workers": 5, "weights": Weights(worker=80, user=4)},
}

OPPORTUNITIES: dict[str, tuple[str, ...]] = {
    "usual": ("already exists", "precondition refused", "turns at once", "counts handed over"),
    "strict": ("already exists", "late commits", "unanswered", "counts handed over"),
    "answers get lost": ("already exists", "unanswered"),
    "workers die": ("already exists", "late commits", "killed with a write under way", "looks after D"),
    "ingestors stumble": ("old lists",),
    "redis is lost": ("redis losses", "lists needed", "late commits"),
    "names are refused": ("creates refused for ever", "looks after D", "passed over"),
    "names are refused to strict owners": ("creates refused for ever", "looks after D"),
    "deletes are refused": ("deletes refused for ever", "obsolete deletes", "looks after D"),
    "anything is refused": ("creates refused for ever", "deletes refused for ever", "obsolete deletes", "fault 409"),
    "anything is refused to strict owners": ("creates refused for ever", "deletes refused", "looks after D"),
    "people steer": ("pause", "park", "resume", "replay", "requeue", "left", "killed with a write under way"),
    "people steer and redis is lost": ("pause", "park", "left", "redis losses"),
    "one owner, many workers": ("already exists", "status conflicts"),
}
"""What each scenario is for, and has to bring about."""


def campaign(rig: Any, scenario: str, seeds: range, steps: int) -> Counter[str]:
    """Run the seeds; raises Violation with the seed of the first that fails."""
    seen: Counter[str] = Counter()
    print(f"scenario {scenario!r}, seeds {seeds.start}..{seeds.stop - 1}, {steps} steps each")
    for seed in seeds:
        rig.reset()
        simulation = Simulation(seed, rig.broker, rig.clock, **SCENARIOS[scenario])
        simulation.run(steps)
        seen.update(simulation.world.seen)
    return seen


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_real_scripts(redis_rig: RedisRig, scenario: str) -> None:
    """The released scripts on a real Redis keep every invariant after every step."""
    campaign(redis_rig, scenario, range(FIRST_SEED, FIRST_SEED + (SEEDS or 8)), 500)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_twin(memory_rig: MemoryRig, scenario: str) -> None:
    """So does the twin, whose records expire under the virtual clock."""
    seen = campaign(memory_rig, scenario, range(FIRST_SEED, FIRST_SEED + (SEEDS or 30)), 500)
    missing = [each for each in OPPORTUNITIES[scenario] if not seen[each]]
    assert not missing, f"no opportunity: {missing} of {seen}"


def test_opportunities(memory_rig: MemoryRig) -> None:
    """The faults that the protocol is built against do happen in these runs."""
    seen: Counter[str] = Counter()
    for scenario in SCENARIOS:
        seen += campaign(memory_rig, scenario, range(FIRST_SEED, FIRST_SEED + 10), 400)
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


def test_a_run_repeats_itself(redis_rig: RedisRig) -> None:
    """The same seed gives the same history, to the last resourceVersion."""
    histories = []
    for _ in range(2):
        redis_rig.reset()
        simulation = Simulation(FIRST_SEED, redis_rig.broker, redis_rig.clock)
        simulation.run(300)
        histories.append([(each.rv, each.resource, each.name, each.obj is None) for each in simulation.world.journal])
    assert histories[0] == histories[1]
