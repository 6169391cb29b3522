"""--controllers and --concurrent-*-syncs: which worker takes keys of which queue."""

from __future__ import annotations

import pytest

from oarlock.cluster import resources
from oarlock.cluster.resources import Resource
from oarlock.controllers.registry import CONTROLLERS, WATCHED, all_queues
from oarlock.workers.process.kinds import cluster_resource, enabled_queues, kinds_of, queues_by_worker
from oarlock.workers.process.settings import BadSetting, Settings

RS, RC, DS, DEPLOYMENT = "replicaset", "replicationmanager", "daemonset", "deployment"
NODES = "daemonset-node-updates"
ALL = {RS, RC, DS, DEPLOYMENT, NODES}


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        ("*", all_queues()),
        ("replicaset", (RS,)),
        ("replicaset-controller", (RS,)),
        ("replicationcontroller, replicaset", (RS, RC)),
        ("*,-daemonset", (RS, RC, DEPLOYMENT)),
        ("-daemonset-controller,*", (RS, RC, DEPLOYMENT)),
        ("daemonset", (DS, NODES)),
        ("daemonset,-daemonset", (DS, NODES)),  # the first word that speaks of it decides
        ("-daemonset,daemonset,replicaset", (RS,)),
        ("*,-replicaset,-replicationcontroller", (DS, NODES, DEPLOYMENT)),
        ("deployment,replicaset", (DEPLOYMENT, RS)),
    ],
)
def test_the_list_of_controllers(text: str, queues: tuple[str, ...]) -> None:
    assert set(enabled_queues(text)) == set(queues)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cronjob", "there is no 'cronjob'; there are *, replicaset"),
        ("*,-cronjob", "there is no '-cronjob'"),
        ("", "enables nothing"),
        ("-replicaset", "enables nothing"),
        ("replicationmanager", "there is no"),  # the name of a queue is not that of its controller
    ],
)
def test_what_is_no_list_of_controllers(text: str, said: str) -> None:
    with pytest.raises(BadSetting, match=said.replace("*", r"\*")):
        enabled_queues(text)


def test_every_controller_can_be_bounded() -> None:
    assert all(Settings().value(each.concurrent_syncs) == 0 for each in CONTROLLERS.values())
    assert Settings.from_env({"OARLOCK_CONCURRENT_RC_SYNCS": "3"}).concurrent_syncs == {RC: 3}


def test_the_kinds_of_queues() -> None:
    assert kinds_of(enabled_queues("*,-daemonset")) == {"ReplicaSet", "ReplicationController", "Deployment"}


@pytest.mark.parametrize(
    ("bounds", "workers", "expected"),
    [
        ({}, 2, [ALL, ALL]),
        ({DS: 1}, 2, [ALL, ALL - {DS}]),
        (
            {RS: 2, RC: 1, DS: 1, DEPLOYMENT: 1},
            5,
            [{RS, NODES}, {RS, NODES}, {RC, NODES}, {DS, NODES}, {DEPLOYMENT, NODES}],
        ),
        ({RS: 9}, 2, [ALL, ALL]),
    ],
)
def test_of_a_bounded_queue_only_so_many_workers_take(
    bounds: dict[str, int], workers: int, expected: list[set[str]]
) -> None:
    found = queues_by_worker(Settings(concurrent_syncs=bounds), all_queues(), workers)
    assert [set(each) for each in found] == expected
    for queue in CONTROLLERS:
        assert sum(queue in each for each in found) == min(bounds.get(queue) or workers, workers)


def test_a_worker_with_nothing_to_do_is_refused() -> None:
    settings = Settings(concurrent_syncs={RS: 2})
    with pytest.raises(BadSetting, match="OARLOCK_CONCURRENT_REPLICASET_SYNCS=2: 1 of 3 workers"):
        queues_by_worker(settings, ("replicaset",), 3)


@pytest.mark.parametrize(
    "resource",
    [
        *(resources.PODS, resources.NODES, resources.CONTROLLERREVISIONS),
        *(resources.REPLICASETS, resources.REPLICATIONCONTROLLERS, resources.DAEMONSETS),
    ],
)
def test_kinds_are_spelled_for_the_client(resource: Resource) -> None:
    """The client's own list of kinds has them so."""
    assert cluster_resource(WATCHED[resource.plural]) == resource


@pytest.mark.parametrize(("plural", "path"), [("pods", "/api/v1/pods"), ("replicasets", "/apis/apps/v1/replicasets")])
def test_paths(plural: str, path: str) -> None:
    """The core group lives under /api, every other one under /apis."""
    assert cluster_resource(WATCHED[plural]).collection() == path
