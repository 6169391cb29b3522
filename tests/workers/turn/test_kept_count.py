"""terminatingReplicas on servers that keep it, that drop it, and that are upgraded meanwhile."""

from __future__ import annotations

import orjson
import pytest

from oarlock.cluster.answer import Answer
from oarlock.workers.turn.steps import Write
from tests.workers.turn.turn_rig import Rig

BOTH = ["default/api", "default/web"]


class Server:
    """Answers statuses in the rig's place as an API server does: with the object as it stored it."""

    def __init__(self, rig: Rig, keeps: bool) -> None:
        self.rig, self.keeps = rig, keeps
        rig.api.refuse = self.handle

    def handle(self, write: Write) -> Answer | None:
        if write.verb != "status":
            return None
        body = orjson.loads(write.body)
        if not self.keeps:
            body["status"].pop("terminatingReplicas", None)
        answer = self.rig.world.handle(write._replace(body=orjson.dumps(body)))
        assert answer.ok
        rv, stored = self.rig.world.owners[write.name]
        said = {"replicas": stored.status.replicas}
        if stored.status.terminating is not None:
            said["terminatingReplicas"] = stored.status.terminating
        meta = {"uid": stored.uid, "resourceVersion": str(rv)}
        return Answer(200, orjson.dumps({"metadata": meta, "status": said}))


def told(rig: Rig) -> list[int | None]:
    """What the statuses say."""
    return [owner.status.terminating for _, owner in rig.world.owners.values()]


def woken(rig: Rig, *keys: str) -> int:
    """How many statuses a turn over each of these keys writes."""
    before = rig.count("status")
    rig.broker.add("replicaset", list(keys))
    rig.rest()
    return rig.count("status") - before


def settled(keeps: bool, **settings: object) -> tuple[Rig, Server]:
    """Two ReplicaSets at rest."""
    rig = Rig(**settings)
    server = Server(rig, keeps)
    for name in ("web", "api"):
        rig.owner(1, name)
    rig.rest()
    return rig, server


@pytest.mark.parametrize("keeps", [True, False])
def test_converged_owners_write_nothing(keeps: bool) -> None:
    """Whether the server keeps the count or not."""
    rig, _ = settled(keeps)
    assert told(rig) == ([0, 0] if keeps else [None, None])
    assert [woken(rig, *BOTH) for _ in range(3)] == [0, 0, 0]


def test_a_new_process_asks_once() -> None:
    """By a status that says nothing else; the answer holds for all owners."""
    rig, _ = settled(False)
    rig.engine = rig.worker("worker-2")
    assert [woken(rig, "default/web"), woken(rig, "default/api"), woken(rig, *BOTH)] == [1, 0, 0]
    kept, _ = settled(True)
    kept.engine = kept.worker("worker-2")
    assert [woken(kept, "default/web"), woken(kept, "default/api")] == [0, 0]


def test_a_server_that_is_upgraded_is_found_out() -> None:
    """By the next status that is written anyway; others get the count with their next turn."""
    rig, server = settled(False)
    server.keeps = True
    assert woken(rig, *BOTH) == 0
    rig.world.change_owner("web", replicas=2)
    rig.rest()
    assert told(rig) == [0, None]
    assert woken(rig, *BOTH) == 1
    assert told(rig) == [0, 0]


def test_nothing_is_said_where_it_is_turned_off() -> None:
    rig, _ = settled(True, terminating_replicas=False)
    assert told(rig) == [None, None]
    assert woken(rig, *BOTH) == 0
