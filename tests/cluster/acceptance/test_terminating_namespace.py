"""A namespace on its way out refuses whatever is new in it, which is no failure of anybody's.

The server is this file's own: its namespaces stay on their way out until a namespace controller is started.
Upstream: pkg/controller/replicaset/replica_set.go and pkg/controller/daemon/daemon_controller.go.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.cluster.acceptance.replicas import RC, RS, pods_of, ready, status
from tests.cluster.acceptance.stages import OTHERS, run_fleet, run_nodes, with_own_server
from tests.e2e.e2e_helpers import oarlock
from tests.e2e.e2e_kubectl import NODES, WAIT_S, Kubectl, daemonset, need_kubectl, until
from tests.e2e.e2e_states import revisions, settled
from tests.e2e.e2e_states import status as daemon_status
from tests.realserver.server import RealServer

pytestmark = [
    pytest.mark.kubectl,
    with_own_server,
]


@dataclass(frozen=True)
class Place:
    server: RealServer
    kubectl: Kubectl
    folder: Path
    redis_url: str

    def complaints(self) -> list[str]:
        """What the fleet's processes warn of."""
        logs = [path.read_text(errors="replace") for path in self.folder.glob("*.log")]
        return [line for log in logs for line in log.splitlines() if "turn_failed" in line]

    def wait_until_idle(self) -> None:
        """Until the fleet has nothing to do, and a second later still has not."""
        for _ in range(2):
            until(self._idle, WAIT_S, "the fleet has nothing to do")
            time.sleep(1)

    def _idle(self) -> bool:
        done = oarlock("queue", "--redis", self.redis_url, "-o", "json")
        assert done.returncode == 0, done.stderr
        return not any(each["queued"] + each["in_work"] + each["delayed"] for each in json.loads(done.stdout))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    need_kubectl()
    with ExitStack() as ending:
        server = ending.enter_context(RealServer(tmp_path / "server"))
        server.run_controllers(*(set(OTHERS) - {"namespace"}))
        ending.callback(run_nodes(server.kubeconfig, tmp_path).end)
        redis = ending.enter_context(EmbeddedRedis(tmp_path / "redis"))
        for each in run_fleet(redis, server.kubeconfig, tmp_path):
            ending.callback(each.kill)
        yield Place(server, Kubectl(server.kubeconfig, tmp_path), tmp_path, redis.url("admin"))


def test_nothing_fails_in_a_namespace_that_ends(place: Place) -> None:
    kubectl = place.kubectl.inside("ending")
    kubectl.apply(daemonset(), RS.make("web", 2), RC.make("old", 2))
    settled(kubectl, NODES)
    ready(kubectl, RS, 2, "web")
    ready(kubectl, RC, 2, "old")
    place.kubectl.run("delete", "namespace", "ending", "--wait=false")
    assert place.kubectl.json("get", "namespace", "ending")["status"]["phase"] == "Terminating"

    for name in ("web", "old", "agent"):
        kubectl.run("delete", "pod", pods_of(kubectl, name)[0]["metadata"]["name"], "--wait=false")
    for kind, name in ((RS, "web"), (RC, "old")):
        until(lambda kind=kind, name=name: status(kubectl, kind, name)["replicas"] == 1, WAIT_S, f"{name} has lost one")
        assert "conditions" not in status(kubectl, kind, name), "nothing is wrong with it"
    until(lambda: daemon_status(kubectl, "numberAvailable") == NODES - 1, WAIT_S, "one node is without a pod")

    kubectl.run("set", "image", "ds/agent", "c=nginx:2")
    kubectl.run("delete", "controllerrevisions", "--all")
    place.wait_until_idle()
    assert place.complaints() == []
    assert len(pods_of(kubectl, "agent")) == NODES - 1, "no pod goes for a revision that cannot be written"
    assert revisions(kubectl) == []
    told = kubectl.items("events")
    assert [each["message"] for each in told if each["reason"] == "FailedCreate"] == []

    place.server.run_controllers(*OTHERS)
    until(lambda: not place.kubectl.items("namespaces", "--field-selector=metadata.name=ending"), WAIT_S, "it is gone")
    place.wait_until_idle()
    assert place.complaints() == []
