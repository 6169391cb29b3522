"""A cluster that lives on the fleet: upstream's controllers but these four, all others switched on.

What works on Deployments without being their controller is upstream's own here: the garbage collector, the controllers
of endpoints, of disruption budgets, of horizontal autoscaling, of namespaces.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cluster.acceptance.deployments import deployment as made
from tests.cluster.acceptance.deployments import images, pods_of, replicasets, revision, rolled_out, rolling, sizes
from tests.e2e.e2e_kubectl import Kubectl, controlled_by, until
from tests.realserver.beside import OURS, Beside
from tests.realserver.server import RealServer

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.environ.get("OARLOCK_TEST_SERVER") != "real", reason="make test-cluster has a real server"),
]

Obj = dict[str, Any]
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("alone")
    with ExitStack() as ending:
        server = ending.enter_context(RealServer(folder / "server"))
        beside = ending.enter_context(Beside(folder, server.kubeconfig))
        beside.watch(server.run_controllers("*", *(f"-{name}" for name in OURS)))
        beside.start_nodes("--count", "3", "--schedule", "--no-lifecycle")
        beside.start_fleet()
        yield Kubectl(server.kubeconfig, folder)
        beside.check()


@pytest.fixture
def kubectl(cluster: Kubectl, request: pytest.FixtureRequest) -> Kubectl:
    return cluster.inside("".join(each if each.isalnum() else "-" for each in request.node.name).strip("-").lower())


def addresses(kubectl: Kubectl) -> set[str]:
    """Names of the pods that the service leads to."""
    subsets = kubectl.json("get", "endpoints", "web").get("subsets") or ()
    return {each["targetRef"]["name"] for subset in subsets for each in subset.get("addresses") or ()}


def names(pods: list[Obj]) -> set[str]:
    return {each["metadata"]["name"] for each in pods}


def test_upstream_has_none_of_these_controllers_and_the_fleet_all(kubectl: Kubectl) -> None:
    """Rolled, scaled, undone; the service leads to its pods all the time, and the budget knows how many there are."""
    assert set(OURS) == {"deployment", "replicaset", "replicationcontroller", "daemonset"}
    kubectl.apply(SERVICE, made(replicas=4, **rolling(1, 0)))
    kubectl.run("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=50%")
    first = rolled_out(kubectl, 4)
    assert {pod["spec"]["nodeName"] for pod in first} <= names(kubectl.items("nodes"))
    until(lambda: addresses(kubectl) == names(first), 20, "the service leads to its pods")

    def budget() -> list[int]:
        said = kubectl.json("get", "pdb", "web").get("status") or {}
        return [said.get(name, 0) for name in ("expectedPods", "currentHealthy", "desiredHealthy")]

    until(lambda: budget() == [4, 4, 2], 20, "the budget counts the Deployment's pods")

    kubectl.run("set", "image", "deploy/web", "c=nginx:2")
    assert "successfully rolled out" in kubectl.run("rollout", "status", "deploy/web", "--timeout=120s")
    second = rolled_out(kubectl, 4)
    assert images(second) == {"nginx:2"}
    until(lambda: addresses(kubectl) == names(second), 20, "the service leads to the new ones")

    kubectl.run("scale", "deploy/web", "--replicas=6")
    rolled_out(kubectl, 6)
    until(lambda: budget() == [6, 6, 3], 20, "the budget counts them")
    assert sizes(kubectl) == [0, 6]

    kubectl.run("rollout", "undo", "deploy/web")
    assert images(rolled_out(kubectl, 6)) == {"nginx:1"}
    assert [revision(each) for each in replicasets(kubectl)] == [2, 3]
    assert sizes(kubectl) == [0, 6]


def test_an_autoscaler_scales_it(kubectl: Kubectl) -> None:
    """Below its least number of replicas, for which it needs no measurement."""
    kubectl.apply(made(replicas=2))
    kubectl.run("autoscale", "deploy/web", "--min=5", "--max=6")
    rolled_out(kubectl, 5)


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_deleted_with_each_cascade(kubectl: Kubectl, cascade: str) -> None:
    """In the midst of a rollout, by the garbage collector, whom ReplicaSets and pods have owner references for."""
    kubectl.apply(made(replicas=3))
    rolled_out(kubectl, 3)
    kubectl.run("set", "image", "deploy/web", "c=example.invalid/web:nonexistent")
    until(lambda: len(replicasets(kubectl)) == 2 and sizes(kubectl)[1], 20, "it rolls, and comes to no end")
    kubectl.run("delete", "deploy", "web", f"--cascade={cascade}", "--timeout=120s")
    assert kubectl.items("deploy") == []
    if cascade != "orphan":
        until(lambda: not kubectl.items("rs") and not kubectl.items("pods"), 30, "all of it is gone")
        return
    left = kubectl.items("rs")
    assert [controlled_by(each) for each in left] == ["", ""]
    wanted = sum(each["spec"]["replicas"] for each in left)
    until(lambda: len(pods_of(kubectl)) == wanted, 20, "their pods stay, and are kept by the fleet")
    kubectl.apply(made(replicas=3))
    rolled_out(kubectl, 3)
    assert {each["metadata"]["uid"] for each in replicasets(kubectl)} == {each["metadata"]["uid"] for each in left}


def test_a_namespace_goes_with_all_of_it(kubectl: Kubectl) -> None:
    kubectl.apply(made(replicas=3))
    rolled_out(kubectl, 3)
    kubectl.run("delete", "namespace", kubectl.namespace, "--timeout=120s")
