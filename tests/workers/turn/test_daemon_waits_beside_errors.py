"""A wait for a moment that is known is kept to although something else keeps failing, whose own pauses grow."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from oarlock.cluster.answer import Answer
from oarlock.workers.turn.expectations import REST_MS
from oarlock.workers.turn.steps import Write
from tests.simulation.traffic import refusal
from tests.workers.turn.daemon_rig import QUEUE, DaemonRig


def refusing(on: str) -> Callable[[Write], Answer | None]:
    """Answers creates for one node with a refusal."""

    def refuse(write: Write) -> Answer | None:
        if write.verb != "create" or write.resource != "pods":
            return None
        affinity = orjson.loads(write.body)["spec"]["affinity"]["nodeAffinity"]
        [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        return refusal(403, "Forbidden") if term["matchFields"][0]["values"] == [on] else None

    return refuse


def settled(rig: DaemonRig) -> None:
    """What is to be done at once is done."""
    for _ in range(4):
        rig.read()
        rig.turns()


def failing_for_long() -> DaemonRig:
    """n2 gets no pod, and has not for so long that the key is tried again once a quarter of an hour at most."""
    rig = DaemonRig(nodes=2)
    rig.api.refuse = refusing("n2")
    rig.read()
    for _ in range(18):
        rig.turns()
        rig.read()
        rig.later(1_000_000)
    settled(rig)
    return rig


def test_a_failed_pod_goes_when_its_back_off_is_over() -> None:
    rig = failing_for_long()
    for back_off_ms in (0, 1_000, 2_000, 4_000, 8_000):
        [pod] = rig.pods("n1")
        for phase in ("Running", "Failed"):
            rig.run(pod, phase)
            settled(rig)
        if back_off_ms > REST_MS:  # which has passed since the last one went
            assert [each.phase for each in rig.pods("n1")] == ["Failed"]
            rig.later(back_off_ms - REST_MS)
            settled(rig)
        assert rig.pods("n1") == [], "it has gone, and its name rests"
        rig.later(REST_MS)
        settled(rig)
        assert [each.phase for each in rig.pods("n1")] == ["Pending"]


def test_its_own_pauses_stay_as_they_are() -> None:
    rig = failing_for_long()
    [(key, at_ms)] = rig.store.state.queue(QUEUE).delayed.items()
    assert key == "default/agent"
    assert at_ms - rig.clock.wall_ms() > 300_000
