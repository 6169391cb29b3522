"""A whole worker in memory: the real engine over the broker's twin and a simulated API, under a clock moved by hand.

Nothing runs by itself: ``read`` lets the cache follow the API, ``turns`` works off what is queued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import orjson

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.memory.state import QueueState
from oarlock.broker.values.claims import Batch, Claim, Idle
from oarlock.broker.values.errors import ClaimLost
from oarlock.broker.values.turns import Finish
from oarlock.cluster.answer import NO_ANSWER, PAST_DEADLINE, Answer
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects.model import Condition, Pod, ReplicaSet
from oarlock.controllers.objects.selector import LabelSelector
from oarlock.controllers.pods.events import Event
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.steps import Grant, Listed, TurnFailed, Write
from tests.manual_clock import ManualClock
from tests.simulation.actors import Ingestor
from tests.simulation.world import World, as_json
from tests.workers.turn.turns import arrived, through

RESOURCES = ("pods", "replicasets")
WORKER = "worker-1"


class RigWorld(World):
    """The simulation's cluster, which keeps conditions as well."""

    def _status(self, write: Write) -> Answer:
        before = self.owners[write.name][1].status.conditions if write.name in self.owners else ()
        answer = super()._status(write)
        if answer.ok:
            rv, owner = self.owners[write.name]
            given = orjson.loads(write.body)["status"].get("conditions", before) or ()
            conditions = tuple(
                each if isinstance(each, Condition) else Condition(each["type"], each["status"], each["reason"])
                for each in given
            )
            status = msgspec.structs.replace(owner.status, conditions=conditions)
            self.owners[write.name] = (rv, msgspec.structs.replace(owner, status=status))
            self.journal[-1].obj = self.owners[write.name][1]
        return answer


@dataclass
class RigApi:
    """Answers at once; ``refuse`` may answer in the world's place. Keeps what was asked of it."""

    world: RigWorld
    clock: ManualClock
    refuse: Callable[[Write], Answer | None] = lambda write: None
    grants: list[Grant] = field(default_factory=list)
    """What the rate limit grants next; when it is empty, all."""
    answers_probes: bool = True
    writes: list[Write] = field(default_factory=list)
    sends: list[tuple[tuple[Write, ...], int, bool]] = field(default_factory=list)
    reads: list[tuple[str, str]] = field(default_factory=list)
    lists: int = 0
    probes: int = 0
    told: list[tuple[str, str, Event]] = field(default_factory=list)
    closed: bool = False
    is_proven: bool = True

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        self.sends.append((writes, deadline_ms, prepaid))
        if self.clock.mono_ms() >= deadline_ms:
            return arrived([PAST_DEADLINE] * len(writes))
        self.writes += writes
        return arrived([self.refuse(write) or self.world.handle(write) for write in writes])

    def read(self, resource: str, namespace: str, names: tuple[str, ...]) -> Future[list[Answer]]:
        self.reads += [(resource, name) for name in names]
        return arrived([self.world.get(resource, name) for name in names])

    def list_live(self, resource: str, namespace: str, selector: LabelSelector | None = None) -> Future[Listed]:
        self.lists += 1
        meant = [each for each in self.world.pods.values() if selector is None or selector.matches(each[1].labels)]
        items = [orjson.dumps(as_json(rv, obj)) for rv, obj in meant]
        return arrived(Listed(str(self.world.rv), items))

    def reserve(self, count: int, behind: int = 0) -> Grant:
        return self.grants.pop(0) if self.grants else Grant(count, 0)

    def promise(self, count: int, wait_s: float) -> None:
        """No share is too small: a turn has what its own limit grants."""

    def redeem(self, count: int) -> None:
        pass

    def tell(self, owner: ReplicaSet, owner_rv: str, flavour: Flavour, events: Iterable[Event]) -> None:
        self.told += [(owner.name, owner_rv, event) for event in events]

    def probe(self) -> bool:
        self.probes += 1
        return self.answers_probes

    def close(self) -> None:
        self.closed = True


class Ended(NamedTuple):
    """One turn: its key, how it ended, and the error where it failed."""

    key: str
    finish: Finish | None
    error: str
    failures: int
    """Failed turns in a row by now; -1: the claim was lost."""


class Rig:
    """``settings`` as wanted; ``api.writes`` are the requests so far."""

    def __init__(self, queues: tuple[str, ...] = ("replicaset",), **settings: Any) -> None:
        self.clock, self.settings = ManualClock(), Settings(**settings)
        self.store = MemoryStore(self.clock.wall_ms)
        self.store.bootstrap(1)
        self.broker = MemoryBroker(self.store, 1)
        self.world = RigWorld(self.clock.mono_ms)
        self.api = RigApi(self.world, self.clock)
        self.engine = self.worker(WORKER, queues)
        self._ingestor = Ingestor(self.world, lambda: self.broker, "ingestor")
        for resource in RESOURCES:
            self._ingestor.stage(resource)
            self._ingestor.commit(resource)
        assert self.broker.open(RESOURCES) == ""

    def worker(self, name: str, queues: tuple[str, ...] = ("replicaset",)) -> Engine:
        """One more worker of the fleet."""
        engine = Engine(self.broker, self.api, self.settings, self.clock, queues)
        engine.register(name, "supervisor")
        return engine

    # -- the cluster

    def owner(self, replicas: int, name: str = "web", **fields: Any) -> str:
        """A new ReplicaSet, and the cache has it. Returns its UID."""
        uid = self.world.add_owner(name, replicas)
        if fields:
            self.world.change_owner(name, **fields)
        self.read("replicasets")
        return uid

    def pods(self, uid: str) -> list[Pod]:
        """Active pods of the owner, as the API has them."""
        return self.world.active(uid)

    def bare_pod(self, name: str, labels: dict[str, str], **fields: Any) -> None:
        """A pod that somebody else made."""
        self.world.serial += 1
        made = Pod("default", name, phase="Pending", labels=labels, uid=f"pod-{self.world.serial}")
        self.world._commit("pods", name, msgspec.structs.replace(made, **fields))

    def read(self, resource: str = "", events: int = 100_000) -> None:
        """The cache follows the API by so many events of the resource, or of both."""
        for each in (resource,) if resource else RESOURCES:
            self._ingestor.step(each, events)

    # -- the worker

    def claim(self) -> Batch:
        batch = self.engine.claim(WORKER, 8)
        assert isinstance(batch, Batch), batch
        return batch

    def run(self, batch: Batch, claim: Claim) -> Ended:
        """One turn and its end."""
        try:
            finish, error = through(self.engine, batch, claim), ""
        except TurnFailed as failure:
            finish, error = failure.finish, str(failure)
        except ClaimLost:
            return Ended(claim.key, None, "lost", -1)
        return Ended(claim.key, finish, error, self.engine.finish([finish])[0])

    def turns(self) -> list[Ended]:
        """Every turn that is due by now, and those they lead to at once."""
        ended: list[Ended] = []
        while isinstance(batch := self.engine.claim(WORKER, 8), Batch):
            ended += [self.run(batch, claim) for claim in batch.claims]
            assert len(ended) < 100, "it never ends"
        assert batch is Idle.EMPTY
        return ended

    def rest(self, rounds: int = 50) -> None:
        """Let the cache follow and the worker work until nothing happens any more, without delays."""
        for _ in range(rounds):
            at = self.world.rv
            self.read()
            if not self.turns() and self.world.rv == at:
                return
        raise AssertionError("it never comes to rest")

    def later(self, by_ms: int) -> None:
        """Move the clock; what has become due is queued."""
        self.clock.advance(by_ms)
        self.broker.due()

    def count(self, verb: str) -> int:
        """Requests of a verb so far."""
        return sum(write.verb == verb for write in self.api.writes)

    @property
    def queue(self) -> QueueState:
        """What the broker keeps of the queue."""
        return self.store.state.queue("replicaset")

    def record(self, key: str = "default/web") -> list[str]:
        """The fields of the record, without their facts."""
        found = self.queue.expected(key, self.clock.wall_ms())
        return [] if found is None else sorted(f"{name}: {value.split()[0]}" for name, value in found.fields.items())


def fail_with(answer: Answer, verb: str, times: int = 1_000_000) -> Callable[[Write], Answer | None]:
    """For ``refuse``: so many writes of a verb get this answer and are not carried out."""
    left = [times]

    def refuse(write: Write) -> Answer | None:
        if write.verb != verb or left[0] == 0:
            return None
        left[0] -= 1
        return answer

    return refuse


UNANSWERED = Answer(NO_ANSWER, error="no answer within 4 s")
