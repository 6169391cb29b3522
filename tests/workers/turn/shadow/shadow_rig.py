"""A worker that stands for upstream, and beside it one that runs dry over a cache and a queue of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.shadow_store import Difference, Kept
from oarlock.broker.values.claims import Batch
from oarlock.controllers.registry import entry_of
from oarlock.workers.turn.engine.dry_run import DryRunEngine
from oarlock.workers.turn.shadow.course import Course
from oarlock.workers.turn.shadow.recorder import Recorder, decoded
from tests.simulation.actors import Ingestor
from tests.workers.turn.engine.test_dry_run import OnlyReads
from tests.workers.turn.turn_rig import RESOURCES, Rig
from tests.workers.turn.turns import through

QUEUE = "replicaset"


class Kept_:
    """In place of Redis."""

    def __init__(self) -> None:
        self.of: dict[str, bytes] = {}
        self.windows: dict[str, int] = {}
        self.differences: list[Difference] = []

    def courses(self, queue: str, key_names: Sequence[str]) -> list[bytes | None]:
        assert queue == QUEUE
        return [self.of.get(key) for key in key_names]

    def keep(self, queue: str, kept: Kept) -> bool:
        for key, course in kept.courses.items():
            self.of.pop(key, None)
            if course is not None:
                self.of[key] = course
        for verdict, count in kept.windows.items():
            self.windows[verdict] = self.windows.get(verdict, 0) + count
        self.differences += kept.differences
        return True


class Shadowed:
    """``decide``: what the dry run decides by, in place of the ReplicaSet's."""

    def __init__(self, decide: Callable[..., Any] | None = None, version: tuple[int, int] = (1, 30)) -> None:
        self.rig = rig = Rig(kube_api_qps=0.0)
        self.kept, self._decide = Kept_(), decide
        store = MemoryStore(rig.clock.wall_ms)
        store.bootstrap(1)
        self.broker = MemoryBroker(store, 1)
        self._ingestor = Ingestor(rig.world, lambda: self.broker, "shadow")
        for resource in RESOURCES:
            self._ingestor.stage(resource)
            self._ingestor.commit(resource)
        assert self.broker.open(RESOURCES) == ""
        record, reads = Recorder(self.kept, lambda: version), OnlyReads(rig.api)
        self._engine = DryRunEngine(self.broker, reads, rig.settings, rig.clock, (QUEUE,), record)  # type: ignore[arg-type]
        self._engine.register("dry", "supervisor")

    def read(self, resource: str, events: int = 100_000) -> None:
        """Its cache follows the API by so many events."""
        self._ingestor.step(resource, events)

    def turns(self) -> None:
        """All that are queued."""
        decide = self._decide

        def entry(queue: str) -> Any:
            found: Any = entry_of(queue)
            return found if decide is None else msgspec.structs.replace(found, decide=decide)

        with patch("oarlock.workers.turn.engine.turn_engine.entry_of", entry):
            while isinstance(batch := self._engine.claim("dry", 8), Batch):
                for claim in batch.claims:
                    assert self._engine.finish([through(self._engine, batch, claim)]) == [0]

    def follow(self, dice: Random) -> None:
        """See what has happened event by event, each resource for itself, with turns in between, to the end."""
        for _ in range(400):
            self.read(dice.choice(RESOURCES), dice.choice((1, 1, 2, 5)))
            if dice.random() < 0.7:
                self.turns()
        for resource in RESOURCES:
            self.read(resource)
        self.turns()

    def later(self, by_ms: int) -> None:
        """Time goes by, and every owner is looked at once more."""
        self.rig.later(by_ms)
        self.broker.due()
        self.broker.add(QUEUE, list(self.kept.of))
        self.turns()

    def course(self, key: str = "default/web") -> Course:
        found = decoded(self.kept.of[key])
        assert found is not None
        return found
