"""Kinds that are only stored: how kubectl writes and shows them, what is refused, and what cannot change.

The same on upstream's server and on the embedded one, but for columns that later versions added.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.cluster.acceptance.stages import Stage
from tests.e2e.e2e_kubectl import Kubectl

pytestmark = [pytest.mark.kubectl]

Obj = dict[str, Any]
V1_SINCE = {"cronjob": (1, 21), "pdb": (1, 21), "endpointslice": (1, 21), "hpa": (1, 23)}

CREATED: list[tuple[str, str, list[str]]] = [
    ("configmap x --from-literal=a=b --from-literal=c=d", "cm", ["x", "2"]),
    ("secret generic x --from-literal=a=b", "secret", ["x", "Opaque", "1"]),
    ("service externalname x --external-name=a.io", "svc", ["x", "ExternalName", "<none>", "a.io", "<none>"]),
    ("service clusterip x --clusterip=None", "svc", ["x", "ClusterIP", "None", "<none>", "<none>"]),
    ("serviceaccount x", "sa", ["x", "0"]),
    ("quota x --hard=pods=3", "quota", ["x"]),
    ("role x --verb=get --resource=pods", "role", ["x"]),
    ("rolebinding x --role=r --user=u", "rolebinding", ["x", "Role/r"]),
    ("ingress x --class=c --rule=a.io/*=s:80", "ing", ["x", "c", "a.io", "80"]),
    ("cronjob x --image=i --schedule=@daily", "cronjob", ["x", "@daily"]),
    ("poddisruptionbudget x --selector=a=b --min-available=50%", "pdb", ["x", "50%", "N/A", "0"]),
]


@pytest.mark.parametrize(("command", "kind", "row"), CREATED, ids=[each[0].split()[0] for each in CREATED])
def test_created_and_shown(kubectl: Kubectl, cluster: Stage, command: str, kind: str, row: list[str]) -> None:
    if cluster.version < V1_SINCE.get(kind, (0, 0)):
        pytest.skip("a server of this version has not got it in v1")
    # Sent as JSON: the commands themselves send protobuf, which the embedded server reads of a few kinds only.
    written = kubectl.run("create", *command.split(), "--dry-run=client", "-o", "yaml")
    kubectl.run("create", "--validate=false", "-f", "-", stdin=written)
    assert kubectl.run("get", kind, "x", "--no-headers").split()[: len(row)] == row
    kubectl.run("annotate", kind, "x", "a=b")
    kubectl.run("delete", kind, "x")
    assert "NotFound" in kubectl.run("get", kind, "x", code=1)


POD: Obj = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
CLAIM: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
RBAC = "rbac.authorization.k8s.io"
OBJECTS: dict[str, Obj] = {
    "cm": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
    "secret": {"apiVersion": "v1", "kind": "Secret", "data": {"a": "Yg=="}},
    "svc": {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}},
    "ep": {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}],
    },
    "sts": {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": POD},
    },
    "pvc": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": CLAIM},
    "ing": {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    },
    "rolebinding": {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"},
    },
    "limits": {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": []}},
}


def merged(obj: Obj, more: Obj) -> Obj:
    done = dict(obj)
    for key, value in more.items():
        old = done.get(key)
        done[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return done


def create(kubectl: Kubectl, kind: str, more: Obj | None = None, code: int = 0) -> str:
    obj = merged({**OBJECTS[kind], "metadata": {"name": "x"}}, more or {})
    return kubectl.run("create", "--validate=false", "-f", "-", stdin=yaml.safe_dump(obj), code=code)


SHOWN: list[tuple[str, list[str]]] = [
    ("ep", ["x", "10.1.2.3:80"]),
    ("sts", ["x", "0/1"]),
    ("pvc", ["x", "Pending"]),
    ("ing", ["x", "<none>", "*", "80"]),
]


@pytest.mark.parametrize(("kind", "row"), SHOWN)
def test_shown(kubectl: Kubectl, kind: str, row: list[str]) -> None:
    create(kubectl, kind)
    assert kubectl.run("get", kind, "x", "--no-headers").split()[: len(row)] == row


REFUSED: list[tuple[str, Obj, str]] = [
    ("cm", {"data": {"a/b": "c"}}, "data[a/b]: Invalid value"),
    ("svc", {"spec": {"ports": []}}, "spec.ports: Required value"),
    ("svc", {"spec": {"ports": [{"port": 0}]}}, "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535"),
    ("svc", {"spec": {"ports": [{"port": 1}, {"port": 2}]}}, "spec.ports[0].name: Required value"),
    ("svc", {"spec": {"type": "X"}}, 'spec.type: Unsupported value: "X"'),
    ("svc", {"spec": {"type": "NodePort", "clusterIP": "None"}}, "may not be set to 'None' for NodePort services"),
    ("ep", {"subsets": [{"ports": [{"port": 80}]}]}, "subsets[0]: Required value"),
    ("ep", {"subsets": [{"addresses": [{"ip": "x"}]}]}, "subsets[0].addresses[0].ip: Invalid value"),
    ("sts", {"spec": {"selector": {"matchLabels": {"a": "c"}}}}, "`selector` does not match template `labels`"),
    ("sts", {"spec": {"replicas": -1}}, "spec.replicas: Invalid value: -1"),
    ("pvc", {"spec": {"accessModes": []}}, "spec.accessModes: Required value"),
    ("pvc", {"spec": {"resources": {"requests": None}}}, "spec.resources[storage]: Required value"),
    ("ing", {"spec": {"defaultBackend": None}}, "either `defaultBackend` or `rules` must be specified"),
]


@pytest.mark.parametrize(("kind", "more", "told"), REFUSED)
def test_refused(kubectl: Kubectl, kind: str, more: Obj, told: str) -> None:
    assert told in create(kubectl, kind, more, code=1)


CHANGED: list[tuple[str, Obj, str, str]] = [
    ("cm", {"immutable": True}, '{"data":{"a":"c"}}', "data: Forbidden: field is immutable when `immutable` is set"),
    ("cm", {"immutable": True}, '{"immutable":false}', "immutable: Forbidden: field is immutable when `immutable`"),
    ("cm", {"immutable": True}, '{"metadata":{"labels":{"a":"b"}}}', ""),
    ("cm", {}, '{"data":{"a":"c"}}', ""),
    ("secret", {"immutable": True}, '{"stringData":{"a":"c"}}', "data: Forbidden: field is immutable when `immutable`"),
    ("secret", {}, '{"type":"x.io/y"}', 'type: Invalid value: "x.io/y": field is immutable'),
    ("svc", {}, '{"spec":{"clusterIP":"None"}}', "may not change once set"),
    ("svc", {}, '{"spec":{"selector":{"a":"b"}}}', ""),
    ("sts", {}, '{"spec":{"serviceName":"t"}}', "spec: Forbidden: updates to statefulset spec for fields other than"),
    ("sts", {}, '{"spec":{"replicas":2}}', ""),
    ("pvc", {}, '{"spec":{"accessModes":["ReadWriteMany"]}}', "is immutable after creation except resources.requests"),
    ("rolebinding", {}, '{"roleRef":{"name":"q"}}', "roleRef: Invalid value"),
]


@pytest.mark.parametrize(("kind", "more", "patch", "told"), CHANGED)
def test_changed(kubectl: Kubectl, kind: str, more: Obj, patch: str, told: str) -> None:
    create(kubectl, kind, more)
    said = kubectl.run("patch", kind, "x", "--type=merge", "-p", patch, code=1 if told else 0)
    assert told in said


def test_secrets_take_plain_text(kubectl: Kubectl) -> None:
    create(kubectl, "secret", {"stringData": {"c": "d"}})
    assert kubectl.json("get", "secret", "x")["data"] == {"a": "Yg==", "c": "ZA=="}


def test_addresses_of_services(kubectl: Kubectl) -> None:
    create(kubectl, "svc")
    create(kubectl, "svc", {"metadata": {"name": "other"}})
    first, second = (kubectl.json("get", "svc", name)["spec"] for name in ("x", "other"))
    assert first["clusterIP"] != second["clusterIP"]
    assert first["clusterIPs"] == [first["clusterIP"]]
    port = {"port": 80, "protocol": "TCP", "targetPort": 80}
    assert first["ports"] == [port]
    taken = {"metadata": {"name": "z"}, "spec": {"clusterIP": first["clusterIP"]}}
    assert "provided IP is already allocated" in create(kubectl, "svc", taken, code=1)
    kubectl.run("patch", "svc", "x", "--type=merge", "-p", '{"spec":{"ports":[{"port":81}]}}')
    assert kubectl.json("get", "svc", "x")["spec"]["clusterIP"] == first["clusterIP"]


DEFAULTED: list[tuple[str, Obj]] = [
    ("svc", {"type": "ClusterIP", "sessionAffinity": "None"}),
    ("sts", {"replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}),
    ("pvc", {"volumeMode": "Filesystem"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields"), DEFAULTED)
def test_defaults(kubectl: Kubectl, kind: str, fields: Obj) -> None:
    create(kubectl, kind)
    spec = kubectl.json("get", kind, "x")["spec"]
    assert {field: spec.get(field) for field in fields} == fields


def test_all(kubectl: Kubectl) -> None:
    for kind in ("svc", "sts", "cm", "pvc"):
        create(kubectl, kind)
    assert set(kubectl.run("get", "all", "-o", "name").split()) == {"service/x", "statefulset.apps/x"}


def test_evictions(kubectl: Kubectl) -> None:
    """A pod that never ran is evicted whatever the budget."""
    labels = {"metadata": {"labels": {"a": "b"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **labels["metadata"]}, "spec": POD["spec"]}
    pod["spec"] = {**POD["spec"], "nodeSelector": {"nowhere": "yes"}}
    kubectl.run("create", "-f", "-", stdin=yaml.safe_dump(pod))
    eviction = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "p"}}
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/p/eviction"
    kubectl.run("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    assert kubectl.items("pods") == []
