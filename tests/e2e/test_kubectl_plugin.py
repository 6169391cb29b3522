"""`kubectl oarlock` by a real kubectl, beside an `oarlock up`."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.e2e_kubectl import WAIT_S, Kubectl, template, until

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl")]


@dataclass(frozen=True)
class Plugin:
    """Calls kubectl with our programs on PATH, and without what would name a Redis."""

    kubectl: Kubectl

    def __call__(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        scripts = Path(sys.executable).parent
        path = f"{scripts}:{os.environ['PATH']}"
        return subprocess.run(
            ["kubectl", *arguments],
            capture_output=True,
            text=True,
            env={**self.kubectl.environment, "PATH": path, **env},
            timeout=WAIT_S,
            check=False,
        )


@pytest.fixture
def plugin(kubectl: Kubectl) -> Plugin:
    return Plugin(kubectl)


def web() -> dict[str, object]:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_the_plugin(plugin: Plugin, kubectl: Kubectl) -> None:
    assert "/kubectl-oarlock\n" in plugin("plugin", "list").stdout
    kubectl.apply(web())
    where = ("-n", kubectl.namespace)
    until(lambda: len(kubectl.items("pods")) == 2, 20, "two pods")
    until(lambda: "create replicasets" in plugin("oarlock", "history", "deploy", "web", *where).stdout, 20, "a turn")
    explained = plugin("oarlock", "explain", "deploy/web", *where)
    assert explained.returncode == 0, explained.stderr
    assert "web" in explained.stdout
    pod = kubectl.items("pods")[0]["metadata"]["name"]
    assert "create pods" in plugin("oarlock", "history", f"pod/{pod}", *where).stdout
    assert "deployment" in plugin("oarlock", "queue").stdout
    assert '"phase": "OPEN"' in plugin("oarlock", "top", "-o", "json").stdout
    elsewhere = plugin("oarlock", "queue", KUBECONFIG="/nowhere")
    assert (elsewhere.returncode, "port-forward" in elsewhere.stderr) == (2, True)


def test_completion(plugin: Plugin) -> None:
    found = plugin("__complete", "oarlock", "explain", "dep").stdout
    assert found.splitlines()[0] == "deploy/"
