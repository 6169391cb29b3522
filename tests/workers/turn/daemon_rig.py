"""One worker and DaemonSets as JSON, from the wire to the requests. Nothing runs by itself, nor does the clock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.values.claims import Batch
from oarlock.broker.values.turns import Finish
from oarlock.cluster.answer import Answer
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.objects.model import Pod
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.steps import Grant, TurnFailed, Write
from tests.manual_clock import ManualClock
from tests.simulation import daemon_docs
from tests.simulation.daemon_docs import Doc
from tests.simulation.daemon_world import DaemonWorld
from tests.simulation.watching import WatchingIngestor
from tests.workers.turn.quiet_api import QuietApi
from tests.workers.turn.turns import arrived, through

QUEUE, NODE_QUEUE = "daemonset", "daemonset-node-updates"
RESOURCES = ("pods", "nodes", "daemonsets", "controllerrevisions")
SETTINGS = Settings()


class Api(QuietApi):
    """``refuse`` may answer in the world's place; ``grants`` are what the rate limit has left, one a call."""

    def __init__(self, world: DaemonWorld) -> None:
        self.world = world
        self.writes: list[Write] = []
        self.grants: list[int] = []
        self.refuse: Callable[[Write], Answer | None] = lambda write: None

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        self.writes += writes
        return arrived([self.refuse(write) or self.world.handle(write) for write in writes])

    def read(self, resource: str, namespace: str, names: tuple[str, ...]) -> Future[list[Answer]]:
        return arrived([self.world.get(resource, name) for name in names])

    def reserve(self, count: int, behind: int = 0) -> Grant:
        return Grant(min(count, self.grants.pop(0)), 100) if self.grants else Grant(count, 0)


class DaemonRig:
    """A DaemonSet ``agent`` on nodes n1, n2, ...; ``api.writes`` are the requests so far."""

    def __init__(self, nodes: int = 1, unavailable: int | None = 1, surge: int = 0) -> None:
        self.clock = ManualClock()
        self.world = DaemonWorld(self.clock.mono_ms, wall_ms=self.clock.wall_ms)
        store = MemoryStore(self.clock.wall_ms)
        store.bootstrap(1)
        self.store, self.broker, self.api = store, MemoryBroker(store, 1), Api(self.world)
        for number in range(nodes):
            self.node(f"n{number + 1}")
        self.uid = self.world.uid("daemonset")
        update = daemon_docs.strategy(unavailable, surge)
        template = daemon_docs.template("agent", "v1")
        self.world.put(
            "daemonsets",
            daemon_docs.daemonset("agent", self.uid, template, update, min_ready_s=0, limit=2, numbered=False),
        )
        self._ingestor = WatchingIngestor(self.world, lambda: self.broker, "i")
        for resource in RESOURCES:
            self._ingestor.stage(resource)
            self._ingestor.commit(resource)
        self.broker.open(RESOURCES)
        self.engine = Engine(self.broker, self.api, SETTINGS, self.clock, (QUEUE, NODE_QUEUE))
        self.engine.register("w", "s")

    # -- the cluster

    def node(self, name: str, **labels: str) -> None:
        """Add a node, or give one other labels."""
        doc = daemon_docs.node(name, f"uid-{name}", "blue")
        doc["metadata"]["labels"] |= labels
        self.world.put("nodes", doc)

    def change(self, resource: str, name: str, edit: Callable[[Doc], object]) -> None:
        doc = self.world.tables[resource][name].doc
        edit(doc)
        if resource == "daemonsets":
            doc["metadata"]["generation"] += 1
        self.world.put(resource, doc)

    def pods(self, on: str = "") -> list[Pod]:
        return [pod for pod in self.world.pods_of(self.uid) if on in ("", pod.target_node)]

    def run(self, pod: Pod, phase: str = "Running") -> None:
        """Its node runs it; it is ready while it runs."""

        def edit(doc: Doc) -> None:
            doc["spec"]["nodeName"] = pod.target_node
            ready = "True" if phase == "Running" else "False"
            since = daemon_docs.rfc3339(self.clock.wall_ms())
            condition = {"type": "Ready", "status": ready, "lastTransitionTime": since}
            doc["status"] = {"phase": phase, "conditions": [condition]}

        self.change("pods", pod.name, edit)

    def fail(self) -> Pod:
        """The only pod fails, and a turn deletes it: its name is marked. The cache still has the pod."""
        self.rest()
        [failed] = self.pods()
        self.run(failed, "Failed")
        self.read()
        self.turns()
        assert self.record()[f"rest pods/{failed.name}"] == f"uid={failed.uid}"
        return failed

    # -- the worker

    def read(self, resource: str = "") -> None:
        """The cache follows the API."""
        for each in (resource,) if resource else RESOURCES:
            self._ingestor.step(each, 100_000)

    def turn(self) -> tuple[str, Finish, str]:
        """The next turn that is due: its key, its end, and the error where it failed."""
        batch = self.engine.claim("w", 1)
        assert isinstance(batch, Batch), batch
        claim = batch.claims[0]
        try:
            finish, error = through(self.engine, batch, claim), ""
        except TurnFailed as failure:
            finish, error = failure.finish, str(failure)
        self.engine.finish([finish])
        return claim.key, finish, error

    def turns(self) -> list[tuple[str, Finish, str]]:
        """Every turn that is due by now."""
        ended = []
        while any(self.store.state.queue(queue).queued for queue in (QUEUE, NODE_QUEUE)):
            ended.append(self.turn())
            assert len(ended) < 200, "it never ends"
        return ended

    def rest(self) -> None:
        """The cache follows, every pod runs, and the worker works, until nothing happens any more."""
        for _ in range(50):
            at = self.world.rv
            for pod in self.pods():
                if pod.deleting_ms:
                    self.world.remove("pods", pod.name)
                elif not pod.node_name:
                    self.run(pod)
            self.read()
            if not self.turns() and self.world.rv == at:
                return
        raise AssertionError("it never comes to rest")

    def later(self, by_ms: int) -> None:
        """Move the clock; what has become due is queued."""
        self.clock.advance(by_ms)
        self.broker.due()

    def record(self) -> dict[str, str]:
        """The record of the DaemonSet."""
        found = self.store.state.queue(QUEUE).expected("default/agent", self.clock.wall_ms())
        return {} if found is None else dict(found.fields)

    def hash_of(self, pod: Pod) -> Any:
        return pod.labels.get(HASH_LABEL)
