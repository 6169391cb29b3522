"""The four families of simulated runs: of ReplicaSets, of DaemonSets, of Deployments, of a controller of one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from oarlock.broker.memory.state import FRONT
from tests.bursts import bursts_of
from tests.simulation import daemon_scenarios, rollout_scenarios, scenarios, whole_scenarios
from tests.simulation.checker import Violation
from tests.simulation.daemon_simulation import DaemonSimulation, with_second_fleet
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.rollout_simulation import RolloutSimulation
from tests.simulation.simulation import Simulation
from tests.simulation.whole_simulation import WholeSimulation, known

CHURNED = "ms of churn"
"""Simulated, from a run's first step until its faults stop."""


@dataclass(frozen=True)
class Family:
    """Runs of one kind. ``opportunities``: what the runs of a scenario have to bring about. ``steps``: of a run, before
    its faults stop. ``around``: what has to be in place while they run.
    """

    name: str
    scenarios: Mapping[str, Mapping[str, Any]]
    opportunities: Mapping[str, tuple[str, ...]]
    steps: int
    new: Callable[..., Any]
    around: Callable[[], AbstractContextManager[None]] = nullcontext

    def begun(self, rig: Any, scenario: str, seed: int) -> Any:
        """A run that is about to begin. The same seed gives the same run."""
        options = {"front": FRONT, "burst": 0, **self.scenarios[scenario]}
        rig.reset(front=options.pop("front"))
        del options["burst"]
        return self.new(seed, rig.broker, rig.clock, **options)

    def run(self, rig: Any, scenario: str, seed: int) -> Mapping[str, int]:
        """Run one seed to its end; how often what happened, and the ms of its clock. Raises Violation."""
        with bursts_of(self.scenarios[scenario].get("burst", 0)):
            simulation = self.begun(rig, scenario, seed)
            try:
                simulation.run(self.steps)
            except Violation as violation:
                raise Violation(f"{self.name}, scenario {scenario!r}, {self.steps} steps: {violation}") from None
        seen: Mapping[str, int] = simulation.world.seen
        return {**seen, CHURNED: simulation.churned_ms}

    def campaign(self, rig: Any, scenario: str, seeds: Iterable[int]) -> Counter[str]:
        """Run the seeds; how often what happened in all. Raises Violation with the first that fails."""
        seen: Counter[str] = Counter()
        for seed in seeds:
            seen.update(self.run(rig, scenario, seed))
        return seen

    def missing(self, scenario: str, seen: Mapping[str, int]) -> list[str]:
        """What these runs of a scenario should have brought about, and did not: they prove little."""
        return [each for each in self.opportunities.get(scenario, ()) if not seen.get(each)]


def _daemons(*arguments: Any, second: bool = False, **options: Any) -> DaemonSimulation:
    simulation = DaemonSimulation(*arguments, **options)
    if second:
        other = MemoryRig()
        with_second_fleet(simulation, other.broker, other.clock, weights=options["weights"])
    return simulation


def _rollouts(*arguments: Any, owners: int = 1, **options: Any) -> RolloutSimulation:
    return RolloutSimulation(*arguments, owners=owners, **options)


def _whole(*arguments: Any, owners: int = 1, **options: Any) -> WholeSimulation:
    return WholeSimulation(*arguments, owners=owners, **options)


REPLICAS = Family("replicas", scenarios.SCENARIOS, scenarios.OPPORTUNITIES, 500, Simulation)
DAEMONS = Family("daemons", daemon_scenarios.SCENARIOS, daemon_scenarios.OPPORTUNITIES, 2_000, _daemons)
ROLLOUTS = Family("rollouts", rollout_scenarios.SCENARIOS, rollout_scenarios.OPPORTUNITIES, 2_500, _rollouts)
WHOLE = Family("whole", whole_scenarios.SCENARIOS, whole_scenarios.OPPORTUNITIES, 2_000, _whole, known)
FAMILIES = {family.name: family for family in (REPLICAS, DAEMONS, ROLLOUTS, WHOLE)}
