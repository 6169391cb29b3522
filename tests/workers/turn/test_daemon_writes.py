"""A daemon pod's create or delete that nobody answers concerns its node alone; the other nodes go on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock.cluster.answer import Answer
from oarlock.controllers.objects.model import Pod
from oarlock.workers.turn.expectations import REST_MS
from oarlock.workers.turn.steps import Write
from tests.controllers.pod_names import daemon_name
from tests.simulation import daemon_docs
from tests.simulation.traffic import refusal
from tests.workers.turn.daemon_rig import DaemonRig

ERROR = refusal(500, "InternalError")


def refusing(
    verb: str, *names: str, after: Callable[[Write], Answer] | None = None
) -> Callable[[Write], Answer | None]:
    """Answers such writes with 500, after they took effect or in their place."""

    def refuse(write: Write) -> Answer | None:
        if write.verb != verb or (names and write.name not in names) or write.resource != "pods":
            return None
        if after is not None:
            after(write)
        return ERROR

    return refuse


def seconds(rig: DaemonRig, count: int) -> None:
    for _ in range(count):
        rig.rest()
        rig.later(1_000)
    rig.rest()


def roll(rig: DaemonRig) -> None:
    """Another template."""
    rig.change("daemonsets", "agent", lambda doc: doc["spec"].update(template=daemon_docs.template("agent", "v2")))


def status(rig: DaemonRig) -> dict[str, int]:
    found: dict[str, int] = rig.world.tables["daemonsets"]["agent"].doc["status"]
    return found


def nodes_of(pods: list[Pod]) -> list[str]:
    return sorted(pod.target_node for pod in pods)


def test_the_other_nodes_get_their_pods() -> None:
    rig = DaemonRig(nodes=4)
    rig.api.refuse = refusing("create", daemon_name("agent", rig.uid, "n2", 0))
    rig.read()
    seconds(rig, 5)
    assert nodes_of(rig.pods()) == ["n1", "n3", "n4"]
    assert (status(rig)["currentNumberScheduled"], status(rig)["numberUnavailable"]) == (3, 1)
    rig.api.refuse = lambda write: None
    seconds(rig, 30)
    assert nodes_of(rig.pods()) == ["n1", "n2", "n3", "n4"]
    assert {pod.name for pod in rig.pods("n2")} == {daemon_name("agent", rig.uid, "n2", 0)}, "no other name was taken"


@pytest.mark.parametrize("surge", [0, 1])
def test_a_failed_pod_of_another_node_is_replaced(surge: int) -> None:
    rig = DaemonRig(nodes=3, unavailable=1 - surge, surge=surge)
    rig.api.refuse = refusing("create", daemon_name("agent", rig.uid, "n2", 0))
    rig.read()
    seconds(rig, 2)
    [failed] = rig.pods("n3")
    rig.run(failed, "Failed")
    seconds(rig, 4)
    [pod] = rig.pods("n3")
    assert (pod.uid != failed.uid, pod.phase) == (True, "Running")
    assert (pod.name == failed.name) is not bool(surge), "where two are allowed nobody waits for the first to go"


def test_its_name_rests_for_a_while_after_it_has_gone() -> None:
    """Who polls the pod by its name is to see that it has gone; the mark survives whoever dies."""
    rig = DaemonRig(nodes=1)
    failed = rig.fail()
    rig.rest()
    assert rig.pods() == []
    rig.later(REST_MS - 1)
    rig.rest()
    assert rig.pods() == []
    rig.later(1)
    rig.rest()
    assert [pod.name for pod in rig.pods()] == [failed.name]
    assert not any(field.startswith("rest ") for field in rig.record())


def test_a_replaced_pod_does_not_rest() -> None:
    rig = DaemonRig(nodes=1)
    rig.rest()
    roll(rig)
    rig.rest()
    assert [pod.phase for pod in rig.pods()] == ["Running"]


@pytest.mark.parametrize("takes_effect", [False, True])
def test_a_rollout_goes_on_beside_a_delete_without_an_answer(takes_effect: bool) -> None:
    """Its node counts as unavailable, so with room for two the others are replaced one by one."""
    rig = DaemonRig(nodes=5, unavailable=2)
    rig.rest()
    old = {pod.target_node: pod for pod in rig.pods()}
    after = rig.world.handle if takes_effect else None
    rig.api.refuse = refusing("delete", old["n1"].name, after=after)
    roll(rig)
    for _ in range(6):
        rig.read()
        rig.turns()
        down = [pod for pod in rig.pods() if pod.deleting_ms or not pod.ready]
        assert len(down) + (5 - len(rig.pods())) <= 2
        rig.later(100)
        rig.rest()
    assert {pod.uid for pod in rig.pods()} & {pod.uid for pod in old.values()} == (
        set() if takes_effect else {old["n1"].uid}
    )
    rig.api.refuse = lambda write: None
    seconds(rig, 30)
    assert len({rig.hash_of(pod) for pod in rig.pods()}) == 1


def test_a_delete_that_is_not_wanted_any_more() -> None:
    """The template goes back while the deletes of the rollout are answered 500: no pod goes for it."""
    rig = DaemonRig(nodes=3, unavailable=3)
    rig.rest()
    before = {pod.uid for pod in rig.pods()}
    rig.api.refuse = refusing("delete")
    roll(rig)
    rig.read()
    rig.turns()
    assert sum(write.verb == "delete" for write in rig.api.writes) >= 3
    rig.change("daemonsets", "agent", lambda doc: doc["spec"].update(template=daemon_docs.template("agent", "v1")))
    rig.api.refuse = lambda write: None
    seconds(rig, 30)
    assert {pod.uid for pod in rig.pods()} == before


def test_a_surge_counts_what_may_have_come() -> None:
    """maxSurge 1 of three nodes: while one create has no answer no other node gets a second pod."""
    rig = DaemonRig(nodes=3, unavailable=0, surge=1)
    rig.rest()
    rig.api.refuse = refusing("create")
    roll(rig)
    seconds(rig, 3)
    creates = {write.name for write in rig.api.writes if write.verb == "create" and write.resource == "pods"}
    assert len(creates) == 3 + 1, "one of each node at first, and one beside"
    rig.api.refuse = lambda write: None
    seconds(rig, 40)
    assert len({rig.hash_of(pod) for pod in rig.pods()}) == 1
    assert len(rig.pods()) == 3
