"""A name that has rested rests again when its next pod fails, though the mark of the earlier rest was left behind. And
it rests from when its pod has gone.
"""

from __future__ import annotations

import pytest

from oarlock.broker.expectations import Expectations
from oarlock.broker.memory.state import ExpectHash
from oarlock.broker.values.claims import Batch, Claim
from oarlock.workers.turn import expectations
from oarlock.workers.turn.engine import turn_engine
from oarlock.workers.turn.expectations import REST_MS
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.workers.turn.daemon_rig import QUEUE, DaemonRig


def test_a_mark_left_behind_does_not_take_the_next_one_along() -> None:
    """Whoever was killed before its turn ended has not removed the mark; the turn that deletes again does."""
    rig = DaemonRig(nodes=1)
    for _ in range(4):
        rig.read()
        rig.turns()
    [pod] = rig.pods("n1")
    for phase in ("Running", "Failed"):
        rig.run(pod, phase)
    now_ms, mark = rig.clock.wall_ms(), f"rest pods/{pod.name}"
    left = ExpectHash({"owner": rig.uid, mark: f"until_ms={now_ms - REST_MS}"}, now_ms + 60_000)
    rig.store.state.queue(QUEUE).expectations["default/agent"] = left
    rig.read()
    rig.turns()
    assert left.fields[mark] == f"uid={pod.uid}"
    rig.read()
    rig.turns()
    assert rig.pods("n1") == [], "its name rests"
    rig.later(REST_MS)
    rig.read()
    rig.turns()
    assert len(rig.pods("n1")) == 1


def test_a_rest_begins_when_the_pods_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that was there at the claim, and has gone when its turn comes to load it."""
    monkeypatch.setattr(turn_engine, "LOAD_MIN", 1)
    rig = DaemonRig(nodes=1)
    failed = rig.fail()
    load = rig.broker.load

    def late(batch: Batch) -> Batch:
        monkeypatch.setattr(rig.broker, "load", load)
        rig.later(300)
        rig.read()
        return load(batch)

    monkeypatch.setattr(rig.broker, "load", late)
    rig.broker.add(QUEUE, ["default/agent"])
    rig.turns()
    assert rig.record()[f"rest pods/{failed.name}"] == f"until_ms={rig.clock.wall_ms() + REST_MS}"
    rig.later(REST_MS - 1)
    rig.rest()
    assert rig.pods() == []
    rig.later(1)
    rig.rest()
    assert [pod.name for pod in rig.pods()] == [failed.name]


def test_the_key_comes_back_when_a_rest_that_begins_is_over() -> None:
    """No event says so; and the pod's end may have been read by then, so that none of its own is to come."""
    outcome = TurnOutcome(Claim(QUEUE, "default/agent", "n", None, [], None, "", False, 0))
    announced = Expectations.parse(["owner", "u", "rest pods/agent-1", "uid=p"])
    assert expectations._resting(announced, (), 1_000, 1_300, outcome) == ["agent-1"]
    assert outcome.due_ms == 300 + REST_MS
