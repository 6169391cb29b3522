"""One seeded run over DaemonSets: several workers, two ingestors, a cluster with a will of its own, and faults.

A second fleet, with a Redis of its own, may be at work on the same cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import orjson

from oarlock.cluster.answer import NO_ANSWER, Answer
from oarlock.cluster.listing import ListError
from oarlock.cluster.resources import PODS
from oarlock.controllers.objects.model import controller_of
from oarlock.controllers.objects.selector import LabelSelector
from oarlock.controllers.registry import WATCHED
from oarlock.workers.turn.steps import Grant, Listed, Write
from tests.simulation import daemon_rest
from tests.simulation.actors import SimApi, Worker, give_way
from tests.simulation.checker import Violation
from tests.simulation.daemon_checker import DaemonChecker
from tests.simulation.daemon_cluster import Cluster, Habits
from tests.simulation.daemon_world import Change, DaemonWorld
from tests.simulation.refusals import Place
from tests.simulation.simulation import Simulation, Weights
from tests.simulation.traffic import refusal
from tests.simulation.watching import WatchingIngestor
from tests.simulation.world import NAMESPACE
from tests.workers.turn.turns import arrived


@dataclass(frozen=True)
class DaemonWeights(Weights):
    """``nodes``: how often a node changes. ``collect``: how often revisions of the dead are. ``faulty``: of requests
    and of looks, how many meet a fault of the server. ``poor``: how often the rate limit grants less than was asked.
    ``lag``: how often the watch of pods has nothing yet.
    """

    worker: int = 120
    land: int = 50
    arrive: int = 50
    kubelet: int = 40
    ingest: int = 60
    pace_ms: tuple[int, ...] = (0, 0, 0, 0, 1, 1, 5, 20, 50, 200)
    nodes: int = 1
    collect: int = 1
    faulty: float = 0.04
    poor: float = 0.1
    lag: float = 0.0
    habits: Habits = field(default_factory=Habits)


class DaemonApi(SimApi):
    """Also fails at times, and has no more to give at times."""

    def __init__(self, simulation: Any, sender: str) -> None:
        super().__init__(simulation.world, simulation.clock, simulation.settings, sender)
        self._simulation = simulation

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        if self._clock.mono_ms() < deadline_ms:
            for write in writes:
                self._simulation.checker.sent(write)
        return super().send(writes, deadline_ms, prepaid)

    def read(self, resource: str, namespace: str, names: tuple[str, ...]) -> Future[list[Answer]]:
        give_way()
        return arrived([self._fault() or self._world.get(resource, name) for name in names])

    def list_live(self, resource: str, namespace: str, selector: LabelSelector | None = None) -> Future[Listed]:
        give_way()
        if self._fault() is not None:
            raise ListError(PODS, Answer(NO_ANSWER, error="no answer"))
        self._world.count("live lists" if selector is None else "live lists of selected pods")
        listed = [s for s in self._world.tables[resource].values() if s.obj.namespace == namespace]
        meant = [s.raw for s in listed if selector is None or selector.matches(s.obj.labels)]
        return arrived(Listed(str(self._world.rv), meant))

    def _fault(self) -> Answer | None:
        simulation = self._simulation
        if simulation.healing or simulation.chance() >= simulation.weights.faulty:
            return None
        self._world.count("faulty looks")
        return Answer(NO_ANSWER, error="no answer") if simulation.chance() < 0.5 else refusal(500, "InternalError")

    def reserve(self, count: int, behind: int = 0) -> Grant:
        simulation = self._simulation
        if simulation.healing or simulation.chance() >= simulation.weights.poor:
            return Grant(count, 0)
        self._world.count("grants cut")
        return Grant(int(simulation.chance() * count), 50)


class DaemonSimulation(Simulation):
    """``sets``: how many DaemonSets, on ``nodes``. ``of``: the run this is the second fleet of. ``rolls``: whether the
    limits of rolling updates are claimed.
    """

    resources = ("pods", "nodes", "daemonsets", "controllerrevisions")
    queues = (daemon_rest.QUEUE, daemon_rest.NODE_QUEUE)
    stages = MappingProxyType({"as it is": 300_000, "another image": 300_000})
    draws = (*Simulation.draws, "nodes", "collect")

    def __init__(
        self,
        seed: int,
        new_broker: Callable[[int], Any],
        on_clock: Callable[[int], None],
        *,
        sets: int = 1,
        nodes: int = 3,
        of: DaemonSimulation | None = None,
        rolls: bool = True,
        **options: Any,
    ) -> None:
        self._sets, self._node_count, self._of, self._rolls = sets, nodes, of, rolls
        self.second: DaemonSimulation | None = None
        self._nodes_claimed: dict[str, int] = {}
        self._nodes_changed: dict[str, int] = {}
        options.setdefault("weights", DaemonWeights())
        super().__init__(seed, new_broker, on_clock, **options)

    def _found(self, owners: int, strict: bool) -> None:
        self.weights: Any = self._weights
        self.prefix = "" if self._of is None else "second "
        if self._of is None:
            self.world = DaemonWorld(self.clock.mono_ms, wall_ms=self.clock.wall_ms)
            self.checker = DaemonChecker(self.world, rolls=self._rolls)
            self.world.on_change, self.world.on_status = self._changed, self.checker.status
            self.world.on_create, self.world.on_delete = self.checker.created, self.checker.deleted
            self.cluster = Cluster(self.world, self._random, self.weights.habits, self._node_count)
            self.checker.planted = self.cluster.planted
            for number in range(self._sets):
                self.cluster.found(f"agent{number}")
        else:
            self.clock, self.world, self.cluster = self._of.clock, self._of.world, self._of.cluster
            self.checker = DaemonChecker(self.world)  # of the steps of its own protocol
        self.ingestors = [
            WatchingIngestor(self.world, lambda: self.broker, f"{self.prefix}i{n}".replace(" ", "-")) for n in range(2)
        ]

    def chance(self) -> float:
        return self._random.random()

    def _changed(self, change: Change) -> None:
        self.checker.changed(change)
        if change.resource == "nodes" and change.gone and self.broker.watermark("nodes") is None:
            self._nodes_changed.pop(change.key, None)  # the list that begins the epoch will not show it
        elif change.resource == "nodes":
            before = [each for each in self.world.journal[:-1] if each.resource == "nodes" and each.key == change.key]
            if not before or change.gone or before[-1].gone or before[-1].obj != change.obj:
                self._nodes_changed[change.key] = change.rv

    # -- steps

    def step(self) -> None:
        if self.second is not None and self._random.random() < 0.4:
            self.second.step()
        super().step()
        self._check_nodes()

    def _advance(self, by_ms: int) -> None:
        if self._of is None:
            super()._advance(by_ms)
        else:  # the first fleet moves the clock of both
            self._on_clock(self.clock.wall_ms())

    def _check_nodes(self) -> None:
        """I3: a change of a node that is in the cache was looked at since, or is queued."""
        if self._of is not None or self.steps % 5:
            return
        mark = int(self.broker.watermark("nodes") or 0)
        late = [n for n, rv in self._nodes_changed.items() if self._nodes_claimed.get(n, 0) < rv <= mark]
        if late:
            waiting = self.broker.busy_keys(daemon_rest.NODE_QUEUE)
            if lost := [node for node in late if node not in waiting]:
                raise Violation(f"I3: nobody looks at the changes of {lost}")

    def _check_cache(self) -> None:
        if self.steps % 40 == 0 and self._of is None:
            super()._check_cache()

    def node_claimed(self, node: str) -> None:
        """A turn about the node begins, with the cache as it is now."""
        self._nodes_claimed[node] = int(self.broker.watermark("nodes") or 0)

    def _hire(self, name: str, keys_max: int) -> Worker:
        name = f"{self.prefix}{name}".replace(" ", "-")
        api = DaemonApi(self, name)
        checker = _WithNodes(self)
        return Worker(
            name, self.broker, self.world, self.clock, self.settings, checker, keys_max, api=api, queues=self.queues
        )

    def _land(self) -> None:
        if self._of is None:  # there is one server
            super()._land()

    def _living(self) -> list[Worker]:
        return [worker for fleet in self._fleets() for worker in fleet.workers if worker.alive]

    def _place(self, write: Write) -> Place | None:
        """A lasting fault hits a node: all writes of one verb for the pods of a set that are for it."""
        if write.resource != "pods":
            return None
        if write.verb == "create":
            doc = orjson.loads(write.body)
            doc["metadata"] |= {"uid": "", "resourceVersion": ""}
            pod = WATCHED["pods"].from_json(orjson.dumps(doc))[1]
        elif write.name in self.world.tables["pods"]:
            pod = self.world.tables["pods"][write.name].obj
        else:
            return None
        ref = controller_of(pod)
        return Place(ref.name, write.verb, pod.target_node) if ref is not None else None

    def _ingest(self) -> None:
        if self._drained_ms is not None or self.chance() >= self.weights.lag:
            super()._ingest()
        else:
            self._random.choice(self.ingestors).step(self._random.choice(self.resources[1:]), 5)

    def _fleets(self) -> list[DaemonSimulation]:
        return [self] if self.second is None else [self, self.second]

    def _kubelet(self) -> None:
        if self._of is None:
            self.cluster.kubelet()

    def _user(self) -> None:
        if self._of is None:
            self.cluster.user()

    def _nodes(self) -> None:
        if self._of is None:
            self.cluster.node()

    def _collect(self) -> None:
        if self._of is None:
            self.cluster.collect_revisions()

    def _redis(self) -> None:
        super()._redis()
        self.checker.new_epoch()
        self._nodes_claimed.clear()
        living = self.world.tables["nodes"]
        self._nodes_changed = {node: rv for node, rv in self._nodes_changed.items() if node in living}

    # -- the end

    def run(self, steps: int) -> None:
        try:
            super().run(steps)
        finally:
            if self.second is not None:
                for worker in self.second.workers:
                    worker.kill()

    def _heal(self) -> None:
        if self.second is not None:
            for worker in self.second.workers:
                worker.kill()
            self.second.workers = []
        super()._heal()

    def _calm(self) -> None:
        self.cluster.calm()
        self.cluster.collect_revisions()
        if not self.busy() and not self.world.flights and (names := self.cluster.duplicated()):
            self.broker.add(daemon_rest.QUEUE, [f"{NAMESPACE}/{name}" for name in names])

    def _unobserved(self) -> str:
        return ""  # part of what is asked of them as they stall

    def _stalled(self) -> str:
        return daemon_rest.stalled(self.cluster, self.refusals)

    def _ask(self, stage: str) -> None:
        for name in sorted(self.world.tables["daemonsets"]):
            if stage == "as it is":
                self._count_lasting(name)
            else:
                self.cluster.specify_image(name, stage)

    def _settled(self) -> bool:
        return not daemon_rest.unrest(self.cluster, self.broker)

    def describe(self) -> str:
        lines = [daemon_rest.unrest(self.cluster, self.broker)]
        for queue in self.queues:
            lines.append(f"{queue}: busy {self.broker.busy_keys(queue)}, delayed {self.broker.delayed_keys(queue)}")
        for name, stored in self.world.tables["daemonsets"].items():
            record = self.broker.recorded(daemon_rest.QUEUE, f"{NAMESPACE}/{name}")
            lines.append(f"{name}@{stored.rv}: record {record}, {stored.obj}")
        lines += [f"{pod}" for pod in self.world.pods]
        return "\n".join(lines) + f"\nseen {self.world.seen}"


class _WithNodes:
    """A checker that also tells of the nodes looked at."""

    def __init__(self, simulation: DaemonSimulation) -> None:
        self._simulation, self._checker = simulation, simulation.checker
        self.viewed, self.accepted = self._checker.viewed, self._checker.accepted
        self.announced, self.loaded = self._checker.announced, self._checker.loaded

    def claimed(self, key: str, nonce: str) -> None:
        queue, _, name = key.partition(":")
        if queue == daemon_rest.NODE_QUEUE:
            self._simulation.node_claimed(name)
        self._checker.claimed(key, nonce)


def with_second_fleet(
    first: DaemonSimulation, new_broker: Callable[[int], Any], on_clock: Callable[[int], None], **options: Any
) -> None:
    """Another fleet on the same cluster, with a Redis of its own. Only what names ensure is claimed for two."""
    first.checker.rolls = False
    first.second = DaemonSimulation(first.seed + 1_000_000, new_broker, on_clock, of=first, **options)
    first.second._open()
