"""Real kubectl against `oarlock up`: what a new user tries first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.e2e_helpers import RunningUp
from tests.e2e.e2e_kubectl import until

pytestmark = [pytest.mark.kubectl]

WEB = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: c, image: "nginx:1.29"}}]
"""

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningUp]:
    if shutil.which("kubectl") is None:
        assert not os.environ.get("CI"), "CI is set, and there is no kubectl on PATH"
        pytest.skip("kubectl is not installed")
    running = RunningUp(tmp_path_factory.mktemp("kubectl") / "state")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def kubectl(up: RunningUp, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    home = tmp_path_factory.mktemp("home")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(up.state.kubeconfig)}

    def run(*arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["kubectl", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=environment,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    return run


def names(kubectl: Kubectl, selector: str) -> list[str]:
    return sorted(kubectl("get", "pods", "-l", selector, "-o", "jsonpath={.items[*].metadata.name}").split())


def ready(kubectl: Kubectl, name: str, count: int, limit_s: float = 30) -> list[str]:
    """Wait until the set says that it has ``count`` pods, all ready. Returns their names."""

    def is_so() -> bool:
        found = json.loads(kubectl("get", "rs", name, "-o", "json"))
        status = found["status"]
        counts = (status["replicas"], status.get("readyReplicas", 0), status.get("availableReplicas", 0))
        return counts == (count,) * 3 and status.get("observedGeneration") == found["metadata"]["generation"]

    until(is_so, limit_s, f"{count} ready pods of {name}")
    return names(kubectl, f"app={name}")


def test_apply_get_and_scale(kubectl: Kubectl) -> None:
    assert "replicaset.apps/web created" in kubectl("apply", "-f", "-", stdin=WEB.format(name="web", replicas=3))
    assert len(ready(kubectl, "web", 3)) == 3
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=WEB.format(name="web", replicas=3))
    head, line = kubectl("get", "rs", "web").splitlines()
    assert head.split() == ["NAME", "DESIRED", "CURRENT", "READY", "AGE"]
    assert line.split()[:4] == ["web", "3", "3", "3"]
    assert "Running" in kubectl("get", "pods", "-l", "app=web")
    for count in (0, 300, 2):
        kubectl("scale", "rs", "web", f"--replicas={count}")
        ready(kubectl, "web", count)
        until(lambda count=count: len(names(kubectl, "app=web")) == count, 30, f"{count} pods in all")
    kubectl("apply", "-f", "-", stdin=WEB.format(name="web", replicas=4))
    ready(kubectl, "web", 4)
    assert "SuccessfulCreate" in kubectl("describe", "rs", "web")


def test_deleted_pods_are_replaced(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB.format(name="fragile", replicas=3))
    before = ready(kubectl, "fragile", 3)
    uids = set(kubectl("get", "pods", "-l", "app=fragile", "-o", "jsonpath={.items[*].metadata.uid}").split())
    kubectl("delete", "pod", *before[:2])

    def replaced() -> bool:
        now = kubectl("get", "pods", "-l", "app=fragile", "-o", "jsonpath={.items[*].metadata.uid}").split()
        return len(now) == 3 and len(set(now) - uids) == 2

    until(replaced, 20, "two other pods")
    ready(kubectl, "fragile", 3)


def test_a_pod_labelled_out_of_a_set_and_back(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB.format(name="loose", replicas=2))
    pod = ready(kubectl, "loose", 2)[0]

    def owners() -> str:
        return kubectl("get", "pod", pod, "-o", "jsonpath={.metadata.ownerReferences}")

    kubectl("label", "pod", pod, "app=free", "--overwrite")
    until(lambda: not owners(), 15, "the pod is released")
    assert len(ready(kubectl, "loose", 2)) == 2
    kubectl("scale", "rs", "loose", "--replicas=3")
    ready(kubectl, "loose", 3)
    kubectl("scale", "rs", "loose", "--replicas=0")
    ready(kubectl, "loose", 0)
    assert names(kubectl, "app=free") == [pod], "what was released is left alone"
    kubectl("scale", "rs", "loose", "--replicas=1")
    ready(kubectl, "loose", 1)
    kubectl("label", "pod", pod, "app=loose", "--overwrite")
    until(lambda: len(names(kubectl, "app=loose")) == 1, 15, "adopted, and one of the two deleted")
    ready(kubectl, "loose", 1)


def test_an_orphan_that_matches_is_adopted(kubectl: Kubectl) -> None:
    pod = {
        **{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "foundling", "labels": {"app": "home"}}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    kubectl("wait", "--for=condition=Ready", "pod/foundling", "--timeout=20s")
    kubectl("apply", "-f", "-", stdin=WEB.format(name="home", replicas=2))
    assert "foundling" in ready(kubectl, "home", 2)


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_delete_with_each_cascade(kubectl: Kubectl, cascade: str) -> None:
    name = f"gone-{cascade}"
    kubectl("apply", "-f", "-", stdin=WEB.format(name=name, replicas=3))
    before = ready(kubectl, name, 3)
    kubectl("delete", "rs", name, f"--cascade={cascade}", "--timeout=30s")
    assert name not in kubectl("get", "rs")
    if cascade != "orphan":
        until(lambda: not names(kubectl, f"app={name}"), 20, "its pods are gone")
        return
    assert names(kubectl, f"app={name}") == before
    assert not kubectl(
        "get", "pods", "-l", f"app={name}", "-o", "jsonpath={.items[*].metadata.ownerReferences}"
    ).strip()
    kubectl("apply", "-f", "-", stdin=WEB.format(name=name, replicas=3))
    assert ready(kubectl, name, 3) == before, "the next set of that name adopts them"


def test_a_namespace_takes_everything_with_it(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin='{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "brief"}}')
    kubectl("apply", "-n", "brief", "-f", "-", stdin=WEB.format(name="web", replicas=5))
    count = ("get", "pods", "-n", "brief", "-o", "name")
    until(lambda: len(kubectl(*count).split()) == 5, 20, "five pods")
    kubectl("delete", "namespace", "brief", "--timeout=30s")
    assert "brief" not in kubectl("get", "namespaces")


def test_a_quota_is_reported_in_the_status(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin='{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tight"}}')
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}
    kubectl("apply", "-n", "tight", "-f", "-", stdin=json.dumps(quota))
    kubectl("apply", "-n", "tight", "-f", "-", stdin=WEB.format(name="web", replicas=5))
    get = ("get", "rs", "web", "-n", "tight", "-o")
    reason = "jsonpath={.status.conditions[?(@.type=='ReplicaFailure')].reason}"
    until(lambda: kubectl(*get, reason) == "FailedCreate", 20, "the condition ReplicaFailure")
    assert len(kubectl("get", "pods", "-n", "tight", "-o", "name").split()) == 2
    kubectl("scale", "rs", "web", "-n", "tight", "--replicas=2")
    until(lambda: not kubectl(*get, reason), 30, "the condition goes")
    kubectl("delete", "namespace", "tight", "--timeout=30s")


def test_watch_shows_the_pods_come(kubectl: Kubectl, up: RunningUp, tmp_path: Path) -> None:
    """What it began with tells that it watches."""
    seen, mark = tmp_path / "seen", {"name": "mark", "labels": {"app": "mark"}}
    spec = {"containers": [{"name": "c", "image": "nginx"}]}
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": mark, "spec": spec}))
    kubectl("wait", "--for=condition=Ready", "pod/mark", "--timeout=20s")
    with seen.open("wb") as out:
        watching = subprocess.Popen(
            ["kubectl", "get", "pods", "-l", "app in (seen,mark)", "-w", "--no-headers"],
            stdout=out,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(up.state.kubeconfig)},
        )
    try:
        until(lambda: "mark" in seen.read_text(), 30, "it watches")
        kubectl("apply", "-f", "-", stdin=WEB.format(name="seen", replicas=2))
        ready(kubectl, "seen", 2)
        until(lambda: seen.read_text().count("1/1") >= 3, 15, "two ready pods in the watch")
    finally:
        watching.terminate()
        watching.wait()
    assert "Pending" in seen.read_text() or "0/1" in seen.read_text()
