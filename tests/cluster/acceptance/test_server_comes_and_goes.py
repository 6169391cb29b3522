"""The API server is killed and comes back: nothing is made twice, and work goes on."""

from __future__ import annotations

import pytest

from tests.cluster.acceptance.replicas import RS, ready, uids
from tests.cluster.acceptance.stages import Stage
from tests.e2e.e2e_kubectl import NODES, Kubectl, daemonset, until
from tests.e2e.e2e_kubectl import uids as uids_by_node
from tests.e2e.e2e_states import settled

pytestmark = [pytest.mark.kubectl]


@pytest.mark.parametrize("down_s", [0.0, 4.0], ids=["at once", "after 4 s"])
def test_the_server_is_killed(kubectl: Kubectl, cluster: Stage, down_s: float) -> None:
    if cluster.server is None:
        pytest.skip("only a real server of the suite's own can be killed and keep what it has stored")
    kubectl.apply(RS.make(replicas=3), daemonset())
    before, agents = ready(kubectl, RS, 3), settled(kubectl, NODES)
    kubectl.run("scale", "rs", "web", "--replicas=40")
    cluster.server.restart(down_s=down_s)
    after = ready(kubectl, RS, 40, limit_s=60)
    assert len(after) == 40
    assert uids(before) < uids(after)
    kubectl.run("delete", "pod", agents[0]["metadata"]["name"])
    kubectl.run("scale", "rs", "web", "--replicas=2")
    assert len(ready(kubectl, RS, 2, limit_s=60)) == 2

    def replaced() -> int:
        return len(set(uids_by_node(settled(kubectl, NODES, limit_s=60)).items()) - set(uids_by_node(agents).items()))

    until(replaced, 60, "the status is of the time after the deletion")
    assert replaced() == 1
