"""What is missing and what is too many are tables; the cluster shows a crew that is kept up."""

from __future__ import annotations

from typing import Any

import pytest

import oarlock
from examples.operators.replicaset import PodSet, PodSetSpec, missing, pod, podset, surplus
from oarlock.testing import Cluster, FakeContext, gone
from tests.examples.conftest import OPERATORS


def made(name: str, *, node: str = "n", ready: bool = True, ended: str = "", going: bool = False, age: int = 0) -> Any:
    meta = {"name": name, "creationTimestamp": f"2024-01-01T00:00:{59 - age:02}Z"}
    if going:
        meta["deletionTimestamp"] = "2024-01-01T00:01:00Z"
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": meta,
        "spec": {"nodeName": node},
        "status": {"phase": ended or "Running", "conditions": conditions},
    }


@pytest.mark.parametrize(
    ("replicas", "pods", "names"),
    [
        (2, [], ["a-0", "a-1"]),
        (2, [made("a-0"), made("a-1")], []),
        (1, [made("a-0"), made("a-1")], []),
        (3, [made("a-0"), made("a-2")], ["a-1"]),
        pytest.param(2, [made("a-0", ended="Failed"), made("a-1")], ["a-2"], id="an ended pod keeps its name"),
        pytest.param(2, [made("a-0", going=True), made("a-1", going=True)], ["a-2", "a-3"], id="so does one that goes"),
        pytest.param(1, [made("other")], [], id="a pod under another name counts"),
    ],
)
def test_missing(replicas: int, pods: list[Any], names: list[str]) -> None:
    assert missing("a", replicas, pods) == names


@pytest.mark.parametrize(
    ("replicas", "pods", "names"),
    [
        (2, [made("a-0"), made("a-1")], []),
        (1, [made("a-0", age=9), made("a-1", age=1)], ["a-1"]),
        (1, [made("a-0", ready=False, age=9), made("a-1", age=1)], ["a-0"]),
        (1, [made("a-0", node="", age=9), made("a-1", ready=False)], ["a-0"]),
        (0, [made("a-0", ended="Succeeded"), made("a-1", going=True), made("a-2")], ["a-2"]),
    ],
)
def test_surplus(replicas: int, pods: list[Any], names: list[str]) -> None:
    assert surplus(replicas, pods) == names


def test_a_run_makes_what_is_missing_and_counts() -> None:
    crew = PodSet(
        metadata=oarlock.Meta(name="crew", namespace="sea", generation=2),
        spec=PodSetSpec(template={"spec": {"containers": []}}, replicas=2),
    )
    pods = [{"kind": "Pod", **made("crew-0")}, {"kind": "Pod", **made("crew-1", ended="Failed")}]
    ctx = FakeContext(podset, crew, children=pods)
    podset(crew, ctx)
    assert [(each.verb, each.kind, each.name) for each in ctx.did.writes] == [
        ("create", "Pod", "crew-2"),
        ("status", "PodSet", "crew"),
    ]
    assert ctx.did.status == {"observedGeneration": 2, "replicas": 1, "readyReplicas": 1}


def test_a_pod_has_the_template_and_its_own_name() -> None:
    template = {"metadata": {"labels": {"app": "crew"}}, "spec": {"containers": []}}
    assert pod(template, "crew-0")["metadata"] == {"labels": {"app": "crew"}, "name": "crew-0"}
    assert "name" not in template["metadata"]


def test_in_a_cluster(cluster: Cluster) -> None:
    cluster.create(OPERATORS / "replicaset.yaml")
    cluster.wait("pods", count=3, selector="app=crew")
    cluster.wait("podset/crew", lambda it: it.get("status", {}).get("readyReplicas") == 3)
    cluster.delete("pod/crew-1")
    cluster.wait("pods", count=3, selector="app=crew")
    cluster.patch("podset/crew", {"spec": {"replicas": 1}})
    cluster.wait("pods", count=1, selector="app=crew")
    cluster.wait("podset/crew", lambda it: it["status"] == {"observedGeneration": 2, "replicas": 1, "readyReplicas": 1})
    cluster.delete("podset/crew")
    cluster.wait("pods", gone, selector="app=crew")
