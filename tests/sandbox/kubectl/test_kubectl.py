"""Real kubectl against the embedded API server, as a user would use it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.sandbox.kubectl.kubectl_harness import KUBECTL, WAIT_S, Kubectl, eventually, pod, replicaset

pytestmark = KUBECTL


def test_apply_creates_changes_and_prunes_fields(kubectl: Kubectl) -> None:
    """Client-side apply in its three outcomes; a field left out of the second version is removed."""
    first = replicaset()
    first["spec"]["minReadySeconds"] = 5
    assert "created" in kubectl.apply(first)
    assert "unchanged" in kubectl.apply(first)
    assert "configured" in kubectl.apply(replicaset(replicas=5, image="nginx:2"))
    spec = kubectl.json("get", "rs", "web")["spec"]
    assert spec["replicas"] == 5
    assert spec["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert "minReadySeconds" not in spec


def test_get_in_every_form(kubectl: Kubectl) -> None:
    kubectl.apply(replicaset(), replicaset("api", replicas=1))
    lines = [line.split() for line in kubectl.run("get", "rs").splitlines()]
    assert [line[:4] for line in lines] == [
        ["NAME", "DESIRED", "CURRENT", "READY"],
        ["api", "1", "0", "0"],
        ["web", "3", "0", "0"],
    ]
    wide = kubectl.run("get", "rs", "-o", "wide").splitlines()
    assert wide[0].split()[-3:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert wide[2].split()[-3:] == ["c", "nginx:1", "app=web"]
    assert kubectl.run("get", "rs", "-l", "app in (api)", "-o", "name").split() == ["replicaset.apps/api"]
    assert kubectl.run("get", "rs", "web", "-o", "jsonpath={.spec.replicas}") == "3"
    assert yaml.safe_load(kubectl.run("get", "rs", "web", "-o", "yaml"))["metadata"]["name"] == "web"
    assert kubectl.json("get", "rs")["kind"] == "List"
    everywhere = kubectl.run("get", "rs", "-A", "--no-headers").split()
    assert {kubectl.namespace, "web", "api"} <= set(everywhere)
    assert "replicaset.apps/web" in kubectl.run("get", "all")
    assert "app=web" in kubectl.run("get", "rs", "--show-labels")
    assert [
        line.split()[0] for line in kubectl.run("get", "rs", "--sort-by=.spec.replicas", "--no-headers").splitlines()
    ] == [
        "api",
        "web",
    ]


def test_field_selectors(kubectl: Kubectl) -> None:
    kubectl.apply(pod("a"), pod("b"))
    assert kubectl.run("get", "pods", "--field-selector", "metadata.name!=a", "-o", "name").split() == ["pod/b"]
    assert "No resources found" in kubectl.run("get", "pods", "--field-selector", "status.phase=Running")
    assert "field label not supported" in kubectl.run("get", "pods", "--field-selector", "spec.x=1", code=1)


def test_scale(kubectl: Kubectl) -> None:
    kubectl.apply(replicaset())
    for replicas in ("0", "300", "2"):
        assert "scaled" in kubectl.run("scale", "rs", "web", f"--replicas={replicas}")
        assert kubectl.run("get", "rs", "web", "-o", "jsonpath={.spec.replicas}") == replicas
    assert "scaled" in kubectl.run("scale", "rs", "web", "--current-replicas=2", "--replicas=1")


def test_label_annotate_and_the_three_patches(kubectl: Kubectl) -> None:
    kubectl.apply(pod("a", app="web"))
    kubectl.run("label", "pod", "a", "tier=front")
    kubectl.run("label", "pod", "a", "app=api", "--overwrite")
    kubectl.run("label", "pod", "a", "tier-")
    kubectl.run("annotate", "pod", "a", "note=a b c")
    kubectl.run("patch", "pod", "a", "--type=merge", "-p", '{"metadata":{"labels":{"m":"1"}}}')
    kubectl.run("patch", "pod", "a", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/j","value":"2"}]')
    kubectl.run("patch", "pod", "a", "-p", '{"spec":{"containers":[{"name":"c","image":"i:2"}]}}')
    found = kubectl.json("get", "pod", "a")
    assert found["metadata"]["labels"] == {"app": "api", "m": "1", "j": "2"}
    assert found["metadata"]["annotations"]["note"] == "a b c"
    assert found["spec"]["containers"][0]["image"] == "i:2"
    assert len(found["spec"]["containers"]) == 1


def test_replace_and_create_from_a_file(kubectl: Kubectl) -> None:
    text = yaml.safe_dump(replicaset())
    assert "created" in kubectl.run("create", "-f", "-", stdin=text)
    assert "AlreadyExists" in kubectl.run("create", "-f", "-", stdin=text, code=1)
    changed = kubectl.json("get", "rs", "web")
    changed["spec"]["replicas"] = 7
    assert "replaced" in kubectl.run("replace", "-f", "-", stdin=json.dumps(changed))
    conflict = kubectl.run(
        "replace", "-f", "-", stdin=json.dumps({**changed, "spec": {**changed["spec"], "replicas": 8}}), code=1
    )
    assert "the object has been modified" in conflict
    assert kubectl.run("get", "rs", "web", "-o", "jsonpath={.spec.replicas}") == "7"


def test_typed_creates(kubectl: Kubectl) -> None:
    """Newer clients send these as protobuf."""
    kubectl.run("create", "quota", "q", "--hard=pods=1")
    kubectl.run("create", "configmap", "c", "--from-literal=a=b")
    kubectl.run("create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl.run("create", "serviceaccount", "sa")
    assert kubectl.json("get", "cm", "c")["data"] == {"a": "b"}
    assert kubectl.json("get", "secret", "s")["data"] == {"a": "Yg=="}
    kubectl.apply(pod("a"))
    refused = kubectl.run("run", "b", "--image=i", code=1)
    assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in refused
    eventually(kubectl, "1", "get", "quota", "q", "-o", "jsonpath={.status.used.pods}")


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_delete_with_each_cascade(kubectl: Kubectl, cascade: str) -> None:
    """Pods go with their set, or stay without an owner; foreground returns when all are gone."""
    kubectl.apply(replicaset())
    owner = kubectl.json("get", "rs", "web")
    kubectl.apply(*(pod(f"p{number}", owner, app="web") for number in range(3)))
    assert "deleted" in kubectl.run("delete", "rs", "web", f"--cascade={cascade}")
    if cascade == "orphan":
        kept = kubectl.json("get", "pods")["items"]
        assert [p["metadata"].get("ownerReferences") for p in kept] == [None, None, None]
    else:
        eventually(kubectl, f"No resources found in {kubectl.namespace} namespace.", "get", "pods")


def test_delete_pods(kubectl: Kubectl) -> None:
    kubectl.apply(*(pod(name, app=name) for name in "abcd"))
    assert "deleted" in kubectl.run("delete", "pod", "a", "--grace-period=0", "--force")
    assert "deleted" in kubectl.run("delete", "pod", "b", "--grace-period=1")
    assert "deleted" in kubectl.run("delete", "pods", "-l", "app=c")
    assert kubectl.run("get", "pods", "-o", "name").split() == ["pod/d"]
    assert "deleted" in kubectl.run("delete", "pods", "--all")
    assert "NotFound" in kubectl.run("delete", "pod", "d", code=1)
    assert kubectl.run("delete", "pod", "d", "--ignore-not-found") == ""


def test_watch_prints_rows_as_they_come(kubectl: Kubectl) -> None:
    kubectl.apply(replicaset())
    watch = subprocess.Popen(
        kubectl.command("get", "rs", "-w", "--no-headers"),
        stdout=subprocess.PIPE,
        text=True,
        env=kubectl.env(),
    )
    try:
        assert watch.stdout is not None
        assert watch.stdout.readline().split()[:2] == ["web", "3"]
        kubectl.run("scale", "rs", "web", "--replicas=8")
        assert watch.stdout.readline().split()[:2] == ["web", "8"]
        kubectl.apply(replicaset("api", replicas=2))
        assert watch.stdout.readline().split()[:2] == ["api", "2"]
    finally:
        watch.kill()
        watch.wait(WAIT_S)


def test_wait(kubectl: Kubectl) -> None:
    kubectl.apply(pod("a"))
    waiting = subprocess.Popen(
        kubectl.command("wait", "--for=condition=Ready", "pod/a", "--timeout=60s"),
        stdout=subprocess.PIPE,
        text=True,
        env=kubectl.env(),
    )
    # The only kubectl way to a status is a raw PUT of the whole object.
    found = kubectl.json("get", "pod", "a")
    found["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/a/status"
    if "--raw" not in kubectl.run("replace", "--help"):
        waiting.kill()
        pytest.skip("this kubectl has no replace --raw")
    kubectl.run("replace", "--raw", path, "-f", "-", stdin=json.dumps(found))
    assert waiting.wait(WAIT_S) == 0
    assert "condition met" in (waiting.stdout.read() if waiting.stdout else "")
    assert "timed out" in kubectl.run("wait", "--for=condition=Nope", "pod/a", "--timeout=1s", code=1)


def test_describe_and_events(kubectl: Kubectl) -> None:
    kubectl.apply(replicaset())
    owner = kubectl.json("get", "rs", "web")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": kubectl.namespace},
        "involvedObject": {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "namespace": kubectl.namespace,
            "uid": owner["metadata"]["uid"],
        },
        "type": "Normal",
        "reason": "SuccessfulCreate",
        "message": "Created pod: web-abcde",
        "source": {"component": "replicaset-controller"},
        "count": 1,
        "firstTimestamp": owner["metadata"]["creationTimestamp"],
        "lastTimestamp": owner["metadata"]["creationTimestamp"],
    }
    kubectl.run("create", "-f", "-", stdin=json.dumps(event))
    described = kubectl.run("describe", "rs", "web")
    assert "0 current / 3 desired" in described
    assert "SuccessfulCreate" in described
    assert "Created pod: web-abcde" in described
    shown = kubectl.run("get", "events").splitlines()
    assert shown[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert shown[1].split()[1:4] == ["Normal", "SuccessfulCreate", "replicaset/web"]
    kubectl.apply(pod("a"))
    assert "Status:" in kubectl.run("describe", "pod", "a")


def test_errors_as_users_know_them(kubectl: Kubectl) -> None:
    assert 'Error from server (NotFound): pods "none" not found' in kubectl.run("get", "pod", "none", code=1)
    bad = replicaset()
    bad["spec"]["selector"]["matchLabels"] = {"app": "other"}
    refused = kubectl.run("create", "-f", "-", stdin=json.dumps(bad), code=1)
    assert 'The ReplicaSet "web" is invalid' in refused
    assert "`selector` does not match template `labels`" in refused
    refused = kubectl.run("create", "-f", "-", stdin=json.dumps(replicaset(replicas=-1)), code=1)
    assert "spec.replicas" in refused
    assert "the server doesn't have a resource type" in kubectl.run("get", "gizmos", code=1)


def test_deleting_a_namespace_takes_everything_in_it(kubectl: Kubectl) -> None:
    kubectl.apply(replicaset(), pod("a"))
    assert "deleted" in kubectl.run("delete", "namespace", kubectl.namespace)
    assert "NotFound" in kubectl.run("get", "namespace", kubectl.namespace, code=1)
    assert "No resources found" in kubectl.run("get", "pods")
    assert "may not be deleted" in kubectl.run("delete", "namespace", "default", code=1)


def test_tables_longer_than_a_page(kubectl: Kubectl) -> None:
    kubectl.run("create", "-f", "-", stdin=yaml.safe_dump_all([pod(f"p{number:02d}") for number in range(12)]))
    shown = kubectl.run("get", "pods", "--chunk-size=5", "--no-headers").splitlines()
    assert [line.split()[0] for line in shown] == [f"p{number:02d}" for number in range(12)]


def test_pods_on_simulated_nodes(kubectl: Kubectl, server_with_nodes: Path) -> None:
    """A pod's whole life as people follow it: run, wait, drain its node, delete."""
    client = Kubectl(kubectl.binary, server_with_nodes, kubectl.home, "default")
    client.run("run", "a", "--image=i")
    assert "condition met" in client.run("wait", "--for=condition=Ready", "pod/a", "--timeout=10s")
    row = client.run("get", "pod", "a", "-o", "wide", "--no-headers").split()
    assert row[:4] == ["a", "1/1", "Running", "0"]
    node = row[6]
    assert [line.split()[1] for line in client.run("get", "nodes", "--no-headers").splitlines()] == ["Ready", "Ready"]
    assert "Running" in client.run("describe", "pod", "a")
    assert "Non-terminated Pods:" in client.run("describe", "node", node)
    client.run("cordon", node)
    client.run("run", "b", "--image=i")
    client.run("wait", "--for=condition=Ready", "pod/b", "--timeout=10s")
    assert client.run("get", "pod", "b", "-o", "jsonpath={.spec.nodeName}") != node
    assert "pod/a evicted" in client.run("drain", node, "--force")
    assert client.run("get", "pods", "-o", "name").split() == ["pod/b"]
    assert "SchedulingDisabled" in client.run("get", "node", node)
    assert "deleted" in client.run("delete", "pod", "b")
    assert "No resources found" in client.run("get", "pods")
