"""`kubectl oarlock` by a real kubectl, beside an `oarlock up`."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests import ROOT
from tests.e2e import k9s_plugins
from tests.e2e.e2e_kubectl import WAIT_S, Kubectl, template, until

pytestmark = [pytest.mark.kubectl]


@dataclass(frozen=True)
class Plugin:
    """Calls kubectl with our programs on PATH, and without what would name a Redis."""

    kubectl: Kubectl

    @property
    def environment(self) -> dict[str, str]:
        return {**self.kubectl.environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def __call__(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", *arguments],
            capture_output=True,
            text=True,
            env={**self.environment, **env},
            timeout=WAIT_S,
            check=False,
        )

    def begin(self, command: list[str]) -> subprocess.Popen[str]:
        """Start a command as k9s does, but without a terminal."""
        return subprocess.Popen(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
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
    until(lambda: "created replicasets" in plugin("oarlock", "history", "deploy", "web", *where).stdout, 20, "a turn")
    explained = plugin("oarlock", "explain", "deploy/web", *where)
    assert explained.returncode == 0, explained.stderr
    assert "web" in explained.stdout
    pod = kubectl.items("pods")[0]["metadata"]["name"]
    until(lambda: "created pods" in plugin("oarlock", "history", f"pod/{pod}", *where).stdout, 20, "the pod's turn")
    assert "deployment" in plugin("oarlock", "queue").stdout
    assert '"phase": "OPEN"' in plugin("oarlock", "top", "-o", "json").stdout
    elsewhere = plugin("oarlock", "queue", KUBECONFIG="/nowhere")
    assert (elsewhere.returncode, "port-forward" in elsewhere.stderr) == (2, True)


def test_completion(plugin: Plugin) -> None:
    found = plugin("__complete", "oarlock", "explain", "dep").stdout
    assert found.splitlines()[0] == "deploy/"


PLUGINS = yaml.safe_load((ROOT / "examples" / "k9s" / "plugins.yaml").read_text())


def test_k9s_takes_the_file() -> None:
    assert k9s_plugins.faults(PLUGINS) == []
    plugins = PLUGINS["plugins"].values()
    assert len({each["shortCut"] for each in plugins}) == len(plugins)
    for name, plugin in PLUGINS["plugins"].items():
        changes = any("requeue" in argument for argument in plugin["args"])
        assert (plugin.get("confirm", False), plugin.get("dangerous", False)) == (changes, changes), name


def test_what_its_keys_start(plugin: Plugin, kubectl: Kubectl) -> None:
    kubectl.apply(web())
    until(lambda: len(kubectl.items("pods")) == 2, 20, "two pods")
    pod = kubectl.items("pods")[0]["metadata"]["name"]
    for words, did in ((("deploy", "web"), "created replicasets"), ((f"pod/{pod}",), "created pods")):
        told_of = ("oarlock", "history", *words, "-n", kubectl.namespace)
        until(lambda told_of=told_of, did=did: did in plugin(*told_of).stdout, 20, "a turn has ended")
    (context,) = yaml.safe_load(kubectl.kubeconfig.read_text())["contexts"]
    values = dict.fromkeys(k9s_plugins.VARIABLES, "?")
    values |= {"NAMESPACE": kubectl.namespace, "CONTEXT": context["name"]}
    starts = {name: each["args"] for name, each in PLUGINS["plugins"].items()}
    assert starts.keys() == {"oarlock-explain", "oarlock-history", "oarlock-top", "oarlock-requeue"}
    row = {**values, "RESOURCE_NAME": "deployments", "NAME": "web"}
    told = {each: plugin.begin(k9s_plugins.filled(PLUGINS["plugins"][each], row)) for each in starts}
    row |= {"RESOURCE_NAME": "pods", "NAME": pod}
    of_pod = plugin.begin(k9s_plugins.filled(PLUGINS["plugins"]["oarlock-explain"], row))
    for explaining in (told["oarlock-explain"], of_pod):
        assert "Its last turn" in explaining.communicate(timeout=WAIT_S)[0]
    assert told["oarlock-requeue"].communicate(timeout=WAIT_S)[0].startswith(f"{kubectl.namespace}/web: ")
    watching = told["oarlock-history"]
    assert watching.stdout is not None
    assert watching.stdout.readline().startswith("ENDED")
    assert watching.poll() is None, "it goes on"
    watching.kill()
    watching.communicate()
    assert "this is no terminal" in told["oarlock-top"].communicate(timeout=WAIT_S)[1]
