"""A back-off is kept for the failed pods that are deleted, not for those that the rate limit puts off."""

from __future__ import annotations

from tests.workers.turn.daemon_rig import DaemonRig


def test_a_pod_that_was_not_deleted_has_no_back_off() -> None:
    rig = DaemonRig(nodes=3)
    rig.rest()
    for pod in rig.pods():
        rig.run(pod, "Failed")
    rig.read()
    rig.api.writes.clear()
    rig.api.grants = [1]
    rig.turn()
    [deleted] = [write.name for write in rig.api.writes if write.verb == "delete"]
    [on] = [pod.target_node for pod in rig.pods() if pod.name == deleted] or ["n1"]
    assert [name for name in rig.record() if name.startswith("backoff ")] == [f"backoff {on}"]


def test_those_put_off_go_as_soon_as_the_rate_limit_lets_them() -> None:
    rig = DaemonRig(nodes=3)
    rig.rest()
    for pod in rig.pods():
        rig.run(pod, "Failed")
    rig.read()
    rig.api.writes.clear()
    rig.api.grants = [1]
    rig.turn()
    rig.read()
    rig.later(100)
    rig.turns()
    assert sum(write.verb == "delete" for write in rig.api.writes) == 3
