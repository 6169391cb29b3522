"""Real kubectl on simulated nodes: create, label, taint, cordon, drain, delete, NotReady; and what pods do then."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT, THRIFTY_GO

WAIT_S = 60.0
BINARY = shutil.which("kubectl")
DAEMON_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("unschedulable", "NoSchedule"))
]

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(not BINARY and not os.environ.get("CI"), reason="there is no kubectl here"),
]


class Kubectl:
    """One client of one server."""

    def __init__(self, kubeconfig: Path) -> None:
        assert BINARY, "CI is set and there is no kubectl"
        self._command = [BINARY, "--kubeconfig", str(kubeconfig)]
        self._env = {"HOME": str(kubeconfig.parent), "PATH": os.environ["PATH"], **THRIFTY_GO}

    def __call__(self, *args: str, stdin: str | None = None, code: int = 0) -> str:
        """What the command prints; it must end with `code`."""
        done = subprocess.run(
            [*self._command, *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            env=self._env,
            check=False,
        )
        assert done.returncode == code, f"kubectl {' '.join(args)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *args: str) -> Any:
        return json.loads(self(*args, "-o", "json"))

    def pods(self) -> dict[str, str]:
        """name -> phase, or Terminating, of every pod."""
        return {
            pod["metadata"]["name"]: "Terminating" if "deletionTimestamp" in pod["metadata"] else pod["status"]["phase"]
            for pod in self.json("get", "pods")["items"]
        }

    def taints(self, node: str) -> set[str]:
        taints = self.json("get", "node", node)["spec"].get("taints", [])
        return {f"{taint['key'].removeprefix('node.kubernetes.io/')}:{taint['effect']}" for taint in taints}

    def report(self, node: str, ready: str) -> None:
        """Write the node's Ready condition, as its kubelet would."""
        condition = {"type": "Ready", "status": ready, "reason": "Test"}
        patch = json.dumps({"status": {"conditions": [condition]}})
        self("patch", "node", node, "--subresource=status", "-p", patch)


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    """Of a server with node-0 and node-1."""
    process = subprocess.Popen(
        [sys.executable, "-m", "oarlock.sandbox.apiserver", "--state-dir", str(tmp_path), "--nodes", "2"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        yield Kubectl(Path(json.loads(process.stdout.readline())["kubeconfig"]))
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0


def eventually(look: Callable[[], Any], want: Any) -> None:
    """Look until it is as wanted; the deadline only ends a failing run."""
    ends_s = time.monotonic() + WAIT_S
    while (seen := look()) != want:
        assert time.monotonic() < ends_s, f"still {seen!r}, not {want!r}"
        time.sleep(0.02)


def pod(name: str, node: str | None = None, owner: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod; with `node` one that may go there only, as a DaemonSet makes them."""
    if node is not None:
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        spec.setdefault("tolerations", DAEMON_TOLERATIONS)
    meta: dict[str, Any] = {"name": name}
    if owner is not None:
        meta["ownerReferences"] = [
            {
                **{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]},
                **{"uid": owner["metadata"]["uid"], "controller": True},
            }
        ]
    spec["containers"] = [{"name": "c", "image": "i"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def create(kubectl: Kubectl, *objects: dict[str, Any]) -> None:
    kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(objects))


def test_a_node_created_from_a_file_serves_pods_until_it_is_deleted(kubectl: Kubectl) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "mine", "labels": {"zone": "a"}}}
    create(kubectl, pod("agent", "mine"))
    assert kubectl.pods() == {"agent": "Pending"}
    create(kubectl, node)
    assert "condition met" in kubectl("wait", "--for=condition=Ready", "node/mine", "pod/agent", "--timeout=20s")
    found = kubectl.json("get", "node", "mine")
    assert found["metadata"]["labels"] == {
        "kubernetes.io/hostname": "mine",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "zone": "a",
    }
    assert "Allocatable:" in kubectl("describe", "node", "mine")
    assert "deleted" in kubectl("delete", "node", "mine")
    eventually(kubectl.pods, {})


def test_label(kubectl: Kubectl) -> None:
    create(kubectl, pod("p", nodeSelector={"zone": "a"}))
    told = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    conditions = ["get", "pod", "p", "-o", "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"]
    eventually(lambda: kubectl(*conditions), told)
    assert "labeled" in kubectl("label", "node", "node-1", "zone=a")
    eventually(kubectl.pods, {"p": "Running"})
    assert "unlabeled" in kubectl("label", "node", "node-1", "zone-")
    assert kubectl.pods() == {"p": "Running"}, "what runs is not asked again"
    assert kubectl("get", "nodes", "-l", "kubernetes.io/os=linux", "-o", "name").split() == [
        "node/node-0",
        "node/node-1",
    ]


def test_taint(kubectl: Kubectl) -> None:
    bears = {"key": "a", "operator": "Exists"}
    create(kubectl, pod("plain", "node-1"), pod("bears", "node-1", tolerations=[bears]))
    create(kubectl, pod("a-while", "node-1", tolerations=[{**bears, "effect": "NoExecute", "tolerationSeconds": 1}]))
    eventually(kubectl.pods, dict.fromkeys(("plain", "bears", "a-while"), "Running"))
    assert "tainted" in kubectl("taint", "node", "node-1", "a=b:NoSchedule")
    create(kubectl, pod("late", "node-1"))
    eventually(lambda: kubectl.pods()["late"], "Pending")
    kubectl("taint", "node", "node-1", "a=b:NoExecute")
    eventually(kubectl.pods, {"bears": "Running", "late": "Pending"})
    assert kubectl.taints("node-1") == {"a:NoSchedule", "a:NoExecute"}
    assert "untainted" in kubectl("taint", "node", "node-1", "a-")
    eventually(kubectl.pods, {"bears": "Running", "late": "Running"})


def test_cordon_and_uncordon(kubectl: Kubectl) -> None:
    assert "cordoned" in kubectl("cordon", "node-1")
    eventually(lambda: kubectl.taints("node-1"), {"unschedulable:NoSchedule"})
    create(kubectl, pod("daemon", "node-1"), pod("plain", nodeSelector={"kubernetes.io/hostname": "node-1"}))
    eventually(kubectl.pods, {"daemon": "Running", "plain": "Pending"})
    assert "SchedulingDisabled" in kubectl("get", "node", "node-1")
    assert "uncordoned" in kubectl("uncordon", "node-1")
    eventually(lambda: kubectl.taints("node-1"), set())
    eventually(kubectl.pods, {"daemon": "Running", "plain": "Running"})


def test_not_ready_and_ready_again(kubectl: Kubectl) -> None:
    create(kubectl, pod("daemon", "node-1"), pod("plain", nodeSelector={"kubernetes.io/hostname": "node-1"}))
    create(kubectl, pod("brief", "node-1", tolerations=[{**DAEMON_TOLERATIONS[0], "tolerationSeconds": 1}]))
    kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=20s")
    kubectl.report("node-1", "False")
    eventually(lambda: kubectl.taints("node-1"), {"not-ready:NoSchedule", "not-ready:NoExecute"})
    kubectl("wait", "--for=condition=Ready=false", "pod/daemon", "pod/plain", "--timeout=20s")
    eventually(kubectl.pods, {"daemon": "Running", "plain": "Running"})
    assert "NotReady" in kubectl("get", "node", "node-1")
    create(kubectl, pod("new", "node-1", tolerations=[{"operator": "Exists"}]))
    eventually(lambda: kubectl.pods()["new"], "Running")
    kubectl.report("node-1", "True")
    eventually(lambda: kubectl.taints("node-1"), set())
    kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=20s")


def test_a_node_out_of_reach_keeps_its_pods_until_it_is_deleted(kubectl: Kubectl) -> None:
    create(kubectl, pod("p", "node-1"), pod("q", "node-1"))
    eventually(kubectl.pods, {"p": "Running", "q": "Running"})
    kubectl.report("node-1", "Unknown")
    eventually(lambda: kubectl.taints("node-1"), {"unreachable:NoSchedule", "unreachable:NoExecute"})
    kubectl("delete", "pod", "p", "--wait=false")
    kubectl("delete", "pod", "q", "--force", "--grace-period=0")
    create(kubectl, pod("r", "node-1", tolerations=[{"operator": "Exists"}]))
    eventually(lambda: kubectl.json("get", "pod", "r")["spec"].get("nodeName"), "node-1")
    assert kubectl.pods() == {"p": "Terminating", "r": "Pending"}
    kubectl("delete", "node", "node-1")
    eventually(kubectl.pods, {})


def test_drain(kubectl: Kubectl) -> None:
    create(
        kubectl,
        pod("bare", nodeSelector={"kubernetes.io/hostname": "node-1"}),
        pod("elsewhere", nodeSelector={"kubernetes.io/hostname": "node-0"}),
    )
    eventually(kubectl.pods, {"bare": "Running", "elsewhere": "Running"})
    refused = kubectl("drain", "node-1", "--ignore-daemonsets", code=1)
    assert "default/bare" in refused
    assert "pod/bare evicted" in kubectl("drain", "node-1", "--ignore-daemonsets", "--force")
    assert kubectl.pods() == {"elsewhere": "Running"}
    assert kubectl.taints("node-1") == {"unschedulable:NoSchedule"}


def test_drain_leaves_daemon_pods(kubectl: Kubectl) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    create(kubectl, agent)
    owner = kubectl.json("get", "daemonset", "agent")
    create(kubectl, pod("agent-1", "node-1", owner), pod("bare", nodeSelector={"kubernetes.io/hostname": "node-1"}))
    eventually(kubectl.pods, {"agent-1": "Running", "bare": "Running"})
    said = kubectl("drain", "node-1", "--ignore-daemonsets", "--force")
    assert "default/agent-1" in said
    assert kubectl.pods() == {"agent-1": "Running"}


def test_failed_pods_of_a_node_that_takes_none(kubectl: Kubectl) -> None:
    kubectl("annotate", "node", "node-1", "oarlock.io/sim-reject=OutOfcpu")
    create(kubectl, pod("p", "node-1"), pod("q", "node-0"))
    eventually(kubectl.pods, {"p": "Failed", "q": "Running"})
    assert "OutOfcpu" in kubectl("get", "pod", "p")
    kubectl("delete", "pod", "p")
    kubectl("annotate", "node", "node-1", "oarlock.io/sim-reject-")
    create(kubectl, pod("p", "node-1"))
    eventually(kubectl.pods, {"p": "Running", "q": "Running"})
