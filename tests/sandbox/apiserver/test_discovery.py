"""What clients ask first."""

from __future__ import annotations

import json

from tests.sandbox.api_harness import Api


def test_groups_and_versions(api: Api) -> None:
    assert api.get("/api")["versions"] == ["v1"]
    groups = {g["name"]: g["preferredVersion"]["groupVersion"] for g in api.get("/apis")["groups"]}
    assert groups.pop("autoscaling") == "autoscaling/v2"
    assert all(served == f"{group}/v1" for group, served in groups.items())
    assert {"apps", "batch", "coordination.k8s.io", "policy", "rbac.authorization.k8s.io"} <= groups.keys()
    for group in groups:
        assert api.get(f"/apis/{group}")["name"] == group
        assert api.get(f"/apis/{group}/v1")["resources"]
    assert api.get("/apis/apps")["kind"] == "APIGroup"
    assert api.get("/version")["gitVersion"] == "v1.32.0+oarlock"


def test_resources(api: Api) -> None:
    core = {r["name"]: r for r in api.get("/api/v1")["resources"]}
    assert {"namespaces", "nodes", "pods", "pods/status", "pods/binding", "events", "resourcequotas"} <= set(core)
    assert (core["pods"]["shortNames"], core["pods"]["categories"], core["pods"]["namespaced"]) == (
        ["po"],
        ["all"],
        True,
    )
    assert "deletecollection" not in core["namespaces"]["verbs"]
    apps = {r["name"]: r for r in api.get("/apis/apps/v1")["resources"]}
    assert apps["replicasets/scale"]["kind"] == "Scale"
    assert apps["replicasets/scale"]["group"] == "autoscaling"


def test_schemas_are_there_and_empty(api: Api) -> None:
    """A missing schema makes kubectl refuse to apply; an empty one makes it skip client-side validation."""
    code, body = api.raw("GET", "/openapi/v2?timeout=32s")
    assert (code, body) == (200, b"")
    assert json.loads(api.raw("GET", "/openapi/v3")[1]) == {"paths": {}}


def test_health(api: Api) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert api.raw("GET", path) == (200, b"ok")
