"""A pod whose name an earlier pod of the same record bore: a late create can bring it back."""

from __future__ import annotations

from concurrent.futures import Future

import orjson

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Finish
from oarlock.cluster.answer import NO_ANSWER, Answer
from oarlock.controllers.objects import codec
from oarlock.controllers.routing import owner_entry
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.steps import TurnFailed, Write
from tests.controllers.builders import UID, pod, rs
from tests.manual_clock import ManualClock
from tests.workers.turn.quiet_api import QuietApi
from tests.workers.turn.turns import arrived, through

SETTINGS = Settings()
TASK = "replicaset:default/web"


class Api(QuietApi):
    """Answers deletes as told."""

    def __init__(self) -> None:
        self.answer = Answer(200, orjson.dumps({"metadata": {"resourceVersion": "9"}}))

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        return arrived([self.answer if each.verb == "delete" else Answer(404, b"{}") for each in writes])


def born(name: str, uid: str, rv: str) -> Event:
    """The event of one of the owner's pods."""
    return Event(f"default/{name}", rv, uid, codec.encode(pod(name, uid=uid)), (owner_entry(UID),), (TASK,))


def test_a_delete_announced_under_the_name_of_an_answered_one_stays_announced() -> None:
    clock, api = ManualClock(), Api()
    store = MemoryStore(clock.wall_ms)
    store.bootstrap(1)
    broker = MemoryBroker(store, 1)
    for resource, generation in (("pods", "p"), ("replicasets", "r")):
        broker.stage(resource, generation, [])
        broker.commit_list(resource, generation, "1")
    broker.ingest("replicasets", "1", "2", [Event("default/web", "2", UID, codec.encode(rs(0)), (), (TASK,))])
    broker.ingest("pods", "1", "3", [born("web-x", "first", "3")])
    broker.open(["pods", "replicasets"])
    engine = Engine(broker, api, SETTINGS, clock)
    engine.register("w", "s")

    def claimed() -> tuple[Batch, Claim]:
        batch = engine.claim("w", 8)
        assert isinstance(batch, Batch)
        return batch, batch.claims[0]

    def run() -> Finish:
        try:
            return through(engine, *claimed())
        except TurnFailed as failed:
            return failed.finish

    engine.finish([run()])
    broker.ingest("pods", "3", "5", [Event("default/web-x", "4", "first", None), born("web-x", "second", "5")])
    api.answer = Answer(NO_ANSWER, error="no answer")
    engine.finish([run()])
    clock.advance(1_000)
    broker.due()
    _, again = claimed()
    assert again.expectations is not None
    [delete] = again.expectations.deletes
    assert (delete.target, delete.uid, delete.rv, delete.answered) == ("pods/web-x", "second", "5", False)
