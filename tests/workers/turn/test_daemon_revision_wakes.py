"""Which events of revisions wake their set, and how a rollout goes on that waits for its own."""

from __future__ import annotations

import pytest

from tests.simulation import daemon_docs
from tests.simulation.daemon_docs import Doc
from tests.workers.turn.daemon_rig import DaemonRig

REVISIONS = "controllerrevisions"


def roll(rig: DaemonRig, image: str) -> None:
    """Give the set another template."""
    rig.change("daemonsets", "agent", lambda doc: doc["spec"].update(template=daemon_docs.template("agent", image)))


def copied(rig: DaemonRig) -> None:
    """Somebody makes the current revision once more, by hand: it is the set's."""
    [name] = rig.world.tables[REVISIONS]
    doc = rig.world.tables[REVISIONS][name].doc
    doc["metadata"] |= {"name": "agent-by-hand", "uid": "by-hand"}
    doc["revision"] += 1
    rig.world.put(REVISIONS, doc)


def woken(rig: DaemonRig) -> list[str]:
    """Keys of the turns that are due."""
    return [key for key, _, _ in rig.turns()]


@pytest.mark.parametrize("surge", [0, 1])
def test_a_rollout_waits_for_its_own_revision_and_goes_on(surge: int) -> None:
    """The watch of revisions is behind: nothing else is done to the pods, and its catching up alone wakes the set."""
    rig = DaemonRig(nodes=3, unavailable=1 - surge, surge=surge)
    rig.rest()
    old = {rig.hash_of(pod) for pod in rig.pods()}
    roll(rig, "v2")
    rig.read("daemonsets")
    rig.turns()
    for _ in range(3):
        for pod in rig.pods():
            if pod.deleting_ms:
                rig.world.remove("pods", pod.name)
            elif not pod.node_name:
                rig.run(pod)
        for resource in ("pods", "nodes", "daemonsets"):
            rig.read(resource)
        rig.turns()
    assert {rig.hash_of(pod) for pod in rig.pods()} & old, "it went on without having read the revision"
    rig.api.writes.clear()
    rig.read(REVISIONS)
    assert woken(rig) == ["default/agent"]
    assert any(write.resource == "pods" for write in rig.api.writes)
    rig.rest()
    assert len(rig.pods()) == 3
    assert not {rig.hash_of(pod) for pod in rig.pods()} & old


def test_a_duplicate_stays_until_something_else_wakes_the_set() -> None:
    rig = DaemonRig(nodes=2)
    rig.rest()
    copied(rig)
    rig.read()
    assert woken(rig) == []
    rig.later(60_000)
    assert woken(rig) == []
    assert len(rig.world.tables[REVISIONS]) == 2
    rig.broker.add("daemonset", ["default/agent"])
    rig.rest()
    assert list(rig.world.tables[REVISIONS]) == ["agent-by-hand"], "the higher number stays"


def test_a_change_by_hand_wakes_nobody() -> None:
    """Such as a label: what its set cares about is put right with the next turn."""
    rig = DaemonRig()
    rig.rest()
    [name] = rig.world.tables[REVISIONS]
    rig.change(REVISIONS, name, lambda doc: doc["metadata"]["labels"].update(mine="yes"))
    rig.read()
    assert woken(rig) == []


def test_a_revision_that_is_deleted_by_hand_is_made_anew() -> None:
    rig = DaemonRig()
    rig.rest()
    [name] = rig.world.tables[REVISIONS]
    rig.world.remove(REVISIONS, name)
    rig.rest()
    assert list(rig.world.tables[REVISIONS]) == [name]


def test_an_orphan_is_adopted() -> None:
    rig = DaemonRig()
    rig.rest()
    [name] = rig.world.tables[REVISIONS]

    def let_go(doc: Doc) -> None:
        doc["metadata"]["ownerReferences"] = []

    rig.change(REVISIONS, name, let_go)
    rig.rest()
    [stored] = rig.world.tables[REVISIONS].values()
    assert [ref.uid for ref in stored.obj.owner_refs] == [rig.uid]


def test_the_lifecycle_of_a_revision() -> None:
    """As upstream's end-to-end case "should manage the lifecycle of a ControllerRevision" goes about it."""
    rig = DaemonRig(nodes=2)

    def numbers() -> dict[str, int]:
        rig.rest()
        return {name: stored.obj.revision for name, stored in rig.world.tables[REVISIONS].items()}

    [initial] = numbers()
    rig.change(REVISIONS, initial, lambda doc: doc["metadata"]["labels"].update(patched="yes"))
    copied(rig)
    assert numbers() == {initial: 1, "agent-by-hand": 2}
    rig.world.remove(REVISIONS, initial)
    assert numbers() == {"agent-by-hand": 2}
    roll(rig, "v2")
    made = numbers()
    assert sorted(made.values()) == [2, 3]
    rig.world.remove(REVISIONS, "agent-by-hand")
    assert list(numbers().values()) == [3]
