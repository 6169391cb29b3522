"""Controllers of one's own whose code is new: the cache is written anew, and every object is looked at again."""

from __future__ import annotations

import pytest

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.workers.supervisor.queue_anew import QueueAnew
from tests.workers.ingest.ingest_api import replicaset_json
from tests.workers.ingest.ingest_rig import REPLICASETS, TEST_CLOCK, Rig

OWNERS = 7
QUEUE = "replicaset"


@pytest.fixture
def opened(rig: Rig) -> Rig:
    """An open epoch whose every key was looked at; its ingestor has gone."""
    for number in range(OWNERS):
        rig.api.put(REPLICASETS, replicaset_json("x", f"web{number}", f"rs{number}", labels={"app": "a"}))
    rig.open(rig.start("before"))
    rig.work()
    rig.processes.clear()
    return rig


def broker(rig: Rig) -> RedisBroker:
    return RedisBroker(rig.server.admin, rig.server.epoch().epoch, clock=TEST_CLOCK)


@pytest.mark.parametrize(("anew", "turns"), [(False, 0), (True, OWNERS)])
def test_an_ingestor_lists_when_it_first_joins(opened: Rig, anew: bool, turns: int) -> None:
    after = opened.start("after", anew=anew)
    opened.run_for(3_000)
    assert after.coordinator.phase == "OPEN"
    assert [each.lists for each in after.reflectors.values()] == [int(anew)] * 2
    assert opened.work() == turns
    opened.api.put(REPLICASETS, replicaset_json("x", "late", "rs-late", labels={"app": "a"}))
    after.catch_up()
    opened.run_for(3_000)
    assert opened.work() == 1
    assert [each.lists for each in after.reflectors.values()] == [int(anew)] * 2, "once is enough"
    assert opened.check_cache() == 2


def test_a_supervisor_queues_every_object(opened: Rig) -> None:
    anew = QueueAnew([QUEUE, "daemonset-node-updates"])
    assert anew.left == [QUEUE], "a fan-out wakes nobody but the owners, which are queued themselves"
    for _ in range(10):
        if anew.left:
            anew.step(broker(opened))
    assert not anew.left
    assert opened.work() == OWNERS


def test_a_step_that_fails_is_made_again(opened: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    anew, server = QueueAnew([QUEUE]), broker(opened)

    def silent(*_: object, **__: object) -> None:
        raise BrokerUnreachable("no answer")

    for call in ("page", "add"):
        with monkeypatch.context() as patch:
            patch.setattr(server, call, silent)
            with pytest.raises(BrokerUnreachable):
                anew.step(server)
        assert anew.left
    anew.step(server)
    assert opened.work() == OWNERS
