"""Server-side apply over HTTP: conflicts, ownership, removal, creation, parts, options."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_harness import DEPLOYMENTS, JSON_PATCH, MERGE, PODS, Api

APPLY = "application/apply-patch+yaml"
CONFIGS = "/api/v1/namespaces/default/configmaps"
Obj = dict[str, Any]


def config(**data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def deployment(replicas: int | None = 2, image: str = "i:1", **more: Any) -> Obj:
    spec: Obj = {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    meta = {"name": "a", **more}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def apply(api: Api, path: str, body: Obj, manager: str, **params: str) -> tuple[int, Obj]:
    return api.call("PATCH", path, body, APPLY, fieldManager=manager, **params)


def managers(obj: Obj) -> dict[tuple[str, str, str], Obj]:
    return {
        (each["manager"], each["operation"], each.get("subresource", "")): each["fieldsV1"]
        for each in obj["metadata"].get("managedFields", ())
    }


def test_an_apply_creates_and_then_owns_what_it_named(api: Api) -> None:
    code, made = apply(api, f"{CONFIGS}/a", config(x="1"), "one")
    assert code == 201
    assert managers(made) == {("one", "Apply", ""): {"f:data": {"f:x": {}}}}
    assert {key: made["metadata"]["managedFields"][0][key] for key in ("apiVersion", "fieldsType")} == {
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
    }
    code, again = apply(api, f"{CONFIGS}/a", config(x="1"), "one")
    assert (code, again) == (200, made)


def test_another_value_of_a_managed_field_is_a_conflict_until_forced(api: Api) -> None:
    apply(api, f"{CONFIGS}/a", config(x="1", y="1"), "one")
    code, status = apply(api, f"{CONFIGS}/a", config(x="2"), "two")
    assert (code, status["reason"]) == (409, "Conflict")
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.x"}
    ]
    code, taken = apply(api, f"{CONFIGS}/a", config(x="2"), "two", force="true")
    assert (code, taken["data"]) == (200, {"x": "2", "y": "1"})
    assert managers(taken) == {
        ("one", "Apply", ""): {"f:data": {"f:y": {}}},
        ("two", "Apply", ""): {"f:data": {"f:x": {}}},
    }


def test_several_conflicts_are_listed_by_manager(api: Api) -> None:
    apply(api, f"{CONFIGS}/a", config(x="1", y="1"), "one")
    _, status = apply(api, f"{CONFIGS}/a", config(x="2", y="2"), "two")
    assert status["message"] == 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.x\n- .data.y'


def test_a_field_that_nobody_applies_any_longer_goes(api: Api) -> None:
    apply(api, f"{CONFIGS}/a", config(x="1", y="1", z="1"), "one")
    apply(api, f"{CONFIGS}/a", config(y="1"), "two")
    _, left = apply(api, f"{CONFIGS}/a", config(z="1"), "one")
    assert left["data"] == {"y": "1", "z": "1"}
    assert managers(left)[("two", "Apply", "")] == {"f:data": {"f:y": {}}}
    assert left["metadata"]["uid"]


def test_ordinary_writers_own_what_they_change(api: Api) -> None:
    made = api.call("POST", DEPLOYMENTS, deployment(), fieldManager="maker")[1]
    fields = managers(made)[("maker", "Update", "")]
    assert fields["f:spec"]["f:replicas"] == {}
    container = fields["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert {".", "f:image", "f:name"} <= container.keys()
    assert "f:status" not in fields
    assert fields["f:spec"]["f:selector"] == {}
    api.call("PATCH", f"{DEPLOYMENTS}/a", {"spec": {"replicas": 5}}, MERGE, fieldManager="scaler")
    code, status = apply(api, f"{DEPLOYMENTS}/a", deployment(3), "one")
    assert (code, status["message"]) == (
        409,
        'Apply failed with 1 conflict: conflict with "scaler" using apps/v1: .spec.replicas',
    )
    code, left = apply(api, f"{DEPLOYMENTS}/a", deployment(None), "one")
    assert (code, left["spec"]["replicas"]) == (200, 5)


def test_a_status_is_managed_apart(api: Api) -> None:
    apply(api, f"{DEPLOYMENTS}/a", deployment(), "one")
    condition = {"type": "Mine", "status": "True", "reason": "r", "message": ""}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
    code, left = apply(api, f"{DEPLOYMENTS}/a/status", {**body, "status": {"conditions": [condition]}}, "one")
    assert code == 200
    assert left["spec"]["replicas"] == 2
    assert managers(left)[("one", "Apply", "status")]["f:status"]["f:conditions"].keys() == {'k:{"type":"Mine"}'}
    code, left = apply(api, f"{DEPLOYMENTS}/a/status", body, "one")
    assert code == 200
    assert not left.get("status", {}).get("conditions")
    assert ("one", "Apply", "status") not in managers(left)
    assert ("one", "Apply", "") in managers(left)


def test_pods_are_tracked_from_their_first_apply_on(api: Api) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "1"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    assert "managedFields" not in api.create(PODS, pod)["metadata"]
    pod["metadata"] = {"name": "p", "labels": {"a": "2"}}
    code, status = apply(api, f"{PODS}/p", pod, "one")
    assert code == 409
    assert '"before-first-apply" using v1' in status["message"]
    _, taken = apply(api, f"{PODS}/p", pod, "one", force="true")
    assert ("one", "Apply", "") in managers(taken)
    patched = api.call("PATCH", f"{PODS}/p", {"metadata": {"labels": {"b": "1"}}}, MERGE, fieldManager="two")[1]
    assert managers(patched)[("two", "Update", "")] == {"f:metadata": {"f:labels": {"f:b": {}}}}


def test_managed_fields_may_be_written_and_reset(api: Api) -> None:
    made = apply(api, f"{CONFIGS}/a", config(x="1"), "one")[1]
    entry = {**made["metadata"]["managedFields"][0], "manager": "other"}
    patch = [{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}]
    left = api.call("PATCH", f"{CONFIGS}/a", patch, JSON_PATCH)[1]
    assert managers(left) == {("other", "Apply", ""): {"f:data": {"f:x": {}}}}
    left = api.call("PATCH", f"{CONFIGS}/a", {"metadata": {"managedFields": [{}]}}, MERGE)[1]
    assert "managedFields" not in left["metadata"]


def test_a_dry_run_stores_nothing(api: Api) -> None:
    code, made = apply(api, f"{CONFIGS}/a", config(x="1"), "one", dryRun="All")
    assert (code, made["data"]) == (201, {"x": "1"})
    assert api.call("GET", f"{CONFIGS}/a")[0] == 404
    before = apply(api, f"{CONFIGS}/a", config(x="1"), "one")[1]
    assert apply(api, f"{CONFIGS}/a", config(x="2"), "one", dryRun="All")[1]["data"] == {"x": "2"}
    assert api.get(f"{CONFIGS}/a") == before


@pytest.mark.parametrize(
    ("path", "body", "params", "code", "message"),
    [
        ("a", config(), {}, 422, "fieldManager: Required value: is required for apply patch"),
        ("b", config(), {"fieldManager": "m"}, 400, "does not match the name on the URL"),
        ("a", {"kind": "ConfigMap"}, {"fieldManager": "m"}, 400, "has no apiVersion"),
        ("a/status", config(), {"fieldManager": "m"}, 404, "not find"),
        ("a", {**config(), "metadata": {"managedFields": [{}]}}, {"fieldManager": "m"}, 400, "must be nil"),
        ("a", config(), {"fieldManager": "m" * 129}, 422, "may not be"),
    ],
)
def test_bad_requests(api: Api, path: str, body: Obj, params: dict[str, str], code: int, message: str) -> None:
    answered, status = api.call("PATCH", f"{CONFIGS}/{path}", body, APPLY, **params)
    assert answered == code
    assert message in status["message"]


def test_force_is_for_applies_alone(api: Api) -> None:
    code, status = api.call("PATCH", f"{CONFIGS}/a", {}, MERGE, force="true")
    assert code == 422
    assert "may not be specified for non-apply patch" in status["message"]


def test_kubectl_takes_over_what_it_applied_by_patches(api: Api) -> None:
    """And nothing that has changed since."""
    note = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"x":"1","y":"1"}}'}
    made = {**config(x="1", y="0"), "metadata": {"name": "a", "annotations": note}}
    api.call("POST", CONFIGS, made, fieldManager="kubectl-client-side-apply")
    code, status = apply(api, f"{CONFIGS}/a", config(x="2", y="2"), "kubectl")
    assert code == 409
    assert [each["field"] for each in status["details"]["causes"]] == [".data.y"]
    code, taken = apply(api, f"{CONFIGS}/a", config(x="2"), "kubectl")
    assert code == 200
    assert taken["data"] == {"x": "2", "y": "0"}
    assert '"x":"2"' in taken["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert apply(api, f"{CONFIGS}/a", config(x="3"), "another")[0] == 409
