"""A name that has rested rests again when its next pod fails, though the mark of the earlier rest was left behind."""

from __future__ import annotations

from oarlock.broker.memory.state import ExpectHash
from oarlock.workers.turn.expectations import REST_MS
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
