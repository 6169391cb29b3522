"""The send window of a key that waited in its batch behind a slow one: what is sent again needs a window too."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.errors import ClaimLost
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Entry
from oarlock.cluster.answer import NO_ANSWER, Answer
from oarlock.controllers.objects import codec
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.steps import TurnFailed, Write
from tests.controllers.builders import rs
from tests.controllers.pod_names import slot_name
from tests.manual_clock import ManualClock
from tests.workers.turn.quiet_api import QuietApi
from tests.workers.turn.turns import arrived, through

SETTINGS = Settings()
QUEUE = "replicaset"


class Api(QuietApi):
    """Answers nothing; notes how much of its window each request had left."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.windows_ms: list[int] = []

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        self.windows_ms.append(deadline_ms - self._clock.mono_ms())
        return arrived([Answer(NO_ANSWER, error="no answer")] * len(writes))


class Rig:
    """Two owners in one batch; an earlier holder of the second left a create unanswered."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        store = MemoryStore(self.clock.wall_ms)
        store.bootstrap(1)
        self.broker = MemoryBroker(store, 1)
        for resource, generation in (("pods", "p"), ("replicasets", "r")):
            self.broker.stage(resource, generation, [])
            self.broker.commit_list(resource, generation, "1")
        owners = [rs(1, name=each, uid=each) for each in ("a", "b")]
        events = [
            Event(each.key, str(at), each.uid, codec.encode(each), (), (f"{QUEUE}:{each.key}",))
            for at, each in enumerate(owners, 2)
        ]
        self.broker.ingest("replicasets", "1", "3", events)
        self.broker.open(["pods", "replicasets"])
        self.api = Api(self.clock)
        self.engine = Engine(self.broker, self.api, SETTINGS, self.clock)
        self.engine.register("dead", "s")
        for claim in self.claim("dead").claims:
            if claim.key == "default/b":
                entry = Entry("create", f"pods/{slot_name('b', 'b', 0)}")
                self.broker.announce(claim, "b", [entry], lease_ms=SETTINGS.lease_ms)
        self.broker.release("dead")
        self.engine.register("w", "s")

    def claim(self, holder: str) -> Batch:
        batch = self.engine.claim(holder, 8)
        assert isinstance(batch, Batch)
        assert [claim.key for claim in batch.claims] == ["default/a", "default/b"]
        return batch

    def second_after(self, ms: int) -> tuple[Batch, Claim]:
        """The second key of a batch, whose first took so long; its supervisor renews meanwhile."""
        batch = self.claim("w")
        for _ in range(0, ms, 1_000):
            self.clock.advance(1_000)
            self.broker.renew(["w"], lease_ms=SETTINGS.lease_ms)
        return batch, batch.claims[1]


def test_writes_are_sent_again_within_a_window_of_their_own() -> None:
    rig = Rig()
    batch, claim = rig.second_after(6_000)
    with pytest.raises(TurnFailed):
        through(rig.engine, batch, claim)
    create, status = rig.api.windows_ms
    assert create == status == SETTINGS.lease_ms - SETTINGS.send_margin_ms


def test_nothing_is_sent_again_for_a_key_that_was_lost_meanwhile() -> None:
    rig = Rig()
    batch, claim = rig.second_after(6_000)
    rig.broker.release("w")
    with pytest.raises(ClaimLost):
        through(rig.engine, batch, claim)
    assert rig.api.windows_ms == []
