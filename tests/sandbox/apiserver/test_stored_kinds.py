"""Kinds that are only stored: their rows, what is refused all the same, and what a delete leaves."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.sandbox.apiserver.kinds.kinds import KINDS, STORED_KINDS
from oarlock.sandbox.apiserver.text.times import rfc3339
from tests.sandbox.api_harness import START_S, Api

Obj = dict[str, Any]
META = {"name": "x", "creationTimestamp": rfc3339(START_S - 90)}
SELECTOR = {"matchLabels": {"app": "x"}}
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SUBJECTS = [
    {"kind": "User", "name": "u1"},
    {"kind": "ServiceAccount", "name": "a", "namespace": "n"},
    {"kind": "User", "name": "u2"},
    {"kind": "Group", "name": "g"},
]


ENDING = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CONTENT: dict[str, Obj] = {  # the least of each kind, where metadata is not enough
    "Job": {"spec": {"template": ENDING}},
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ENDING}}}},
    "StatefulSet": {"spec": {"serviceName": "x", "selector": SELECTOR, "template": TEMPLATE}},
    "HorizontalPodAutoscaler": {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "x"}, "maxReplicas": 3}},
    "EndpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    "PersistentVolumeClaim": {"spec": CLAIM},
    "PersistentVolume": {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}},
    "StorageClass": {"provisioner": "x.io/y"},
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}},
}


@pytest.mark.parametrize(
    ("kind", "obj", "cells"),
    [
        pytest.param(
            "Job",
            {
                "spec": {"completions": 3, "template": TEMPLATE},
                "status": {
                    "succeeded": 3,
                    "startTime": rfc3339(START_S - 60),
                    "completionTime": rfc3339(START_S - 50),
                    "conditions": [{"type": "Failed", "status": "False"}, {"type": "Complete", "status": "True"}],
                },
            },
            ["x", "Complete", "3/3", "10s", "90s", "c", "i", "<none>"],
        ),
        pytest.param(
            "Job",
            {"spec": {"parallelism": 2}, "status": {"startTime": rfc3339(START_S - 60)}},
            ["x", "Running", "0/1 of 2", "60s", "90s", "", "", "<none>"],
            id="a Job under way",
        ),
        pytest.param(
            "Job",
            {"status": {"startTime": "yesterday"}},
            ["x", "Running", "0/1", "<invalid>", "90s", "", "", "<none>"],
            id="a Job that began at no time",
        ),
        pytest.param("Role", {}, ["x", META["creationTimestamp"]]),
        pytest.param("ClusterRole", {}, ["x", META["creationTimestamp"]]),
        pytest.param(
            "RoleBinding",
            {"roleRef": {"kind": "Role", "name": "r"}, "subjects": SUBJECTS},
            ["x", "Role/r", "90s", "u1, u2", "g", "n/a"],
        ),
        pytest.param("ClusterRoleBinding", {}, ["x", "/", "90s", "", "", ""]),
        pytest.param("PodDisruptionBudget", {"spec": {"maxUnavailable": 1}}, ["x", "N/A", "1", 0, "90s"]),
        pytest.param("PriorityClass", {"value": -5, "globalDefault": True}, ["x", -5, "true", "90s"]),
        pytest.param("NetworkPolicy", {"spec": {"podSelector": SELECTOR}}, ["x", "app=x", "90s"]),
        pytest.param("NetworkPolicy", {"spec": {"podSelector": {}}}, ["x", "<none>", "90s"], id="for all pods"),
        pytest.param("IngressClass", {"spec": {"controller": "x.io/y"}}, ["x", "x.io/y", "<none>", "90s"]),
        pytest.param(
            "IngressClass",
            {"spec": {"parameters": {"apiGroup": "x.io", "kind": "P", "name": "p"}}},
            ["x", "", "P.x.io/p", "90s"],
            id="an IngressClass with parameters",
        ),
        pytest.param("CSIDriver", {}, ["x", "90s"]),
        pytest.param("ValidatingWebhookConfiguration", {"webhooks": [{}, {}]}, ["x", 2, "90s"]),
        pytest.param("MutatingWebhookConfiguration", {}, ["x", 0, "90s"]),
        pytest.param("CustomResourceDefinition", {}, ["x", META["creationTimestamp"]]),
        pytest.param(
            "CronJob",
            {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": TEMPLATE}}}},
            ["x", "@daily", "<none>", "False", 0, "<none>", "90s", "c", "i", "<none>"],
        ),
        pytest.param(
            "StatefulSet",
            {"spec": {"replicas": 2, "template": TEMPLATE}, "status": {"readyReplicas": 1}},
            ["x", "1/2", "90s", "c", "i"],
        ),
        pytest.param(
            "Endpoints",
            {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(5)], "ports": [{"port": 80}]}]},
            ["x", "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more...", "90s"],
        ),
        pytest.param(
            "EndpointSlice",
            {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.0.0.1"]}]},
            ["x", "IPv4", "80", "10.0.0.1", "90s"],
        ),
        pytest.param(
            "Ingress",
            {
                "spec": {"ingressClassName": "n", "rules": [{"host": "a.io"}], "tls": [{}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
            },
            ["x", "n", "a.io", "1.2.3.4", "80, 443", "90s"],
        ),
        pytest.param(
            "PersistentVolumeClaim",
            {
                "spec": {**CLAIM, "volumeName": "v", "storageClassName": "s", "volumeMode": "Filesystem"},
                "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
            },
            ["x", "Bound", "v", "1Gi", "RWO", "s", "<unset>", "90s", "Filesystem"],
        ),
        pytest.param(
            "PersistentVolume",
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "n", "name": "c"},
                },
                "status": {"phase": "Bound"},
            },
            ["x", "1Gi", "RWX", "Retain", "Bound", "n/c", "", "<unset>", "", "90s", "<unset>"],
        ),
        pytest.param("StorageClass", {"provisioner": "p"}, ["x", "p", "Delete", "Immediate", "false", "90s"]),
        pytest.param(
            "HorizontalPodAutoscaler",
            {
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                    "minReplicas": 1,
                    "maxReplicas": 3,
                    "metrics": [{"resource": {"name": "cpu", "target": {"averageUtilization": 80}}}],
                }
            },
            ["x", "Deployment/d", "cpu: <unknown>/80%", "1", 3, 0, "90s"],
        ),
        pytest.param("LimitRange", {}, ["x", META["creationTimestamp"]]),
    ],
)
def test_rows(kind: str, obj: Obj, cells: list[Any]) -> None:
    printer = KINDS[kind].printer
    assert printer.row({"metadata": META, **obj}, START_S) == cells
    assert len(printer.columns) == len(cells)


def test_every_stored_kind_can_be_created_listed_and_deleted(api: Api) -> None:
    for kind in STORED_KINDS:
        where = "/namespaces/default" if kind.namespaced else ""
        root = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
        path = f"{root}{where}/{kind.plural}"
        made = api.create(path, {"metadata": {"name": "x"}, **CONTENT.get(kind.name, {})})
        assert (made["kind"], made["apiVersion"]) == (kind.name, kind.api_version)
        assert [obj["metadata"]["name"] for obj in api.get(path)["items"]] == ["x"]
        api.delete(f"{path}/x", propagationPolicy="Background")
        assert api.get(path)["items"] == []


RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("path", "obj", "message"),
    [
        pytest.param(f"{RBAC}/clusterroles", {"metadata": {"name": "a/b"}}, "may not contain '/'", id="a slash"),
        pytest.param(f"{RBAC}/clusterroles", {"metadata": {"name": ".."}}, "may not be '..'", id="dots"),
        pytest.param(
            "/apis/batch/v1/namespaces/default/jobs",
            {"metadata": {"name": "x"}, "spec": {"template": TEMPLATE}},
            'restartPolicy: Unsupported value: "Always": supported values: "OnFailure", "Never"',
            id="a Job that never ends",
        ),
        pytest.param(
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {"metadata": {"name": "x"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}},
            "minAvailable and maxUnavailable cannot be both set",
            id="a budget with both limits",
        ),
        pytest.param(
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            {"metadata": {"name": "x"}, "spec": {"podSelector": {"matchExpressions": [{"operator": "In"}]}}},
            "spec.podSelector.matchExpressions[0].values: Required value",
            id="a policy with a bad selector",
        ),
    ],
)
def test_what_may_not_be(api: Api, path: str, obj: Obj, message: str) -> None:
    code, status = api.call("POST", path, obj)
    assert code == 422
    assert message in status["message"]


def test_roles_may_have_colons(api: Api) -> None:
    api.create(f"{RBAC}/clusterroles", {"metadata": {"name": "system:node"}})
    assert api.get(f"{RBAC}/clusterroles/system:node")["metadata"]["name"] == "system:node"


def test_a_namespace_where_there_is_none_is_left_out(api: Api) -> None:
    """Files say it now and then."""
    meta = {"name": "x", "namespace": "kube-system"}
    assert "namespace" not in api.create(f"{RBAC}/clusterroles", {"metadata": meta})["metadata"]
    assert "namespace" not in api.put(f"{RBAC}/clusterroles/x", {"metadata": meta, "rules": []})["metadata"]
