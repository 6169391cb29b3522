"""A pending create that does not say for which node it was cannot be written again; it must not stop its key."""

from __future__ import annotations

import pytest

from oarlock.broker.values.claims import Batch
from oarlock.broker.values.turns import Entry
from tests.workers.turn.daemon_rig import DaemonRig


@pytest.mark.parametrize("hint", ["", "zone=a"])
def test_the_node_gets_its_pod_all_the_same(hint: str) -> None:
    rig = DaemonRig(nodes=2)
    rig.rest()
    first, second = rig.pods()
    rig.world.remove("pods", first.name)
    rig.read()
    batch = rig.engine.claim("w", 1)
    assert isinstance(batch, Batch)
    rig.broker.announce(batch.claims[0], rig.uid, [Entry("create", f"pods/{first.name}", hint=hint)], lease_ms=5_000)
    rig.broker.release("w")
    rig.engine.register("w", "s")
    rig.rest()
    assert sorted(pod.name for pod in rig.pods()) == sorted([first.name, second.name])
    assert not [name for name in rig.record() if name.startswith("create ")]
