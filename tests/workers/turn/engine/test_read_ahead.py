"""A worker that has nothing to do reads its local caches, so that the first turn that needs them need not."""

import pytest

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.values.claims import Batch
from oarlock.broker.values.objects import Delta
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.engine.turn_engine import READ_AHEAD_AGAIN_MS
from tests.workers.turn.daemon_rig import QUEUE, SETTINGS, DaemonRig
from tests.workers.turn.engine.test_local_cache import write
from tests.workers.turn.turns import through


class Counting(MemoryBroker):
    """Counts what is read ahead."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store, 1)
        self.read: list[Delta] = []

    def local_cache(self, resource: str) -> Delta:
        self.read.append(super().local_cache(resource))
        return self.read[-1]


def worker(rig: DaemonRig, *queues: str) -> tuple[Counting, Engine]:
    broker = Counting(rig.store)
    engine = Engine(broker, rig.api, SETTINGS, rig.clock, queues)
    engine.register("new", "s")
    return broker, engine


def claimed(engine: Engine) -> Batch:
    batch = engine.claim("new", 8)
    assert isinstance(batch, Batch)
    return batch


def test_who_has_waited_is_handed_what_has_changed_since() -> None:
    rig = DaemonRig(nodes=3)
    _, engine = worker(rig, QUEUE)
    engine.wait(0)
    rig.node("n4")
    rig.read("nodes")
    batch = claimed(engine)
    (delta,) = batch.local_caches.values()
    assert (delta.full, [name for name, _ in delta.changed]) == (False, ["n4"])
    through(engine, batch, batch.claims[0])
    assert sorted(pod.target_node for pod in rig.pods()) == ["n1", "n2", "n3", "n4"]


def test_who_is_given_a_key_at_once_is_handed_all() -> None:
    rig = DaemonRig(nodes=3)
    broker, engine = worker(rig, QUEUE)
    (delta,) = claimed(engine).local_caches.values()
    assert (delta.full, len(delta.changed), broker.read) == (True, 3, [])


def test_it_is_read_once() -> None:
    rig = DaemonRig(nodes=3)
    broker, engine = worker(rig, QUEUE)
    for _ in range(3):
        engine.wait(0)
    assert [len(delta.changed) for delta in broker.read] == [3]


@pytest.mark.parametrize("queue", ["replicaset", "daemonset-node-updates"])
def test_who_needs_none_reads_none(queue: str) -> None:
    broker, engine = worker(DaemonRig(nodes=3), queue)
    engine.wait(0)
    assert broker.read == []


def test_before_the_first_list_it_is_asked_for_again() -> None:
    rig = DaemonRig(nodes=3)
    rig.store.state.watermark.pop("nodes")
    broker, engine = worker(rig, QUEUE)
    engine.wait(0)
    engine.wait(0)
    rig.clock.advance(READ_AHEAD_AGAIN_MS)
    engine.wait(0)
    assert broker.read == [Delta(""), Delta("")]


def test_what_cannot_be_read_is_left_to_the_turns_that_need_it(caplog: pytest.LogCaptureFixture) -> None:
    """A worker also serves others."""
    rig = DaemonRig(nodes=3)
    node = write(rig, "n2", b"junk")
    broker, engine = worker(rig, QUEUE)
    with caplog.at_level("WARNING"):
        for _ in range(3):
            engine.wait(0)
    assert len(broker.read) == 1, "again only after a while"
    assert [record.getMessage().split(" why=")[0] for record in caplog.records] == [
        'event="local cache refused" resource=nodes'
    ]
    write(rig, "n2", node)
    rig.clock.advance(READ_AHEAD_AGAIN_MS)
    engine.wait(0)
    assert not next(iter(claimed(engine).local_caches.values())).full
