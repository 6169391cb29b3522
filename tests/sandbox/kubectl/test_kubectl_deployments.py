"""kubectl's commands for Deployments, with the test in the controller's place: it writes ReplicaSets and status."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.sandbox.kubectl.kubectl_harness import KUBECTL, WAIT_S, Kubectl, eventually, pod, replicaset

pytestmark = KUBECTL

Obj = dict[str, Any]
REVISION = "deployment.kubernetes.io/revision"
CAUSE = "kubernetes.io/change-cause"
HASH = "pod-template-hash"


def deployment(image: str = "nginx:1", **spec: Any) -> Obj:
    made = replicaset(image=image)
    return {**made, "kind": "Deployment", "metadata": {"name": "web"}, "spec": {**made["spec"], **spec}}


def record(kubectl: Kubectl, number: int, cause: str = "") -> Obj:
    """The present template as a ReplicaSet with a pod, as the controller makes them."""
    owner = kubectl.json("get", "deploy", "web")
    template = json.loads(json.dumps(owner["spec"]["template"]))
    template["metadata"]["labels"][HASH] = str(number)
    made = pod(f"web-{number}", owner, app="web", **{HASH: str(number)})  # for its metadata
    annotations = {REVISION: str(number), **({CAUSE: cause} if cause else {})}
    selector = {"matchLabels": {"app": "web", HASH: str(number)}}
    kubectl.apply(
        {
            **{"apiVersion": "apps/v1", "kind": "ReplicaSet"},
            "metadata": {**made["metadata"], "annotations": annotations},
            "spec": {"replicas": 1, "selector": selector, "template": template},
        }
    )
    written: Obj = kubectl.json("get", "rs", f"web-{number}")
    kubectl.apply(pod(f"web-{number}-a", written, app="web", **{HASH: str(number)}))
    return written


def report(kubectl: Kubectl, replicas: int, updated: int, available: int, **more: Any) -> None:
    """A status of the present generation, and its revision."""
    found = kubectl.json("get", "deploy", "web")
    counts = {"replicas": replicas, "updatedReplicas": updated, "availableReplicas": available}
    found["status"] = {
        **counts,
        "readyReplicas": available,
        "unavailableReplicas": replicas - available,
        "observedGeneration": found["metadata"]["generation"],
        **more,
    }
    found["metadata"].setdefault("annotations", {})[REVISION] = "1"
    path = f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments/web/status"
    kubectl.run("replace", "--raw", path, "-f", "-", stdin=json.dumps(found))


def generation(kubectl: Kubectl) -> int:
    return int(kubectl.json("get", "deploy", "web")["metadata"]["generation"])


def test_create_get_and_describe(kubectl: Kubectl) -> None:
    assert "created" in kubectl.run("create", "deployment", "web", "--image=nginx:1", "--replicas=3", "--port=80")
    report(kubectl, 3, 2, 1)
    lines = [line.split() for line in kubectl.run("get", "deployments").splitlines()]
    assert lines[0] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert lines[1][:4] == ["web", "1/3", "2", "1"]
    wide = [line.split() for line in kubectl.run("get", "deploy", "-o", "wide").splitlines()]
    assert wide[0][-3:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert wide[1][-3:] == ["nginx", "nginx:1", "app=web"]
    assert "deployment.apps/web" in kubectl.run("get", "all")
    described = kubectl.run("describe", "deploy", "web")
    for line in (
        "Replicas:               3 desired | 2 updated | 3 total | 1 available | 2 unavailable",
        "StrategyType:           RollingUpdate",
        "RollingUpdateStrategy:  25% max unavailable, 25% max surge",
        f"{REVISION}: 1",
    ):
        assert line in described


def test_apply_says_what_it_did_and_changes_only_that(kubectl: Kubectl) -> None:
    assert "created" in kubectl.apply(deployment())
    assert "unchanged" in kubectl.apply(deployment())
    assert generation(kubectl) == 1
    kubectl.run("scale", "deploy", "web", "--replicas=7")
    without = deployment("nginx:2")
    del without["spec"]["replicas"]
    kubectl.apply(without)
    spec = kubectl.json("get", "deploy", "web")["spec"]
    assert spec["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert spec["replicas"] == 1, "taken out of the file: the default takes its place"


def test_apply_from_one_strategy_to_the_other(kubectl: Kubectl) -> None:
    limits = {"maxSurge": 2, "maxUnavailable": 0}
    kubectl.apply(deployment(strategy={"type": "RollingUpdate", "rollingUpdate": limits}))
    kubectl.apply(deployment(strategy={"type": "Recreate"}))
    assert kubectl.json("get", "deploy", "web")["spec"]["strategy"] == {"type": "Recreate"}
    kubectl.apply(deployment(strategy={"rollingUpdate": limits}))
    assert kubectl.json("get", "deploy", "web")["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": limits,
    }


def test_scale(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    assert "scaled" in kubectl.run("scale", "deploy/web", "--replicas=5")
    assert "scaled" in kubectl.run("scale", "deploy/web", "--current-replicas=5", "--replicas=0")
    assert "Expected replicas to be 5, was 0" in kubectl.run(
        "scale", "deploy/web", "--current-replicas=5", "--replicas=1", code=1
    )
    assert (kubectl.json("get", "deploy", "web")["spec"]["replicas"], generation(kubectl)) == (0, 3)
    shown = json.loads(
        kubectl.run("get", "--raw", f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments/web/scale")
    )
    assert shown["status"] == {"replicas": 0, "selector": "app=web"}, "what an autoscaler reads"


def test_set_patch_and_edit(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    kubectl.run("set", "image", "deploy/web", "c=nginx:9")
    kubectl.run("set", "env", "deploy/web", "A=1", "B=2")
    kubectl.run("set", "env", "deploy/web", "A-")
    kubectl.run("set", "resources", "deploy/web", "--limits=cpu=1")
    (container,) = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"]) == ("nginx:9", [{"name": "B", "value": "2"}])
    assert container["resources"] == {"limits": {"cpu": "1"}}
    for kind, body in (
        ("strategic", {"spec": {"minReadySeconds": 1}}),
        ("merge", {"spec": {"minReadySeconds": 2}}),
        ("json", [{"op": "replace", "path": "/spec/minReadySeconds", "value": 3}]),
    ):
        assert "patched" in kubectl.run("patch", "deploy", "web", f"--type={kind}", "-p", json.dumps(body))
    assert "no change" in kubectl.run("patch", "deploy", "web", "-p", '{"spec":{"minReadySeconds":3}}')
    edited = subprocess.run(
        kubectl.command("edit", "deploy", "web"),
        env={**kubectl.env(), "KUBE_EDITOR": "sed -i s/nginx:9/nginx:10/"},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert edited.returncode == 0, edited.stderr
    assert "nginx:10" in kubectl.run("get", "deploy", "web", "-o", "yaml")


def test_pause_resume_and_restart(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    assert "paused" in kubectl.run("rollout", "pause", "deploy/web")
    assert kubectl.json("get", "deploy", "web")["spec"]["paused"] is True
    assert "already paused" in kubectl.run("rollout", "pause", "deploy/web", code=1)
    assert "can't restart paused deployment" in kubectl.run("rollout", "restart", "deploy/web", code=1)
    assert "resumed" in kubectl.run("rollout", "resume", "deploy/web")
    assert "paused" not in kubectl.json("get", "deploy", "web")["spec"]
    assert "restarted" in kubectl.run("rollout", "restart", "deploy/web")
    found = kubectl.json("get", "deploy", "web")
    assert "kubectl.kubernetes.io/restartedAt" in found["spec"]["template"]["metadata"]["annotations"]
    assert found["metadata"]["generation"] == 4


def test_rollout_status(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    waiting = subprocess.Popen(
        kubectl.command("rollout", "status", "deploy/web", "--timeout=30s"),
        stdout=subprocess.PIPE,
        text=True,
        env=kubectl.env(),
    )
    assert waiting.stdout is not None
    assert "Waiting for deployment spec update to be observed" in waiting.stdout.readline()
    report(kubectl, 3, 1, 3)
    assert "1 out of 3 new replicas have been updated" in waiting.stdout.readline()
    report(kubectl, 4, 3, 3)
    assert "1 old replicas are pending termination" in waiting.stdout.readline()
    report(kubectl, 3, 3, 2)
    assert "2 of 3 updated replicas are available" in waiting.stdout.readline()
    report(kubectl, 3, 3, 3)
    assert "successfully rolled out" in waiting.stdout.readline()
    assert waiting.wait(WAIT_S) == 0
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    report(kubectl, 3, 1, 3, conditions=[late])
    assert "exceeded its progress deadline" in kubectl.run("rollout", "status", "deploy/web", code=1)


def test_rollout_history_and_undo(kubectl: Kubectl) -> None:
    """The ReplicaSet's template replaces the present one as a whole: what the second one added is gone."""
    kubectl.apply(deployment())
    first = kubectl.json("get", "deploy", "web")["spec"]["template"]
    record(kubectl, 1, "the first")
    changed = deployment("nginx:2")
    changed["spec"]["template"]["metadata"]["annotations"] = {"added": "later"}
    changed["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side"})
    kubectl.apply(changed)
    second = kubectl.json("get", "deploy", "web")["spec"]["template"]
    record(kubectl, 2)

    shown = [line.split(maxsplit=1) for line in kubectl.run("rollout", "history", "deploy/web").splitlines() if line]
    assert shown[1:] == [["REVISION", "CHANGE-CAUSE"], ["1", "the first"], ["2", "<none>"]]
    detail = kubectl.run("rollout", "history", "deploy/web", "--revision=1")
    assert ("nginx:1" in detail, "nginx:2" in detail, "side" in detail) == (True, False, False)

    assert "rolled back" in kubectl.run("rollout", "undo", "deploy/web")
    back = kubectl.json("get", "deploy", "web")
    assert back["spec"]["template"] == first
    assert back["metadata"]["annotations"][CAUSE] == "the first", "the annotations come along"
    assert "rolled back" in kubectl.run("rollout", "undo", "deploy/web", "--to-revision=2")
    assert kubectl.json("get", "deploy", "web")["spec"]["template"] == second
    assert "skipped rollback" in kubectl.run("rollout", "undo", "deploy/web", "--to-revision=2")
    for number in (9, -1):
        told = kubectl.run("rollout", "undo", "deploy/web", f"--to-revision={number}", code=1)
        assert f"unable to find specified revision {number} in history" in told
    kubectl.run("rollout", "pause", "deploy/web")
    assert "cannot rollback a paused deployment" in kubectl.run("rollout", "undo", "deploy/web", code=1)


def test_undo_needs_something_to_go_back_to(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    record(kubectl, 1)
    assert "no rollout history found" in kubectl.run("rollout", "undo", "deploy/web", code=1)


def test_describe_names_the_replicasets(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    record(kubectl, 1)
    kubectl.run("set", "image", "deploy/web", "c=nginx:2")
    record(kubectl, 2)
    described = kubectl.run("describe", "deploy", "web")
    for line in ("OldReplicaSets:    web-1 (1/1 replicas created)", "NewReplicaSet:     web-2 (1/1 replicas created)"):
        assert line.replace("1/1", "0/1") in described


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_delete_takes_all_along(kubectl: Kubectl, cascade: str) -> None:
    kubectl.apply(deployment())
    record(kubectl, 1)
    assert "deleted" in kubectl.run("delete", "deploy", "web", f"--cascade={cascade}", f"--timeout={WAIT_S:.0f}s")
    eventually(kubectl, "", "get", "rs,pods", "-o", "name", "--ignore-not-found")


def test_delete_may_leave_all(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    record(kubectl, 1)
    kubectl.run("delete", "deploy", "web", "--cascade=orphan")
    assert "ownerReferences" not in kubectl.json("get", "rs", "web-1")["metadata"]
    assert kubectl.json("get", "pod", "web-1-a")["metadata"]["ownerReferences"][0]["name"] == "web-1"


def test_errors_as_users_know_them(kubectl: Kubectl) -> None:
    bad = deployment(strategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}})
    refused = kubectl.run("create", "-f", "-", stdin=json.dumps(bad), code=1)
    assert 'The Deployment "web" is invalid: spec.strategy.rollingUpdate.maxUnavailable: Invalid value: ' in refused
    kubectl.apply(deployment())
    other = deployment()
    other["spec"]["selector"]["matchLabels"] = other["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    assert "field is immutable" in kubectl.run("apply", "-f", "-", stdin=json.dumps(other), code=1)
    assert 'deployments.apps "none" not found' in kubectl.run("scale", "deploy", "none", "--replicas=2", code=1)
    assert 'deployments.apps "none" not found' in kubectl.run("rollout", "status", "deploy/none", code=1)
    assert "unable to find container named" in kubectl.run("set", "image", "deploy/web", "x=nginx:2", code=1)
