"""Deployments by kubectl at a whole `oarlock up`: what a new user tries first, and while workers are killed."""

from __future__ import annotations

import os
import signal

import pytest

from tests.cluster.acceptance.deployments import (
    TEMPLATE_HASH,
    counts,
    deployment,
    extremes,
    images,
    replicasets,
    revision,
    rolled_out,
    rolling,
    sizes,
)
from tests.cluster.acceptance.following import following
from tests.e2e.e2e_helpers import RunningUp
from tests.e2e.e2e_kubectl import Kubectl, controlled_by, until

pytestmark = [pytest.mark.kubectl]


def test_the_life_of_one(kubectl: Kubectl) -> None:
    assert "created" in kubectl.run("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
    assert "successfully rolled out" in kubectl.run("rollout", "status", "deploy/web", "--timeout=60s")
    head, line = kubectl.run("get", "deploy", "web").splitlines()
    assert head.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert line.split()[:4] == ["web", "3/3", "3", "3"]
    kubectl.run("annotate", "deploy", "web", "kubernetes.io/change-cause=the first")
    kubectl.run("set", "image", "deploy/web", "nginx=nginx:2")
    assert "successfully rolled out" in kubectl.run("rollout", "status", "deploy/web", "--timeout=60s")
    assert images(rolled_out(kubectl, 3)) == {"nginx:2"}
    history = kubectl.run("rollout", "history", "deploy/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    assert "rolled back" in kubectl.run("rollout", "undo", "deploy/web")
    assert images(rolled_out(kubectl, 3)) == {"nginx:1"}
    assert "restarted" in kubectl.run("rollout", "restart", "deploy/web")
    rolled_out(kubectl, 3)
    assert [revision(each) for each in replicasets(kubectl)] == [2, 3, 4]
    kubectl.run("scale", "deploy", "web", "--replicas=5")
    rolled_out(kubectl, 5)
    kubectl.run("rollout", "pause", "deploy/web")
    kubectl.run("set", "image", "deploy/web", "nginx=nginx:3")
    kubectl.run("rollout", "resume", "deploy/web")
    assert images(rolled_out(kubectl, 5)) == {"nginx:3"}
    assert sizes(kubectl) == [0, 0, 0, 5]
    described = kubectl.run("describe", "deploy", "web")
    (*_, newest) = replicasets(kubectl)
    assert f"NewReplicaSet:   {newest['metadata']['name']} (5/5 replicas created)" in described
    assert "ScalingReplicaSet" in described


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_delete_with_each_cascade(kubectl: Kubectl, cascade: str) -> None:
    kubectl.apply(deployment(replicas=3))
    before = rolled_out(kubectl, 3)
    kubectl.run("delete", "deploy", "web", f"--cascade={cascade}", "--timeout=60s")
    assert kubectl.items("deploy") == []
    if cascade != "orphan":
        until(lambda: not kubectl.items("rs") and not kubectl.items("pods"), 20, "all of it is gone")
        return
    (orphan,) = kubectl.items("rs")
    assert (controlled_by(orphan), len(kubectl.items("pods"))) == ("", 3)
    kubectl.apply(deployment(replicas=3))
    assert {pod["metadata"]["uid"] for pod in rolled_out(kubectl, 3)} == {pod["metadata"]["uid"] for pod in before}


def test_rolled_while_its_workers_are_killed(kubectl: Kubectl, up: RunningUp) -> None:
    """Forward and back; each worker once, with SIGKILL. One ReplicaSet a template, and the limits hold."""
    kubectl.apply(deployment(replicas=10, **rolling(2, 1)))
    rolled_out(kubectl, 10)

    def updated() -> int:
        return (counts(kubectl) or [0, 0])[1]

    with following(kubectl) as followed:
        for image in ("nginx:2", "nginx:1"):
            kubectl.run("set", "image", "deploy/web", f"c={image}")
            for number in range(len(up.processes("worker"))):
                before = updated()
                chosen = until(lambda n=number: up.processes("worker")[n:], 20, "the killed one is replaced")
                os.kill(chosen[0].pid, signal.SIGKILL)
                until(lambda before=before: updated() > min(before, 9), 20, "the others go on")
            assert images(rolled_out(kubectl, 10, limit_s=60)) == {image}
        most, fewest = extremes(followed)
    assert most <= 12
    assert fewest >= 9
    assert [revision(each) for each in replicasets(kubectl)] == [2, 3]
    assert len({each["metadata"]["labels"][TEMPLATE_HASH] for each in replicasets(kubectl)}) == 2
