"""kubectl's commands for ReplicationControllers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.kubectl.kubectl_harness import KUBECTL, Kubectl, eventually, pod

pytestmark = KUBECTL

Obj = dict[str, Any]


def controller(replicas: int = 3) -> Obj:
    labels = {"app": "web"}
    return {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}},
        },
    }


def test_apply_get_and_describe(kubectl: Kubectl) -> None:
    """The selector and the labels come from the template, also when the same file is applied again."""
    assert "created" in kubectl.apply(controller())
    assert "unchanged" in kubectl.apply(controller())
    assert "configured" in kubectl.apply(controller(5))
    found = kubectl.json("get", "rc", "web")
    assert (found["spec"]["selector"], found["metadata"]["labels"]) == ({"app": "web"}, {"app": "web"})
    lines = [line.split() for line in kubectl.run("get", "rc").splitlines()]
    assert lines[0] == ["NAME", "DESIRED", "CURRENT", "READY", "AGE"]
    assert lines[1][:4] == ["web", "5", "0", "0"]
    assert kubectl.run("get", "rc", "-o", "wide").splitlines()[1].split()[-3:] == ["c", "nginx:1", "app=web"]
    assert "replicationcontroller/web" in kubectl.run("get", "all")
    described = kubectl.run("describe", "rc", "web")
    assert "Selector:     app=web" in described
    assert "0 current / 5 desired" in described


def test_scale(kubectl: Kubectl) -> None:
    kubectl.apply(controller())
    for replicas in ("0", "300", "2"):
        assert "scaled" in kubectl.run("scale", "rc", "web", f"--replicas={replicas}")
        assert kubectl.run("get", "rc", "web", "-o", "jsonpath={.spec.replicas}") == replicas
    assert "scaled" in kubectl.run("scale", "rc", "web", "--current-replicas=2", "--replicas=1")
    assert "Expected replicas to be 7" in kubectl.run(
        "scale", "rc", "web", "--current-replicas=7", "--replicas=1", code=1
    )


def test_the_selector_may_change(kubectl: Kubectl) -> None:
    kubectl.apply(controller())
    template = {"metadata": {"labels": {"app": "api"}}}
    patch = {"spec": {"selector": {"app": "api"}, "template": template}}
    kubectl.run("patch", "rc", "web", "-p", json.dumps(patch))
    assert kubectl.json("get", "rc", "web")["spec"]["selector"] == {"app": "api"}


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_delete_with_each_cascade(kubectl: Kubectl, cascade: str) -> None:
    kubectl.apply(controller())
    owner = kubectl.json("get", "rc", "web")
    kubectl.apply(*(pod(f"p{number}", owner, app="web") for number in range(3)))
    assert "deleted" in kubectl.run("delete", "rc", "web", f"--cascade={cascade}")
    if cascade == "orphan":
        kept = kubectl.json("get", "pods")["items"]
        assert [p["metadata"].get("ownerReferences") for p in kept] == [None, None, None]
    else:
        eventually(kubectl, f"No resources found in {kubectl.namespace} namespace.", "get", "pods")
