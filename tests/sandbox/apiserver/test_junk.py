"""Damaged bodies: refused or stored, never a failure of the server, and never in the way of reading."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from oarlock.sandbox.nodes.settings import NodeSettings
from tests.sandbox.api_harness import (
    JSON,
    JSON_PATCH,
    MERGE,
    PODS,
    SETS,
    STRATEGIC,
    TABLE,
    Api,
    pod,
    quick,
    replicaset,
    running,
)
from tests.sandbox.apiserver.custom.definitions import DEFINITIONS, WIDGETS, definition, version, widget

ROUNDS = int(os.environ.get("OARLOCK_JUNK_ROUNDS", "400"))
JUNK: list[Any] = [
    None, 0, -1, 1.5, 10**30, "", "x", "A_b", [], {}, [None], [1], {"a": None}, {"a": 1}, True, [{}], {"": ""},
    "ü" * 80, [[]], {"kind": 5}, "1", "Always",
]  # fmt: skip
FIELDS = ("x", "name", "metadata", "selector", "finalizers", "ownerReferences", "resources", "labels")

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "u", "controller": True}
POD = pod("a", {"a": "b"}, nodeName="n", tolerations=[{"key": "a", "operator": "Exists"}])
POD["metadata"] |= {"ownerReferences": [OWNER], "annotations": {"a": "b"}}
POD["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
POD["spec"]["containers"][0] |= {
    "ports": [{"containerPort": 80, "name": "http"}],
    "env": [{"name": "A", "value": "b"}],
    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
    "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
}
SET = replicaset()
SET["spec"]["selector"]["matchExpressions"] = [{"key": "app", "operator": "In", "values": ["web"]}]
CORE = "/api/v1/namespaces/default"
COLUMNS = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    (PODS, POD),
    (SETS, SET),
    (
        "/api/v1/nodes",
        {
            "metadata": {"name": "n"},
            "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"pods": "10"}},
        },
    ),
    (
        f"{CORE}/events",
        {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
            "reason": "r",
            "message": "m",
            "source": {"component": "c"},
            "count": 1,
            "lastTimestamp": "2023-11-14T22:13:20Z",
        },
    ),
    (
        f"{CORE}/resourcequotas",
        {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1000"}, "scopes": ["BestEffort"]}},
    ),
    (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 5}},
    ),
    (f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
    (f"{CORE}/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
    ("/api/v1/namespaces", {"metadata": {"name": "other"}, "spec": {"finalizers": ["kubernetes"]}}),
]
APPS = "/apis/apps/v1/namespaces/default"
TEMPLATE = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
LIMITS = {"maxUnavailable": "10%", "maxSurge": 0}
REFERENCE = {"kind": "ServiceAccount", "name": "a", "namespace": "default", "apiGroup": "x.io"}
OBJECTS += [
    (
        f"{CORE}/replicationcontrollers",
        {"metadata": {"name": "w"}, "spec": {"replicas": 1, "selector": {"app": "w"}, "template": TEMPLATE}},
    ),
    (
        f"{APPS}/daemonsets",
        {
            "metadata": {"name": "w", "annotations": {"deprecated.daemonset.template.generation": "3"}},
            "spec": {
                "selector": {"matchLabels": {"app": "w"}},
                "template": TEMPLATE,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": LIMITS},
            },
            "status": {"numberReady": 1, "collisionCount": 1, "conditions": [{"type": "a", "status": "True"}]},
        },
    ),
    (
        f"{APPS}/controllerrevisions",
        {"metadata": {"name": "w", "ownerReferences": [OWNER]}, "data": {"spec": {"a": None}}, "revision": 1},
    ),
    (
        f"{APPS}/deployments",
        {
            "metadata": {"name": "w"},
            "spec": {"selector": {"matchLabels": {"app": "w"}}, "template": TEMPLATE, "strategy": {"type": "Recreate"}},
        },
    ),
    (
        "/apis/batch/v1/namespaces/default/jobs",
        {
            "metadata": {"name": "w"},
            "spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}, "parallelism": 2},
            "status": {"startTime": "2023-11-14T22:13:20Z", "completionTime": "2023-11-14T22:14:20Z", "succeeded": 1},
        },
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {"metadata": {"name": "a:b"}, "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [REFERENCE]},
    ),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"metadata": {"name": "w"}, "spec": {"minAvailable": 1}, "status": {"disruptionsAllowed": 1}},
    ),
    (
        "/apis/networking.k8s.io/v1/ingressclasses",
        {"metadata": {"name": "w"}, "spec": {"controller": "x.io/y", "parameters": REFERENCE}},
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        {
            "metadata": {"name": "w"},
            "spec": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
        },
    ),
    (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {"metadata": {"name": "w"}, "webhooks": [{"name": "x.y.io"}]},
    ),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "w"}, "value": 5, "globalDefault": True}),
]
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
OBJECTS += [
    (
        f"{APPS}/statefulsets",
        {
            "metadata": {"name": "w"},
            "spec": {
                "selector": {"matchLabels": {"app": "w"}},
                "template": TEMPLATE,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
                "volumeClaimTemplates": [{"metadata": {"name": "c"}, "spec": CLAIM}],
            },
            "status": {"readyReplicas": 1},
        },
    ),
    (
        "/apis/batch/v1/namespaces/default/cronjobs",
        {
            "metadata": {"name": "w"},
            "spec": {
                "schedule": "@daily",
                "jobTemplate": {"spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}},
            },
            "status": {"active": [REFERENCE], "lastScheduleTime": "2023-11-14T22:13:20Z"},
        },
    ),
    (
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        {
            "metadata": {"name": "w"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                "maxReplicas": 3,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
                ],
            },
        },
    ),
    (f"{CORE}/persistentvolumeclaims", {"metadata": {"name": "w"}, "spec": CLAIM, "status": {"phase": "Bound"}}),
    (
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": "w"},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "claimRef": REFERENCE},
        },
    ),
    (
        f"{CORE}/endpoints",
        {"metadata": {"name": "w"}, "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    ),
    (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {
            "metadata": {"name": "w"},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"]}],
            "ports": [{"port": 80}],
        },
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        {
            "metadata": {"name": "w"},
            "spec": {
                "rules": [{"host": "a.io", "http": {"paths": [{"path": "/", "pathType": "Exact", "backend": BACKEND}]}}]
            },
        },
    ),
    (DEFINITIONS, definition(version(additionalPrinterColumns=COLUMNS, selectableFields=[{"jsonPath": ".spec.size"}]))),
]
LASTING: list[tuple[str, dict[str, Any]]] = [
    (WIDGETS.replace("widgets", "gadgets"), {**widget(hosts=[{"name": "h"}], free={"a": 1}), "kind": "Gadget"}),
]
"""Of kinds whose definition nobody damages."""
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 2}}
BINDING = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
OPTIONS = {"gracePeriodSeconds": 0, "propagationPolicy": "Foreground", "preconditions": {"uid": "x"}}
OPERATIONS = [{"op": "add", "path": "/metadata/labels/x", "value": "y"}, {"op": "test", "path": "/kind", "value": 1}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def damaged(value: Any, chance: random.Random) -> Any:
    value = copy.deepcopy(value)
    for _ in range(chance.choice((1, 1, 2, 3))):
        *path, last = chance.choice(list(places(value)))
        target = value
        for key in path:
            target = target[key]
        if isinstance(target, dict) and chance.random() < 0.2:
            last = chance.choice(FIELDS)
        target[last] = copy.deepcopy(chance.choice(JUNK))
    return value


def test_junk(caplog: pytest.LogCaptureFixture) -> None:
    """Every answer is below 500, every list can still be read in every form, nothing was logged as broken."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    stored = 0
    with running(quick(nodes=NodeSettings(nodes=2))) as api:
        lasting = definition(names={"plural": "gadgets", "kind": "Gadget"})
        api.create(DEFINITIONS, {**lasting, "metadata": {"name": "gadgets.example.com"}})
        for _ in range(ROUNDS):
            stored += one_round(api, chance)
    assert stored > ROUNDS / 20, "hardly anything was damaged so lightly that it could be stored"
    assert caplog.records == []


def one_round(api: Api, chance: random.Random) -> bool:
    path, obj = chance.choice(OBJECTS + LASTING)
    where = f"{path}/{obj['metadata']['name']}"
    created = send(api, "POST", path, damaged(obj, chance))
    api.call("POST", path, obj)
    _, current = api.call("GET", where)
    tries = [
        ("PUT", where, damaged(current, chance), JSON),
        ("PUT", f"{where}/status", damaged(current, chance), JSON),
        ("PATCH", where, damaged(obj, chance), chance.choice((MERGE, STRATEGIC))),
        ("PATCH", where, damaged(OPERATIONS, chance), JSON_PATCH),
        ("PUT", f"{SETS}/web/scale", damaged(SCALE, chance), JSON),
        ("POST", f"{PODS}/a/binding", damaged(BINDING, chance), JSON),
        ("DELETE", where, damaged(OPTIONS, chance), JSON),
    ]
    done = send(api, *chance.choice(tries))
    for accept in (TABLE, JSON):
        code, body = api.raw("GET", path, headers={"Accept": accept})
        assert code == 200, body
    return created or done


def send(api: Api, method: str, path: str, body: Any, content_type: str = JSON) -> bool:
    """Whether it was taken."""
    code, answer = api.call(method, path, body, content_type)
    # Upstream's own answer to a create that names a resourceVersion is 500.
    assert code < 500 or "resourceVersion should not be set" in answer["message"], (method, path, body, answer)
    return code < 300
