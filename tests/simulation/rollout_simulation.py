"""One seeded run over Deployments: their controller and that of ReplicaSets at work side by side, and faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from oarlock.controllers.history.model import HASH_LABEL
from oarlock.workers.turn.steps import Write
from tests.simulation.actors import Worker
from tests.simulation.daemon_simulation import DaemonApi
from tests.simulation.daemon_world import Change
from tests.simulation.refusals import Place
from tests.simulation.rollout_checker import RolloutChecker, unfinished
from tests.simulation.rollout_world import Cluster, Habits, RolloutWorld
from tests.simulation.simulation import Simulation, Weights
from tests.simulation.watching import WatchingIngestor
from tests.simulation.world import NAMESPACE

QUEUES = ("deployment", "replicaset")


@dataclass(frozen=True)
class RolloutWeights(Weights):
    """``faulty``: of requests and of looks, how many meet a fault of the server. ``poor``: how often the rate limit
    grants less than was asked. ``lag``: how often the watch of ReplicaSets has nothing yet.
    """

    worker: int = 120
    land: int = 50
    arrive: int = 50
    kubelet: int = 40
    ingest: int = 60
    user: int = 2
    pace_ms: tuple[int, ...] = (0, 0, 0, 0, 1, 1, 5, 20, 50, 200)
    faulty: float = 0.03
    poor: float = 0.1
    lag: float = 0.0
    habits: Habits = field(default_factory=Habits)


class RolloutSimulation(Simulation):
    """``owners``: how many Deployments."""

    resources = ("pods", "replicasets", "deployments")
    queues = QUEUES
    stages = MappingProxyType({"as it is": 300_000})

    def _found(self, owners: int, strict: bool) -> None:
        self.weights: Any = self._weights
        self.world = RolloutWorld(self.clock.mono_ms, wall_ms=self.clock.wall_ms)
        self.checker = RolloutChecker(self.world)
        self.world.on_change, self.world.on_status = self._changed, self.checker.status
        self.world.on_create, self.world.on_delete = self.checker.created, self.checker.deleted
        self.world.on_size = self.checker.sized
        self.checker.drain_ms = self.settings.drain_ms
        self.cluster = Cluster(self.world, self._random, self.weights.habits)
        self.cluster.on_taken = self.checker.taken
        for number in range(owners):
            self.cluster.found(f"web{number}")
        self.ingestors = [WatchingIngestor(self.world, lambda: self.broker, f"i{n}") for n in range(2)]

    def chance(self) -> float:
        return self._random.random()

    def _changed(self, change: Change) -> None:
        self.checker.changed(change)

    # -- steps

    def _check_cache(self) -> None:
        if self.steps % 40 == 0:
            super()._check_cache()

    def _hire(self, name: str, keys_max: int) -> Worker:
        api = DaemonApi(self, name)
        return Worker(
            name, self.broker, self.world, self.clock, self.settings, self.checker, keys_max, api=api, queues=QUEUES
        )

    def _place(self, write: Write) -> Place | None:
        """A lasting fault hits a ReplicaSet: all writes of one verb for it."""
        return Place("", write.verb, write.name) if write.resource == "replicasets" else None

    def _ingest(self) -> None:
        if self._drained_ms is not None or self.chance() >= self.weights.lag:
            super()._ingest()
        else:
            self._random.choice(self.ingestors).step(self._random.choice(("pods", "deployments")), 5)

    def _kubelet(self) -> None:
        self.cluster.kubelet()

    def _user(self) -> None:
        self.cluster.user()

    def _redis(self) -> None:
        super()._redis()
        self.checker.new_epoch()

    # -- the end

    def _calm(self) -> None:
        self.cluster.calm()

    def _unobserved(self) -> str:
        return ""  # part of what is asked of them as they stall

    def _stalled(self) -> str:
        return ""

    def _ask(self, stage: str) -> None:
        """Nothing else is asked."""

    def _settled(self) -> bool:
        return not self.unrest()

    def unrest(self) -> str:
        """What is not as it should be at the end; empty where all is."""
        if self.world.flights:
            return "requests are under way"
        for queue in QUEUES:
            if busy := sorted(self.broker.busy_keys(queue)) + sorted(self.broker.delayed_keys(queue)):
                return f"{queue} is busy with {busy}"
        for stored in self.world.deployments():
            owner = stored.obj
            left = [f"{field}: {text}" for field, text in self._recorded(owner.key).items() if field != "said"]
            fault = unfinished(self.world, owner) or (f"it expects {left}" if left else "")
            old = len(self.world.replicasets_of(owner.uid)) - 1
            if not fault and old > owner.revision_history_limit:
                fault = f"{old} old ReplicaSets are kept"
            if fault:
                return f"{owner.name}: {fault}"
        return ""

    def _recorded(self, key: str) -> dict[str, str]:
        found: dict[str, str] = self.broker.recorded("deployment", key)
        return found

    def describe(self) -> str:
        lines = [self.unrest()]
        for queue in QUEUES:
            lines.append(f"{queue}: busy {self.broker.busy_keys(queue)}, delayed {self.broker.delayed_keys(queue)}")
        for stored in self.world.deployments():
            lines.append(f"{stored.obj.name}@{stored.rv}: {self._recorded(stored.obj.key)}, {stored.obj}")
        for name, stored in self.world.tables["replicasets"].items():
            record = self.broker.recorded("replicaset", f"{NAMESPACE}/{name}")
            each = stored.obj
            facts = f"gen {each.generation}, {each.replicas} wanted, {each.status}, {each.annotations}"
            lines.append(f"{name}@{stored.rv} {each.labels.get(HASH_LABEL)}: {facts}, {record}")
        lines += [f"{pod.name} {pod.phase} ready={pod.ready} deleting={pod.deleting_ms}" for pod in self.world.pods]
        return "\n".join(lines) + f"\nseen {self.world.seen}"
