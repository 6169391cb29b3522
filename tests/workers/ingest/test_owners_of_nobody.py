"""A ReplicaSet is an owner, and an orphan where no Deployment has it. Being one does not wake it a second time."""

from __future__ import annotations

from oarlock.controllers.registry import WATCHED
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, replicaset_json
from tests.workers.ingest.ingest_rig import Rig


def test_another_ingestors_event_of_it_wakes_it_no_more(rig: Rig) -> None:
    first, second = rig.start("a"), rig.start("b")
    rig.open()
    rig.work()
    rig.api.put(REPLICASETS, replicaset_json("x", "web", "rs1", labels={"app": "a"}))
    first.catch_up()
    rig.settle(first)
    assert rig.work() == 1
    second.catch_up()
    rig.settle(second)
    assert rig.work() == 0


def test_doubts_about_its_namespace_do_not_wake_it(rig: Rig) -> None:
    rig.api.put(REPLICASETS, replicaset_json("x", "web", "rs1", labels={"app": "a"}))
    process = rig.start()
    rig.open()
    rig.work()
    process.owners.doubt_all(WATCHED[REPLICASETS])
    assert process.owners.doubtful_namespaces == {PODS: {"x"}}
    rig.run_for(100)
    assert not process.owners.in_doubt
    assert rig.work() == 0
