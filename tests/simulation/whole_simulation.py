"""One seeded run of a controller of one's own: several workers, two ingestors, users, other programs, and faults."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from oarlock.cluster.answer import Answer
from oarlock.controllers.entries import DesiredController
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.registry import CONTROLLERS, register, unregister
from oarlock.controllers.wanted import Wanted
from oarlock.sdk.entries import entries_of
from oarlock.workers.turn.steps import Grant, Write
from tests.simulation.actors import SimApi, Worker
from tests.simulation.refusals import Place
from tests.simulation.simulation import Simulation, Weights
from tests.simulation.watching import WatchingIngestor
from tests.simulation.whole_checker import WholeChecker, unfinished
from tests.simulation.whole_world import CHILDREN, SITES, Cluster, WholeWorld, site

QUEUE = "site"


@contextmanager
def known() -> Iterator[None]:
    """The controller is registered."""
    entries = entries_of([site])
    for entry in entries:
        register(entry)
    try:
        yield
    finally:
        for entry in reversed(entries):
            unregister(entry)


@dataclass(frozen=True)
class WholeWeights(Weights):
    """``poor``: how often the rate limit grants less than was asked. ``lag``: how often the watch of children has
    nothing yet. ``values``: of the parts of a site; an even one asks for a Service too.
    """

    worker: int = 100
    land: int = 40
    arrive: int = 40
    ingest: int = 50
    kubelet: int = 10
    user: int = 5
    pace_ms: tuple[int, ...] = (0, 0, 0, 0, 1, 1, 5, 20, 50, 200)
    faulty: float = 0.04
    poor: float = 0.1
    lag: float = 0.0
    deeds: tuple[str, ...] = ("set", "set", "drop", "edit", "take", "plant", "again")
    values: tuple[int, ...] = (1, 2, 3, 4)


class WholeApi(SimApi):
    """Tells the checker what is sent, and has no more to give at times."""

    def __init__(self, simulation: Any, sender: str) -> None:
        super().__init__(simulation.world, simulation.clock, simulation.settings, sender)
        self._simulation = simulation

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        if self._clock.mono_ms() < deadline_ms:
            for write in writes:
                self._simulation.checker.sent(write)
        return super().send(writes, deadline_ms, prepaid)

    def reserve(self, count: int, behind: int = 0) -> Grant:
        simulation = self._simulation
        simulation.checker.acts()
        if simulation.healing or simulation.chance() >= simulation.weights.poor:
            return Grant(count, 0)
        self._world.count("grants cut")
        return Grant(int(simulation.chance() * count), 50)


class WholeSimulation(Simulation):
    """``owners``: how many sites. Enter ``known`` before."""

    resources = (SITES, *CHILDREN)
    queues = (QUEUE,)
    stages = MappingProxyType({"as it is": 300_000})

    def _found(self, owners: int, strict: bool) -> None:
        weights: Any = self._weights
        self.weights = weights
        self.world = WholeWorld(self.clock.mono_ms, wall_ms=self.clock.wall_ms)
        self.checker = WholeChecker(self.world)
        self.world.on_apply, self.world.on_delete = self.checker.applied, self.checker.deleted
        self.cluster = Cluster(self.world, self._random, weights.deeds, weights.values)
        for number in range(owners):
            self.cluster.found(f"site{number}")
        self.ingestors = [WatchingIngestor(self.world, lambda: self.broker, f"i{n}") for n in range(2)]
        self._controller = CONTROLLERS[QUEUE]
        assert isinstance(self._controller, DesiredController)
        want = self._controller.want

        def told(own: Whole, owned: Any, watched: Any) -> Wanted:
            wanted = want(own, owned, watched)
            self.checker.decided(own, wanted)
            return wanted

        self._watched = msgspec.structs.replace(self._controller, want=told)

    def chance(self) -> float:
        return self._random.random()

    # -- steps

    def _check_cache(self) -> None:
        if self.steps % 40 == 0:
            super()._check_cache()

    def _hire(self, name: str, keys_max: int) -> Worker:
        CONTROLLERS[QUEUE] = self._watched
        try:
            return Worker(
                name,
                self.broker,
                self.world,
                self.clock,
                self.settings,
                self.checker,
                1,
                api=WholeApi(self, name),
                queues=self.queues,
            )
        finally:
            CONTROLLERS[QUEUE] = self._controller

    def _place(self, write: Write) -> Place | None:
        return None

    def _ingest(self) -> None:
        if self._drained_ms is not None or self.chance() >= self.weights.lag:
            super()._ingest()
        else:
            self._random.choice(self.ingestors).step(SITES, 5)

    def _kubelet(self) -> None:
        self.cluster.collect()

    def _user(self) -> None:
        self.cluster.user()

    def _redis(self) -> None:
        super()._redis()

    # -- the end

    def _calm(self) -> None:
        self.cluster.calm()

    def _unobserved(self) -> str:
        return ""

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
        if busy := sorted(self.broker.busy_keys(QUEUE)) + sorted(self.broker.delayed_keys(QUEUE)):
            return f"busy with {busy}"
        uids = {stored.obj.uid for stored in self.world.sites()}
        for stored in self.world.sites():
            left = self.broker.recorded(QUEUE, stored.obj.key)
            fault = unfinished(self.world, stored) or (f"it expects {left}" if left else "")
            if fault:
                return f"{stored.obj.name}: {fault}"
        for resource in CHILDREN:
            for name, stored in self.world.tables[resource].items():
                refs = stored.obj.owner_refs
                if not refs or refs[-1].uid not in uids:
                    return f"{resource}/{name} is nobody's"
        return ""

    def describe(self) -> str:
        lines = [self.unrest()]
        for stored in self.world.sites():
            lines.append(f"{stored.obj.key}@{stored.rv}: {self.broker.recorded(QUEUE, stored.obj.key)}, {stored.doc}")
        for resource in CHILDREN:
            lines += [f"{resource}/{name}@{each.rv}: {each.doc}" for name, each in self.world.tables[resource].items()]
        return "\n".join(lines) + f"\nseen {self.world.seen}"
