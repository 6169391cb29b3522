"""Defaults of each kind, and that nothing handed in is changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from oarlock.sandbox.apiserver import defaulting
from oarlock.sandbox.apiserver.defaulting.pod_spec import default_pod_spec, image_pull_policy

Obj = dict[str, Any]


def pod(**spec: Any) -> Obj:
    return {"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": [{"name": "c"}], **spec}}


def defaulted(kind: str, obj: Obj) -> Obj:
    before = copy.deepcopy(obj)
    result = defaulting.apply(kind, obj)
    assert obj == before, "the object handed in was changed"
    again = defaulting.apply(kind, result)
    assert again == result, "a second pass changed something"
    return result


def test_a_pod() -> None:
    assert defaulted("Pod", pod())["spec"] == {
        "containers": [
            {
                "name": "c",
                "imagePullPolicy": "Always",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
            {
                "key": "node.kubernetes.io/unreachable",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
        ],
    }


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"restartPolicy": "Never"}, "restartPolicy", "Never"),
        ({"restartPolicy": ""}, "restartPolicy", "Always"),
        ({"terminationGracePeriodSeconds": 0}, "terminationGracePeriodSeconds", 0),
        ({"terminationGracePeriodSeconds": None}, "terminationGracePeriodSeconds", 30),
        ({"enableServiceLinks": False}, "enableServiceLinks", False),
        ({"securityContext": {"runAsUser": 1}}, "securityContext", {"runAsUser": 1}),
        ({"serviceAccountName": "sa"}, "serviceAccount", "sa"),
        ({"serviceAccount": "sa"}, "serviceAccountName", "sa"),
        ({"priorityClassName": "system-node-critical"}, "priority", 2_000_001_000),
        ({"priorityClassName": "mine"}, "priority", None),
        ({"tolerations": [{"operator": "Exists"}]}, "tolerations", [{"operator": "Exists"}]),
        ({"volumes": [{"name": "v"}]}, "volumes", [{"name": "v", "emptyDir": {}}]),
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            "volumes",
            [{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}],
        ),
        (
            {"volumes": [{"name": "v", "configMap": {"defaultMode": 256}}]},
            "volumes",
            [{"name": "v", "configMap": {"defaultMode": 256}}],
        ),
        (
            {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
            "volumes",
            [{"name": "v", "hostPath": {"path": "/", "type": ""}}],
        ),
        (
            {"volumes": [{"name": "v", "downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "f"}}]}}]},
            "volumes",
            [
                {
                    "name": "v",
                    "downwardAPI": {
                        "items": [{"path": "x", "fieldRef": {"apiVersion": "v1", "fieldPath": "f"}}],
                        "defaultMode": 420,
                    },
                }
            ],
        ),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "volumes",
            [
                {
                    "name": "v",
                    "projected": {
                        "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                        "defaultMode": 420,
                    },
                }
            ],
        ),
        (
            {
                "volumes": [
                    {
                        "name": "v",
                        "projected": {
                            "defaultMode": 256,
                            "sources": [
                                {"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "f"}}]}},
                                {
                                    "downwardAPI": {
                                        "items": [{"path": "y", "fieldRef": {"apiVersion": "v2", "fieldPath": "f"}}]
                                    }
                                },
                                {"secret": {"name": "s"}},
                            ],
                        },
                    }
                ]
            },
            "volumes",
            [
                {
                    "name": "v",
                    "projected": {
                        "defaultMode": 256,
                        "sources": [
                            {
                                "downwardAPI": {
                                    "items": [{"path": "x", "fieldRef": {"apiVersion": "v1", "fieldPath": "f"}}]
                                }
                            },
                            {
                                "downwardAPI": {
                                    "items": [{"path": "y", "fieldRef": {"apiVersion": "v2", "fieldPath": "f"}}]
                                }
                            },
                            {"secret": {"name": "s"}},
                        ],
                    },
                }
            ],
        ),
        ({"volumes": [{"name": "v", "nfs": {"path": "/"}}]}, "volumes", [{"name": "v", "nfs": {"path": "/"}}]),
    ],
)
def test_a_pod_spec(given: Obj, field: str, value: Any) -> None:
    assert defaulted("Pod", pod(**given))["spec"].get(field) == value


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"imagePullPolicy": "Never"}, "imagePullPolicy", "Never"),
        ({"ports": [{"containerPort": 1}]}, "ports", [{"containerPort": 1, "protocol": "TCP"}]),
        (
            {"ports": [{"containerPort": 1, "protocol": "UDP"}]},
            "ports",
            [{"containerPort": 1, "protocol": "UDP"}],
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "f"}}}]},
            "env",
            [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "f"}}}],
        ),
        (
            {"livenessProbe": {"httpGet": {"port": 80}, "timeoutSeconds": 0, "periodSeconds": 3}},
            "livenessProbe",
            {
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 3,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
        ),
        (
            {"startupProbe": {"grpc": {"port": 1}}},
            "startupProbe",
            {
                "grpc": {"port": 1, "service": ""},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
        ),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1"}}},
            "resources",
            {"limits": {"cpu": "1"}, "requests": {"cpu": "1", "memory": "1"}},
        ),
    ],
)
def test_a_container(given: Obj, field: str, value: Any) -> None:
    body = pod(containers=[{"name": "c", **given}], initContainers=[{"name": "i", **given}])
    spec = defaulted("Pod", body)["spec"]
    assert spec["containers"][0][field] == value
    assert spec["initContainers"][0][field] == value


def test_a_toleration_of_the_same_key_is_enough_if_it_has_the_same_effect() -> None:
    given = [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists"},
    ]
    tolerations = defaulted("Pod", pod(tolerations=given))["spec"]["tolerations"]
    assert tolerations[:2] == given
    assert [(t["key"], t["effect"]) for t in tolerations[2:]] == [("node.kubernetes.io/not-ready", "NoExecute")]


def test_host_network_takes_the_ports_of_the_host() -> None:
    body = pod(hostNetwork=True, containers=[{"name": "c", "ports": [{"containerPort": 8}]}])
    port = {"containerPort": 8, "hostPort": 8, "protocol": "TCP"}
    assert defaulted("Pod", body)["spec"]["containers"][0]["ports"] == [port]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("host:5000/nginx", "Always"),
        ("host:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:00", "IfNotPresent"),
        ("nginx:latest@sha256:00", "IfNotPresent"),
        ("", "Always"),
    ],
)
def test_pull_policy(image: str, policy: str) -> None:
    assert image_pull_policy(image) == policy


def test_a_replicaset_defaults_its_template_without_what_only_pods_have() -> None:
    template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 1}}}]}}
    body: Obj = {"metadata": {"name": "web"}, "spec": {"template": template}}
    result = defaulted("ReplicaSet", body)
    spec = result["spec"]["template"]["spec"]
    assert result["spec"]["replicas"] == 1
    assert spec["restartPolicy"] == "Always"
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": 1}}
    assert not {"enableServiceLinks", "serviceAccountName", "tolerations", "priority"} & set(spec)
    assert "labels" not in result["metadata"], "apps/v1 has no default labels"


def test_zero_replicas_stay_zero() -> None:
    assert defaulted("ReplicaSet", {"metadata": {}, "spec": {"replicas": 0}})["spec"]["replicas"] == 0


def test_a_node_may_use_all_it_has() -> None:
    status = {"capacity": {"pods": "110"}}
    assert defaulted("Node", {"metadata": {}, "status": status})["status"]["allocatable"] == {"pods": "110"}


def test_nulls_are_absent() -> None:
    body = pod(nodeName=None, containers=[{"name": "c", "ports": None, "env": [{"name": "A", "value": None}]}])
    body["metadata"]["labels"] = None
    body["metadata"]["annotations"] = {"a": "a null, b:null"}
    result = defaulted("Pod", body)
    assert "nodeName" not in result["spec"]
    assert result["spec"]["containers"][0]["env"] == [{"name": "A"}]
    assert "ports" not in result["spec"]["containers"][0]
    assert result["metadata"] == {"name": "p", "namespace": "d", "annotations": {"a": "a null, b:null"}}


def test_equal_pods_share_one_spec_and_a_stored_pod_stays_itself() -> None:
    first, second = defaulted("Pod", pod()), defaulted("Pod", pod())
    assert first["spec"] is second["spec"]
    assert defaulting.apply("Pod", first) is first


def test_a_bound_pod_keeps_what_it_shares() -> None:
    stored = defaulted("Pod", pod())
    bound = {**stored, "spec": {**stored["spec"], "nodeName": "n"}}
    assert defaulted("Pod", bound)["spec"] == bound["spec"]
    assert "nodeName" not in stored["spec"]


def test_a_complete_spec_comes_back_as_it_is() -> None:
    complete = default_pod_spec(pod()["spec"])
    assert default_pod_spec(complete) is complete
