"""Several clusters with controllers of one's own in one process."""

from __future__ import annotations

from typing import Any

import pytest

import oarlock
from oarlock.controllers.registry import all_queues
from oarlock.testing import Cluster

ACCOUNT = "v1 ServiceAccount"


@oarlock.desired(ACCOUNT, children=["v1 ConfigMap"])
def notes(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    """Each account has a note."""
    meta = {"name": obj["metadata"]["name"]}
    return oarlock.Result([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}])


@oarlock.desired(ACCOUNT)
def others(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    """Of the same kind."""
    return oarlock.Result()


@oarlock.desired("v1 Secret", name="replicaset")
def taken(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    """Called as a built-in controller."""
    return oarlock.Result()


@oarlock.desired("v1 Secret")
def deployment_controller(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    """Called as a built-in controller, which has another queue."""
    return oarlock.Result()


@oarlock.desired("v1 Secret")
def replicationcontroller(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    """Called as a built-in controller without its suffix."""
    return oarlock.Result()


@oarlock.desired("v1 Secret")
def apart(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    """Of another kind."""
    return oarlock.Result()


def account(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def test_clusters_with_the_same_controllers_run_beside_one_another() -> None:
    before = all_queues()
    second = Cluster(operator=[notes])
    with Cluster(operator=[notes]) as first:
        second.start()
        for cluster, name in ((first, "a"), (second, "b")):
            cluster.create(account(name))
            cluster.wait(f"configmaps/{name}")
        assert "b" not in {each["metadata"]["name"] for each in first.list("serviceaccounts")}
    try:
        second.create(account("c"))  # the first has ended, and the second goes on
        second.wait("configmaps/c")
    finally:
        second.stop()
    assert all_queues() == before


def test_clusters_with_controllers_of_other_kinds_run_beside_one_another() -> None:
    with Cluster(operator=[notes]), Cluster(operator=[apart]) as cluster:
        assert cluster.list("secrets") == []


CLASHES = {
    "a kind of another cluster": (
        [others],
        "operator=[others]: a cluster of this process with operator=[notes] has serviceaccounts.v1 too; give both the"
        " same controllers, or stop that one first",
    ),
    "a name of another cluster": (
        [notes, others],
        "operator=[notes, others]: a cluster of this process with operator=[notes] has configmaps.v1, notes,"
        " serviceaccounts.v1 too; give both the same controllers, or stop that one first",
    ),
    "the name of a built-in controller": (
        [taken],
        "operator=[replicaset]: the controller replicaset is registered already; give it another name=",
    ),
    "the name of a built-in controller in full": (
        [deployment_controller],
        "operator=[deployment-controller]: the controller deployment-controller is registered already; give it another"
        " name=",
    ),
    "the name of a built-in controller to --controllers": (
        [replicationcontroller],
        "operator=[replicationcontroller]: the controllers replicationcontroller-controller and replicationcontroller"
        " are one to --controllers, which takes a name with and without -controller; give it another name=",
    ),
}


@pytest.mark.parametrize("case", CLASHES)
def test_controllers_that_clash_are_refused_in_one_line(case: str) -> None:
    refused, told = CLASHES[case]
    with Cluster(operator=[notes]) as cluster:
        before = all_queues()
        with pytest.raises(oarlock.BadDefinition) as raised:
            Cluster(operator=refused).start()
        assert str(raised.value) == told
        assert all_queues() == before
        cluster.create(account("a"))
        cluster.wait("configmaps/a")


def test_an_operator_is_a_list_of_controllers() -> None:
    for given, told in (
        (notes, r"operator= has to be a list: write \[notes\]"),
        ([notes.function], r"operator= holds <function notes .*: give functions below @oarlock\.desired"),
        (None, "operator= holds None: give functions below"),
    ):
        with pytest.raises(oarlock.BadDefinition, match=told):
            Cluster(operator=given).start()
