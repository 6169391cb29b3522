"""Scale, binding and the status of objects, at their own addresses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_harness import JSON_PATCH, MERGE, PODS, SETS, Api, pod, replicaset

SCALE = f"{SETS}/web/scale"


def test_scale_shows_and_sets_replicas(api: Api) -> None:
    made = api.create(SETS, replicaset())
    api.patch(f"{SETS}/web/status", {"status": {"replicas": 2}})
    scale = api.get(SCALE)
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 2, "selector": "app=web"}
    assert scale["metadata"]["uid"] == made["metadata"]["uid"]
    scale["spec"]["replicas"] = 0
    assert api.put(SCALE, scale)["spec"]["replicas"] == 0
    assert api.patch(SCALE, {"spec": {"replicas": 300}})["spec"]["replicas"] == 300
    replace = [{"op": "replace", "path": "/spec/replicas", "value": 2}]
    assert api.patch(SCALE, replace, JSON_PATCH)["spec"]["replicas"] == 2
    whole = api.get(f"{SETS}/web")
    assert (whole["spec"]["replicas"], whole["metadata"]["generation"]) == (2, 4)
    assert whole["spec"]["template"] == made["spec"]["template"]


BAD_SCALES: list[Any] = [
    pytest.param({"spec": {"replicas": -1}}, 422, 'Scale.autoscaling "web" is invalid: spec.replicas', id="negative"),
    pytest.param({"spec": {"replicas": "many"}}, 400, "replicas", id="a word"),
    pytest.param({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 5}}, 409, "modified", id="old version"),
    pytest.param({"metadata": {"uid": "other"}, "spec": {"replicas": 5}}, 409, "UID", id="another uid"),
    pytest.param({"metadata": {"name": "api"}}, 400, "does not match the name on the URL", id="another name"),
]


@pytest.mark.parametrize(("patch", "code", "message"), BAD_SCALES)
def test_bad_scales(api: Api, patch: dict[str, Any], code: int, message: str) -> None:
    api.create(SETS, replicaset())
    got, status = api.call("PATCH", SCALE, patch, MERGE)
    assert got == code
    assert message in status["message"]
    assert api.get(f"{SETS}/web")["spec"]["replicas"] == 3


def binding(node: str = "n1", **meta: Any) -> dict[str, Any]:
    return {"kind": "Binding", "metadata": {"name": "a", **meta}, "target": {"kind": "Node", "name": node}}


def test_binding_gives_a_pod_its_node_once(api: Api) -> None:
    api.create(PODS, pod("a"))
    assert api.create(f"{PODS}/a/binding", binding())["status"] == "Success"
    bound = api.get(f"{PODS}/a")
    assert bound["spec"]["nodeName"] == "n1"
    assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    code, status = api.call("POST", f"{PODS}/a/binding", binding("n2"))
    assert (code, status["reason"]) == (409, "Conflict")
    assert 'pod a is already assigned to node "n1"' in status["message"]


def test_bindings_that_cannot_be(api: Api) -> None:
    api.create(PODS, pod("a"))
    assert api.call("POST", f"{PODS}/none/binding", binding())[0] == 404
    assert api.call("POST", f"{PODS}/a/binding", binding(""))[0] == 422
    assert api.call("POST", f"{PODS}/a/binding", binding(uid="other"))[0] == 409
    api.patch(f"{PODS}/a", {"metadata": {"finalizers": ["x.io/y"]}})
    api.delete(f"{PODS}/a")
    code, status = api.call("POST", f"{PODS}/a/binding", binding())
    assert (code, "is being deleted" in status["message"]) == (409, True)


def test_status_conflicts_on_an_old_resource_version(api: Api) -> None:
    """A status computed from an older object must not be written."""
    made = api.create(SETS, replicaset())
    api.patch(SCALE, {"spec": {"replicas": 5}})
    made["status"] = {"replicas": 3}
    code, status = api.call("PUT", f"{SETS}/web/status", made)
    assert (code, status["reason"]) == (409, "Conflict")


def test_status_may_set_metadata_but_not_owners(api: Api) -> None:
    made = api.create(PODS, pod("a"))
    made["metadata"]["labels"] = {"a": "b"}
    made["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]
    stored = api.put(f"{PODS}/a/status", made)
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert "ownerReferences" not in stored["metadata"]


def test_methods_a_part_does_not_have(api: Api) -> None:
    api.create(PODS, pod("a"))
    api.create(SETS, replicaset())
    for method, path in (
        ("GET", f"{PODS}/a/binding"),
        ("DELETE", SCALE),
        ("POST", SCALE),
        ("DELETE", f"{PODS}/a/status"),
    ):
        code, status = api.call(method, path, {} if method == "POST" else None)
        assert (code, status["reason"]) == (405, "MethodNotAllowed"), (method, path)
    assert api.get(f"{PODS}/a/status")["metadata"]["name"] == "a"
