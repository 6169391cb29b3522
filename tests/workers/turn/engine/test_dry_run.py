"""An engine that runs dry: it decides all that another would, keeps that for who asks, and leaves nothing behind."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from concurrent.futures import Future

import orjson
import pytest

from oarlock.broker.values.claims import Batch
from oarlock.broker.values.turns import Finish
from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client
from oarlock.cluster.reader import Reader
from oarlock.controllers.objects.selector import LabelSelector
from oarlock.workers.process.settings import BadSetting, Settings
from oarlock.workers.turn.engine.api import KubeApi
from oarlock.workers.turn.engine.dry_run import Decision, DryRunEngine
from oarlock.workers.turn.engine.read_api import ReadApi
from oarlock.workers.turn.steps import Listed, Write
from tests.workers.turn.daemon_rig import NODE_QUEUE, QUEUE, DaemonRig
from tests.workers.turn.turn_rig import Rig
from tests.workers.turn.turns import through

Ended = list[tuple[Decision, Finish]]


class OnlyReads:
    """The rig's API without its methods that write."""

    def __init__(self, api: object) -> None:
        self._api = api

    def read(self, resource: str, namespace: str, names: tuple[str, ...]) -> Future[list[Answer]]:
        return self._api.read(resource, namespace, names)  # type: ignore[attr-defined, no-any-return]

    def list_live(self, resource: str, namespace: str, selector: LabelSelector | None = None) -> Future[Listed]:
        return self._api.list_live(resource, namespace, selector)  # type: ignore[attr-defined, no-any-return]


def dry(rig: Rig | DaemonRig, queues: tuple[str, ...], kept: Ended | None = None) -> list[Write]:
    """What one round of turns over all that is queued would write."""
    found: Ended = [] if kept is None else kept

    def record(ended: Sequence[tuple[Decision, Finish]]) -> None:
        found.extend(ended)

    settings = rig.settings if isinstance(rig, Rig) else Settings()
    engine = DryRunEngine(rig.broker, OnlyReads(rig.api), settings, rig.clock, queues, record)  # type: ignore[arg-type]
    engine.register(f"dry-{len(found)}", "supervisor")
    before = len(found)
    while isinstance(batch := engine.claim(f"dry-{before}", 8), Batch):
        for claim in batch.claims:
            assert engine.finish([through(engine, batch, claim)]) == [0]
    return [write for decision, _ in found[before:] for write in decision.writes]


def test_all_creates_of_a_burst_are_decided_and_none_is_announced() -> None:
    rig = Rig(kube_api_burst=3)
    rig.owner(7)
    kept: Ended = []
    writes = dry(rig, ("replicaset",), kept)
    assert [write.verb for write in writes] == ["create"] * 7
    ((decision, finish),) = kept
    assert [entry.target for entry in decision.entries] == [write.target for write in writes]
    assert finish.did == "create pods x7"
    assert rig.record() == []
    assert not rig.queue.min_rv
    assert not rig.queue.unsettled
    assert not rig.api.writes


def test_what_was_not_done_is_decided_again() -> None:
    rig = Rig()
    rig.owner(2)
    first = dry(rig, ("replicaset",))
    rig.broker.add("replicaset", ["default/web"])
    assert dry(rig, ("replicaset",)) == first


def test_deletes_name_what_another_would_delete() -> None:
    rig = Rig()
    uid = rig.owner(3)
    rig.rest()
    rig.world.change_owner("web", replicas=1)
    rig.read("replicasets")
    deletes = [write for write in dry(rig, ("replicaset",)) if write.verb == "delete"]
    rig.broker.add("replicaset", ["default/web"])
    rig.turns()
    assert {write.uid for write in deletes} == {write.uid for write in rig.api.writes if write.verb == "delete"}
    assert len(deletes) == 2
    assert len(rig.pods(uid)) == 1


def test_at_rest_nothing_is_decided() -> None:
    rig = Rig()
    rig.owner(3)
    rig.rest()
    rig.broker.add("replicaset", ["default/web"])
    assert dry(rig, ("replicaset",)) == []


def test_an_orphan_is_looked_at_live_before_it_would_be_adopted() -> None:
    rig = Rig()
    rig.owner(1)
    rig.bare_pod("lone", {"app": "web"})
    rig.read()
    writes = dry(rig, ("replicaset",))
    assert [(write.verb, write.name) for write in writes if write.verb != "status"] == [("patch", "lone")]
    assert ("replicasets", "web") in rig.api.reads


def test_a_daemonset_says_for_which_nodes_it_would_create() -> None:
    rig = DaemonRig(nodes=3)
    kept: Ended = []
    dry(rig, (NODE_QUEUE, QUEUE), kept)
    decision = next(decision for decision, _ in kept if decision.entries)
    writes = decision.writes
    revisions = [write for write in writes if write.resource == "controllerrevisions"]
    assert [write.verb for write in revisions] == ["create"]
    assert sorted(entry.hint for entry in decision.entries) == ["node=n1", "node=n2", "node=n3"]
    assert decision.nodes
    (hash_,) = {orjson.loads(write.body)["metadata"]["labels"]["controller-revision-hash"] for write in writes[1:4]}
    assert hash_ == orjson.loads(revisions[0].body)["metadata"]["labels"]["controller-revision-hash"]
    assert not rig.api.writes


@pytest.mark.parametrize(("reads", "writes"), [(Reader, Client), (ReadApi, KubeApi)])
def test_what_only_reads_has_no_method_that_writes(reads: type, writes: type) -> None:
    """By name: what a class that writes adds is what it writes by, or serves that."""
    added = {name for name, _ in inspect.getmembers(writes, callable)} - {
        name for name, _ in inspect.getmembers(reads, callable)
    }
    known = {"create", "put", "patch", "apply", "delete", "_write", "send", "_send", "_sent", "tell", "_busy"}
    known |= {"send_first", "_send_first", "promise", "_promise", "redeem"}
    assert added
    assert added <= known
    source = inspect.getsource(inspect.getmodule(reads) or reads)
    assert not [word for word in ("transport.write", "EventRecorder", "Client(") if word in source]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "OARLOCK_FLEET_ID=oarlock cannot name a fleet that runs dry"),
        ({"fleet_id": "Shadow"}, "OARLOCK_FLEET_ID=Shadow cannot name"),
        ({"fleet_id": "shadow", "operator": "mine.py"}, "OARLOCK_OPERATOR=mine.py"),
        ({"fleet_id": "shadow", "shards": 2}, "OARLOCK_SHARDS=2"),
    ],
)
def test_a_fleet_that_cannot_run_dry(given: dict[str, object], told: str) -> None:
    with pytest.raises(BadSetting, match=told):
        Settings(dry_run=True, **given)  # type: ignore[arg-type]


def test_its_keys_and_its_lease_are_those_of_no_fleet_that_writes() -> None:
    shadow = Settings(dry_run=True, fleet_id="shadow")
    assert (shadow.tag, shadow.tags) == ("shadow.dry-run", ("shadow.dry-run",))
    assert Settings(fleet_id="shadow").tag == "0"
    assert Settings(fleet_id="shadow", operator="mine.py").tag == "shadow"
    with pytest.raises(BadSetting):
        Settings(fleet_id="shadow.dry-run", operator="mine.py")
