"""Whoever may write to Redis may put a node there that cannot be read. A worker also serves others, so it goes on."""

from __future__ import annotations

import pytest

from oarlock.broker.memory import changes
from oarlock.broker.values.claims import Batch
from oarlock.broker.values.turns import Verdict
from oarlock.workers.turn.steps import TurnFailed
from tests.workers.turn.daemon_rig import QUEUE, DaemonRig
from tests.workers.turn.turns import through


def write(rig: DaemonRig, name: str, blob: bytes) -> bytes:
    """Put another blob into the cache, as a change of that node. Returns the one before."""
    state = rig.store.state
    generation = state.generation["nodes"]
    nodes = state.objects["nodes", generation]
    before, nodes[name] = nodes[name].blob, nodes[name]._replace(blob=blob)
    changes.log(state, "nodes", generation, name)
    return before


def claimed(rig: DaemonRig) -> Batch:
    batch = rig.engine.claim("w", 1)
    assert isinstance(batch, Batch)
    return batch


@pytest.mark.parametrize("known", [False, True], ids=["of a new worker", "of one that knows the nodes"])
def test_turns_that_need_it_fail_until_it_can_be_read(known: bool, caplog: pytest.LogCaptureFixture) -> None:
    rig = DaemonRig(nodes=3)
    if known:
        rig.rest()
    written, node = len(rig.api.writes), write(rig, "n2", b"junk")
    for _ in range(2):
        rig.broker.add(QUEUE, ["default/agent"])
        batch = claimed(rig)
        while batch.queue != QUEUE:
            rig.engine.finish([through(rig.engine, batch, batch.claims[0])])
            batch = claimed(rig)
        with pytest.raises(TurnFailed, match="nodes are not known yet") as failure:
            through(rig.engine, batch, batch.claims[0])
        assert failure.value.finish.verdict is Verdict.RETRY
        rig.engine.finish([failure.value.finish])
    assert len(rig.api.writes) == written, "nothing is decided on the nodes of before"
    assert caplog.text.count('event="local cache refused" resource=nodes') == 2
    write(rig, "n2", node)
    rig.later(60_000)
    rig.rest()
    assert sorted(pod.target_node for pod in rig.pods()) == ["n1", "n2", "n3"]
