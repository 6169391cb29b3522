"""kubectl's commands for DaemonSets, with the test in the controller's place: it writes revisions and status."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.sandbox.kubectl.kubectl_harness import KUBECTL, WAIT_S, Kubectl, pod

pytestmark = KUBECTL

Obj = dict[str, Any]
APPS = "/apis/apps/v1/namespaces"


def daemonset(image: str = "nginx:1", **spec: Any) -> Obj:
    labels = {"app": "agent"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}},
            **spec,
        },
    }


def record(kubectl: Kubectl, number: int, cause: str = "") -> None:
    """The present template as a revision."""
    owner = kubectl.json("get", "ds", "agent")
    meta = owner["metadata"]
    revision: Obj = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"agent-{number}",
            "labels": {"app": "agent", "controller-revision-hash": str(number)},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "agent",
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "revision": number,
        "data": {"spec": {"template": {"$patch": "replace", **owner["spec"]["template"]}}},
    }
    if cause:
        revision["metadata"]["annotations"] = {"kubernetes.io/change-cause": cause}
    kubectl.run("create", "-f", "-", stdin=json.dumps(revision))


def report(kubectl: Kubectl, desired: int, updated: int, available: int) -> None:
    """A status of the present generation."""
    found = kubectl.json("get", "ds", "agent")
    found["status"] = {
        "currentNumberScheduled": desired,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": desired,
        "numberReady": available,
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "observedGeneration": found["metadata"]["generation"],
    }
    path = f"{APPS}/{kubectl.namespace}/daemonsets/agent/status"
    kubectl.run("replace", "--raw", path, "-f", "-", stdin=json.dumps(found))


def test_get_and_describe(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    report(kubectl, 5, 4, 3)
    lines = [line.split() for line in kubectl.run("get", "ds").splitlines()]
    assert lines[0] == ["NAME", *["DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE", "SELECTOR", "AGE"]]
    assert lines[1][:7] == ["agent", "5", "5", "3", "4", "3", "<none>"]
    wide = kubectl.run("get", "ds", "-o", "wide").splitlines()[1].split()
    assert wide[-3:] == ["c", "nginx:1", "app=agent"]
    assert "daemonset.apps/agent" in kubectl.run("get", "all")
    described = kubectl.run("describe", "ds", "agent")
    for line in (
        "Selector:       app=agent",
        "Desired Number of Nodes Scheduled: 5",
        "Number of Nodes Scheduled with Up-to-date Pods: 4",
        "deprecated.daemonset.template.generation: 1",
        "Image:         nginx:1",
    ):
        assert line in described


def test_rollout_status(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    report(kubectl, 2, 1, 1)
    waiting = subprocess.Popen(
        kubectl.command("rollout", "status", "ds/agent", "--timeout=30s"),
        stdout=subprocess.PIPE,
        text=True,
        env=kubectl.env(),
    )
    assert waiting.stdout is not None
    assert "1 out of 2 new pods have been updated" in waiting.stdout.readline()
    report(kubectl, 2, 2, 1)
    assert "1 of 2 updated pods are available" in waiting.stdout.readline()
    report(kubectl, 2, 2, 2)
    assert "successfully rolled out" in waiting.stdout.readline()
    assert waiting.wait(WAIT_S) == 0


def test_rollout_history_and_undo(kubectl: Kubectl) -> None:
    """The revision's data replaces the template as a whole: what the second one added is gone."""
    kubectl.apply(daemonset())
    first = kubectl.json("get", "ds", "agent")["spec"]["template"]
    record(kubectl, 1, "the first")
    changed = daemonset("nginx:2")
    changed["spec"]["template"]["metadata"]["annotations"] = {"added": "later"}
    pod_spec = changed["spec"]["template"]["spec"]
    pod_spec["tolerations"] = [{"key": "a", "operator": "Exists"}]
    pod_spec["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    pod_spec["containers"].append({"name": "side", "image": "side"})
    pod_spec["volumes"] = [{"name": "v", "emptyDir": {}}]
    kubectl.apply(changed)
    second = kubectl.json("get", "ds", "agent")["spec"]["template"]
    record(kubectl, 2)

    shown = [line.split(maxsplit=1) for line in kubectl.run("rollout", "history", "ds/agent").splitlines() if line]
    assert shown[1:] == [["REVISION", "CHANGE-CAUSE"], ["1", "the first"], ["2", "<none>"]]
    detail = kubectl.run("rollout", "history", "ds/agent", "--revision=1")
    assert ("nginx:1" in detail, "nginx:2" in detail, "side" in detail) == (True, False, False)

    assert "rolled back" in kubectl.run("rollout", "undo", "ds/agent")
    back = kubectl.json("get", "ds", "agent")
    assert back["spec"]["template"] == first
    assert back["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "3"
    assert back["metadata"]["generation"] == 3
    assert "rolled back" in kubectl.run("rollout", "undo", "ds/agent", "--to-revision=2")
    assert kubectl.json("get", "ds", "agent")["spec"]["template"] == second
    assert "unable to find specified revision" in kubectl.run("rollout", "undo", "ds/agent", "--to-revision=9", code=1)


def test_undo_needs_something_to_go_back_to(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    record(kubectl, 1)
    assert "no last revision to roll back to" in kubectl.run("rollout", "undo", "ds/agent", code=1)


def test_revisions_as_a_table(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    record(kubectl, 7)
    lines = [line.split() for line in kubectl.run("get", "controllerrevisions").splitlines()]
    assert lines[0] == ["NAME", "CONTROLLER", "REVISION", "AGE"]
    assert lines[1][:3] == ["agent-7", "daemonset.apps/agent", "7"]


def test_rollout_restart_changes_the_template_and_pause_does_not_exist(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    assert "restarted" in kubectl.run("rollout", "restart", "ds/agent")
    found = kubectl.json("get", "ds", "agent")
    assert "kubectl.kubernetes.io/restartedAt" in found["spec"]["template"]["metadata"]["annotations"]
    assert found["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "2"
    assert "pausing is not supported" in kubectl.run("rollout", "pause", "ds/agent", code=1)


def test_set_image_env_and_resources(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    kubectl.run("set", "image", "ds/agent", "c=nginx:9")
    kubectl.run("set", "env", "ds/agent", "A=1", "B=2")
    kubectl.run("set", "env", "ds/agent", "A-")
    kubectl.run("set", "resources", "ds/agent", "--limits=cpu=1")
    container = kubectl.json("get", "ds", "agent")["spec"]["template"]["spec"]["containers"]
    assert len(container) == 1
    assert (container[0]["image"], container[0]["env"]) == ("nginx:9", [{"name": "B", "value": "2"}])
    assert container[0]["resources"] == {"limits": {"cpu": "1"}}


def test_delete_takes_revisions_along(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    record(kubectl, 1)
    assert "deleted" in kubectl.run("delete", "ds", "agent", "--cascade=foreground")
    assert kubectl.run("get", "controllerrevisions", "-o", "name") == ""


def test_delete_may_leave_revisions(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    record(kubectl, 1)
    kubectl.run("delete", "ds", "agent", "--cascade=orphan")
    assert "ownerReferences" not in kubectl.json("get", "controllerrevision", "agent-1")["metadata"]


def test_errors_as_users_know_them(kubectl: Kubectl) -> None:
    bad = daemonset(updateStrategy={"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}})
    refused = kubectl.run("create", "-f", "-", stdin=json.dumps(bad), code=1)
    assert 'The DaemonSet "agent" is invalid: spec.updateStrategy.rollingUpdate.maxSurge' in refused
    kubectl.apply(daemonset())
    other = daemonset()
    other["spec"]["selector"]["matchLabels"] = other["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    assert "field is immutable" in kubectl.run("apply", "-f", "-", stdin=json.dumps(other), code=1)
    assert "could not find the requested resource" in kubectl.run("scale", "ds", "agent", "--replicas=2", code=1)


def test_drain_spares_daemon_pods_only_when_told_to(kubectl: Kubectl) -> None:
    node = f"node-{kubectl.namespace}"
    kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}, daemonset())
    daemon = pod("agent-1", kubectl.json("get", "ds", "agent"), app="agent")
    daemon["spec"]["nodeName"] = node
    kubectl.apply(daemon)
    refused = kubectl.run("drain", node, code=1)
    assert "cannot delete DaemonSet-managed Pods" in refused
    assert "ignoring DaemonSet-managed Pods" in kubectl.run("drain", node, "--ignore-daemonsets")
    assert kubectl.run("get", "pods", "-o", "name").split() == ["pod/agent-1"]
    kubectl.run("delete", "node", node)


def test_a_watch_tells_counts_as_they_change(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    watch = subprocess.Popen(
        kubectl.command("get", "ds", "-w", "--no-headers"), stdout=subprocess.PIPE, text=True, env=kubectl.env()
    )
    try:
        assert watch.stdout is not None
        assert watch.stdout.readline().split()[:6] == ["agent", "0", "0", "0", "0", "0"]
        report(kubectl, 4, 3, 2)
        assert watch.stdout.readline().split()[:6] == ["agent", "4", "4", "2", "3", "2"]
    finally:
        watch.kill()
        watch.wait(WAIT_S)
