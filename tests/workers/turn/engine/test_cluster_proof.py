"""Before its first write a worker proves that its cluster is that of the objects in Redis; till then it sends none."""

from __future__ import annotations

import logging
from concurrent.futures import Future

import pytest
from msgspec.structs import replace

from oarlock.cluster.answer import NOT_SENT, PAST_DEADLINE, Answer
from oarlock.cluster.outcome import Outcome, of_create
from oarlock.controllers.objects.model import ReplicaSet
from oarlock.sandbox.apiserver.http.faults import Action, Fault
from oarlock.workers.process.clock import SystemClock
from oarlock.workers.turn.engine.api import KubeApi
from oarlock.workers.turn.engine.cluster_proof import PAUSE_S, TOLD_AT, ClusterProof
from oarlock.workers.turn.steps import Write
from tests.workers.turn.engine.test_api import Server, api, connect, creates, server, soon_ms
from tests.workers.turn.turn_rig import Rig, RigApi
from tests.workers.turn.turns import arrived

__all__ = ["api", "connect", "server"]


def first(api: KubeApi, owner: ReplicaSet) -> Outcome:
    (write,) = creates(owner, 1)
    (answer,) = api.send_first(owner, "replicasets", (write,), soon_ms(), True).result(10)
    if answer.code == NOT_SENT:
        assert answer.message
    return of_create(answer)


def test_an_owner_that_is_there_is_proof(server: Server, api: KubeApi) -> None:
    _, owner = server.owner()
    assert not api.is_proven
    assert first(api, owner) is Outcome.DONE
    assert api.is_proven


@pytest.mark.parametrize("other", [{"uid": "of-another-cluster"}, {"name": "nowhere"}], ids=["another UID", "no such"])
def test_without_one_nothing_is_sent(
    server: Server, api: KubeApi, other: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """One that is not there may have been deleted just now. Several in a row are told, once."""
    now_s = [100.0]
    api._proof = ClusterProof(lambda: now_s[0])
    _, owner = server.owner()
    with caplog.at_level(logging.ERROR, "oarlock.worker"):
        for number in range(1, TOLD_AT + 3):
            assert first(api, replace(owner, **other)) is Outcome.NOT_SENT
            assert caplog.text.count("another cluster") == (number >= TOLD_AT)
            assert api.probe() == (number < TOLD_AT)
    assert server.objects("Pod") == {}
    assert not api.is_proven
    assert not api.probe(), "no key is claimed for a while"
    now_s[0] += PAUSE_S
    assert api.probe()
    assert first(api, owner) is Outcome.DONE, "the next owner is looked for all the same"
    assert api.is_proven


def test_a_server_that_does_not_say_is_no_proof(server: Server, api: KubeApi) -> None:
    _, owner = server.owner()
    server.inject(Fault(Action.REFUSE, verbs=("get",), count_max=1, duration_s=60.0))
    assert first(api, owner) is Outcome.NOT_SENT
    assert server.objects("Pod") == {}
    assert first(api, owner) is Outcome.DONE


def test_the_deadline_counts_after_the_proof(server: Server, api: KubeApi) -> None:
    """However long the look for the owner takes: the lease may have ended meanwhile."""
    _, owner = server.owner()
    server.inject(Fault(Action.DELAY_BEFORE, verbs=("get",), count_max=1, delay_ms=(400, 400)))
    deadline_ms = SystemClock().mono_ms() + 200
    (answer,) = api.send_first(owner, "replicasets", tuple(creates(owner, 1)), deadline_ms, True).result(10)
    assert answer == PAST_DEADLINE
    assert api.is_proven
    assert server.objects("Pod") == {}


class Doubtful(RigApi):
    """Whether the owner is there is said by ``here``. ``asked``: resource and UID of each that was looked for."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig.world, rig.clock)
        self.is_proven, self.here = False, False
        self.asked: list[tuple[str, str]] = []

    def send_first(
        self, owner: ReplicaSet, resource: str, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool
    ) -> Future[list[Answer]]:
        self.asked.append((resource, owner.uid))
        if not self.here:
            return arrived([Answer(NOT_SENT, error="no such owner")] * len(writes))
        self.is_proven = True
        return self.send(writes, deadline_ms, prepaid)


def test_a_turn_in_another_cluster_fails_and_is_tried_again() -> None:
    rig = Rig()
    uid = rig.owner(3)
    rig.api = api = Doubtful(rig)
    rig.engine._api = api  # type: ignore[assignment]  # as of a process that has just begun
    rig.turns()
    assert set(api.asked) == {("replicasets", uid)}
    assert api.writes == []
    assert rig.pods(uid) == []
    assert set(rig.queue.delayed) == {"default/web"}, "it is tried again"
    api.here, looked = True, len(api.asked)
    rig.later(60_000)
    rig.rest()
    assert len(rig.pods(uid)) == 3
    assert len(api.asked) == looked + 1, "one owner is proof for all writes"
