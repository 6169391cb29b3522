"""Turns on a cache that lags behind the fleet's own writes: nothing is made a second time.

Numbers in names: upstream: test/integration/daemonset/daemonset_test.go (26_4). There the informer is slow; here both
ingestors stand still, so that the cache does not move at all.
"""

from __future__ import annotations

import pytest

from tests.cluster.acceptance.replicas import RC, RS, pods_of, ready, uids
from tests.cluster.acceptance.stages import Stage, beyond_upstream
from tests.e2e.e2e_kubectl import NODES, Kubectl, Obj, daemonset, until
from tests.e2e.e2e_states import settled

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(400)]

NO_PODS = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
LOOKS = 3


def all_pods(kubectl: Kubectl) -> list[Obj]:
    """Also those on their way out."""
    return kubectl.items("pods")


def refused_first(kubectl: Kubectl, *owners: Obj) -> None:
    """Owners that the fleet knows of and may make no pods for."""
    kubectl.apply(NO_PODS)
    until(lambda: kubectl.json("get", "quota", "q").get("status", {}).get("hard"), 30, "the quota is known")
    kubectl.apply(*owners)

    def refused() -> set[str]:
        return {each["involvedObject"]["kind"] for each in kubectl.items("events") if each["reason"] == "FailedCreate"}

    until(lambda: len(refused()) == len(owners), 30, "each was refused a pod")


def test_26_4_14_a_cache_that_lags_makes_no_second_pod(kubectl: Kubectl, cluster: Stage) -> None:
    """Of none of the kinds, however often its owner is looked at."""
    beyond_upstream("their informers cannot be stopped from outside")
    counts = {"rs": 3, "rc": 2, "ds": NODES}
    names = {"rs": "web", "rc": "old", "ds": "agent"}
    refused_first(kubectl, RS.make("web", counts["rs"]), RC.make("old", counts["rc"]), daemonset())

    def look_again() -> None:
        cluster.look_again(*(f"{kubectl.namespace}/{name}" for name in names.values()))

    cluster.await_heard(*(f"{kind}/{kubectl.namespace}/{name}" for kind, name in names.items()))
    with cluster.deaf():
        kubectl.run("delete", "resourcequota", "q")

        def made() -> bool:
            look_again()
            return all(len(pods_of(kubectl, name)) == counts[kind] for kind, name in names.items())

        until(made, 60, "every pod is made, unseen by those who made it")
        before = uids(all_pods(kubectl))
        for _ in range(LOOKS):
            look_again()
        assert uids(all_pods(kubectl)) == before
    ready(kubectl, RS, counts["rs"], "web")
    ready(kubectl, RC, counts["rc"], "old")
    settled(kubectl, NODES)
    assert uids(all_pods(kubectl)) == before
