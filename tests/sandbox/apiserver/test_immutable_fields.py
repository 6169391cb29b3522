"""What of the stored kinds cannot change, and the accounts that come with a namespace."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_harness import MERGE, Api, names
from tests.sandbox.apiserver.test_stored_kinds import CONTENT

CORE, RBAC = "/api/v1/namespaces/default", "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
JOBS, JOB = "/apis/batch/v1/namespaces/default/jobs", CONTENT["Job"]
WAITING = {"spec": {**JOB["spec"], "suspend": True}}
INDEXED = {"spec": {**JOB["spec"], "completions": 2, "parallelism": 2, "completionMode": "Indexed"}}
MOVED = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"a": "b"}}}
DATA, SECRET = {"data": {"a": "b"}}, {"data": {"a": "Yg=="}}


@pytest.mark.parametrize(
    ("path", "content", "change", "field"),
    [
        (f"{CORE}/configmaps", {**DATA, "immutable": True}, {"data": {"a": "c"}}, "data"),
        (f"{CORE}/configmaps", {**DATA, "immutable": True}, {"immutable": False}, "immutable"),
        (f"{CORE}/configmaps", {**DATA, "immutable": True}, {"metadata": {"labels": {"a": "b"}}}, None),
        (f"{CORE}/configmaps", DATA, {"data": {"a/b": "c"}}, "data[a/b]"),
        (f"{CORE}/configmaps", DATA, {"data": {"a": "c"}, "immutable": True}, None),
        (f"{CORE}/secrets", {**SECRET, "immutable": True}, {"stringData": {"a": "c"}}, "data"),
        (f"{CORE}/secrets", SECRET, {"type": "x.io/y"}, "type"),
        (f"{CORE}/secrets", SECRET, {"stringData": {"c": "d"}}, None),
        (f"{RBAC}/rolebindings", {"roleRef": ROLE}, {"roleRef": {**ROLE, "name": "b"}}, "roleRef"),
        (
            f"{CORE}/persistentvolumeclaims",
            CONTENT["PersistentVolumeClaim"],
            {"spec": {"accessModes": ["ReadWriteMany"]}},
            "spec",
        ),
        (
            f"{CORE}/persistentvolumeclaims",
            CONTENT["PersistentVolumeClaim"],
            {"spec": {"resources": {"requests": {"storage": "2Gi"}}, "volumeName": "v"}},
            None,
        ),
        (
            "/apis/apps/v1/namespaces/default/statefulsets",
            CONTENT["StatefulSet"],
            {"spec": {"serviceName": "y"}},
            "spec",
        ),
        ("/apis/apps/v1/namespaces/default/statefulsets", CONTENT["StatefulSet"], {"spec": {"replicas": 2}}, None),
        (JOBS, JOB, {"spec": {"template": MOVED}}, "spec.template"),
        (JOBS, JOB, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}}, "spec.template"),
        (JOBS, JOB, {"spec": {"completions": 2}}, "spec.completions"),
        (JOBS, JOB, {"spec": {"completionMode": "Indexed"}}, "spec.completionMode"),
        (JOBS, JOB, {"spec": {"parallelism": 2, "suspend": True, "backoffLimit": 1}}, None),
        (JOBS, JOB, {"spec": {"template": {"metadata": {"creationTimestamp": None}}}}, None),
        (JOBS, WAITING, {"spec": {"template": MOVED, "suspend": False}}, None),
        (JOBS, WAITING, {"spec": {"template": {"spec": {"hostname": "x"}}}}, "spec.template"),
        (JOBS, INDEXED, {"spec": {"completions": 3, "parallelism": 3}}, None),
        (JOBS, INDEXED, {"spec": {"completions": 3}}, "spec.completions"),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            CONTENT["EndpointSlice"],
            {"addressType": "FQDN"},
            "addressType",
        ),
    ],
)
def test_changes(api: Api, path: str, content: dict[str, Any], change: dict[str, Any], field: str | None) -> None:
    api.create(path, {"metadata": {"name": "x"}, **content})
    code, answer = api.call("PATCH", f"{path}/x", change, MERGE)
    if field is None:
        assert code == 200, answer
    else:
        assert (code, answer["details"]["causes"][0]["field"]) == (422, field)


def test_every_namespace_has_its_account(api: Api) -> None:
    assert names(api.get("/api/v1/serviceaccounts")) == ["default"] * 4
    api.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    path = "/api/v1/namespaces/n/serviceaccounts"
    first = api.get(f"{path}/default")
    api.delete(f"{path}/default")
    assert api.get(f"{path}/default")["metadata"]["uid"] != first["metadata"]["uid"]
    api.delete("/api/v1/namespaces/n")
    assert any(api.call("GET", "/api/v1/namespaces/n")[0] == 404 for _ in range(500))
