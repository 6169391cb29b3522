"""Server-side apply: the embedded server answers what a real one does."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.e2e.e2e_kubectl import Kubectl

pytestmark = [pytest.mark.kubectl]

Obj = dict[str, Any]


def config(**data: str) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})


def template(replicas: int | None, image: str = "i:1", **env: str) -> str:
    container = {"name": "c", "image": image, "env": [{"name": name, "value": value} for name, value in env.items()]}
    pod = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}
    spec: Obj = {"selector": {"matchLabels": {"app": "a"}}, "template": pod, "paused": True}
    if replicas is not None:
        spec["replicas"] = replicas
    return yaml.safe_dump({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})


def apply(kubectl: Kubectl, manager: str, body: str, *flags: str, code: int = 0) -> str:
    return kubectl.run("apply", "--server-side", f"--field-manager={manager}", *flags, "-f", "-", stdin=body, code=code)


def fields(kubectl: Kubectl, what: str) -> dict[tuple[str, str], Obj]:
    place = {"configmaps": "/api/v1", "deployments": "/apis/apps/v1"}[what]
    obj = json.loads(kubectl.run("get", "--raw", f"{kubectl.root}{place}/namespaces/{kubectl.namespace}/{what}/a"))
    return {(each["manager"], each["operation"]): each["fieldsV1"] for each in obj["metadata"]["managedFields"]}


def data(kubectl: Kubectl) -> Obj:
    return dict(json.loads(kubectl.run("get", "configmap", "a", "-o", "json"))["data"])


def test_managers_share_conflict_and_take_over(kubectl: Kubectl) -> None:
    apply(kubectl, "one", config(x="1", w="1"))
    assert fields(kubectl, "configmaps") == {("one", "Apply"): {"f:data": {"f:x": {}, "f:w": {}}}}
    told = apply(kubectl, "two", config(x="2"), code=1)
    assert 'Apply failed with 1 conflict: conflict with "one": .data.x' in told
    told = apply(kubectl, "two", config(x="2", w="2"), code=1)
    assert 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.w\n- .data.x' in told
    apply(kubectl, "two", config(x="2", z="2"), "--force-conflicts")
    assert fields(kubectl, "configmaps") == {
        ("one", "Apply"): {"f:data": {"f:w": {}}},
        ("two", "Apply"): {"f:data": {"f:x": {}, "f:z": {}}},
    }
    apply(kubectl, "two", config(z="2"))
    assert data(kubectl) == {"w": "1", "z": "2"}


def test_an_ordinary_writer_owns_what_it_changed(kubectl: Kubectl) -> None:
    apply(kubectl, "one", template(1, A="1"))
    kubectl.run("patch", "deployment", "a", "--field-manager=scaler", "-p", '{"spec":{"replicas":2}}')
    told = apply(kubectl, "one", template(3), code=1)
    assert 'conflict with "scaler" using apps/v1' in told
    assert told.count(".spec.replicas") >= 1
    apply(kubectl, "one", template(None, B="2"))
    owned = fields(kubectl, "deployments")
    assert owned["scaler", "Update"] == {"f:spec": {"f:replicas": {}}}
    container = owned["one", "Apply"]["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert container == {
        ".": {},
        "f:name": {},
        "f:image": {},
        "f:env": {'k:{"name":"B"}': {".": {}, "f:name": {}, "f:value": {}}},
    }
    spec = json.loads(kubectl.run("get", "deployment", "a", "-o", "json"))["spec"]
    assert spec["replicas"] == 2
    assert spec["template"]["spec"]["containers"][0]["env"] == [{"name": "B", "value": "2"}]


def test_from_client_side_apply(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", stdin=config(x="1"))
    kubectl.run("apply", "--server-side", "-f", "-", stdin=config(x="3", w="2"))
    assert data(kubectl) == {"x": "3", "w": "2"}


def test_dry_runs_store_nothing(kubectl: Kubectl) -> None:
    apply(kubectl, "one", config(x="1"), "--dry-run=server")
    kubectl.run("get", "configmap", "a", code=1)
    apply(kubectl, "one", config(x="1"))
    assert '+  x: "2"' in kubectl.run("diff", "-f", "-", stdin=config(x="2"), code=1)
    kubectl.run("delete", "configmap", "a", "--dry-run=server")
    assert data(kubectl) == {"x": "1"}
