"""Real kubectl against `oarlock up`: ReplicationControllers, with the integration and end-to-end cases of upstream.

Numbers in names: upstream: test/integration/replicationcontroller/replicationcontroller_test.go (11_6, in the order in
which they are counted there) and test/e2e/apps/rc.go (11_8).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from e2e_kubectl import NEVER_READY, Kubectl, Obj, controlled_by, controller, template, until

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("replicationcontrollers")]

SLEEPY = template("web", annotations=NEVER_READY)


def pods_of(kubectl: Kubectl, name: str = "web") -> list[Obj]:
    """Those that bear its label and are not on their way out."""
    return [pod for pod in kubectl.items("pods", "-l", f"app={name}") if not pod["metadata"].get("deletionTimestamp")]


def uids(pods: list[Obj]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def status(kubectl: Kubectl, name: str = "web") -> dict[str, Any]:
    """Its status; empty while it speaks of an earlier generation."""
    found = kubectl.json("get", "rc", name)
    said: dict[str, Any] = found.get("status") or {}
    return said if said.get("observedGeneration") == found["metadata"]["generation"] else {}


def ready(kubectl: Kubectl, count: int, name: str = "web", limit_s: float = 30) -> list[Obj]:
    """Wait until the status says that so many pods are there, ready and available. Returns them."""

    def is_so() -> bool:
        said = status(kubectl, name)
        fields = ("replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas")
        return bool(said) and [said.get(field, 0) for field in fields] == [count] * 4

    until(is_so, limit_s, f"{count} ready pods of {name}")
    return pods_of(kubectl, name)


def scale(kubectl: Kubectl, count: int, name: str = "web") -> list[Obj]:
    kubectl.run("scale", "rc", name, f"--replicas={count}")
    found = ready(kubectl, count, name)
    assert len(found) == count
    return found


def pod(name: str, app: str = "web", *refs: Obj, **labels: str) -> Obj:
    """One that somebody made by hand."""
    made = template(app)
    meta = {"name": name, "labels": {"app": app, **labels}, "annotations": made["metadata"]["annotations"]}
    if refs:
        meta["ownerReferences"] = list(refs)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made["spec"]}


@pytest.mark.parametrize("image", ["nginx:1", "registry.example.com/private/nginx:1"], ids=["11.8.1", "11.8.2"])
def test_serves_an_image(kubectl: Kubectl, image: str) -> None:
    kubectl.apply(controller(template=template("web", image)))
    pods = ready(kubectl, 2)
    assert {each["spec"]["containers"][0]["image"] for each in pods} == {image}
    owner = kubectl.json("get", "rc", "web")
    assert {controlled_by(each) for each in pods} == {owner["metadata"]["uid"]}
    assert "SuccessfulCreate" in kubectl.run("describe", "rc", "web")


def test_11_8_3_a_quota_is_a_condition(kubectl: Kubectl) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}
    kubectl.apply(quota)
    kubectl.apply(controller(replicas=3))

    def failure() -> str:
        conditions = status(kubectl).get("conditions") or []
        return next((each["reason"] for each in conditions if each["type"] == "ReplicaFailure"), "")

    until(lambda: failure() == "FailedCreate", 15, "the condition")
    assert len(pods_of(kubectl)) == 2
    kubectl.run("scale", "rc", "web", "--replicas=2")
    until(lambda: status(kubectl) and not failure(), 30, "the condition goes")


def test_11_6_1_11_8_4_a_bare_pod_is_adopted_and_11_8_5_released(kubectl: Kubectl) -> None:
    kubectl.apply(pod("foundling"))
    kubectl.run("wait", "--for=condition=Ready", "pod/foundling", "--timeout=20s")
    kubectl.apply(controller(replicas=1))
    (kept,) = ready(kubectl, 1)
    owner = kubectl.json("get", "rc", "web")["metadata"]["uid"]
    assert (kept["metadata"]["name"], controlled_by(kept)) == ("foundling", owner)
    kubectl.run("label", "pod", "foundling", "app=free", "--overwrite")
    until(lambda: not controlled_by(kubectl.json("get", "pod", "foundling")), 15, "it is released")
    (other,) = ready(kubectl, 1)
    assert other["metadata"]["name"] != "foundling"


def test_11_8_6_life_cycle(kubectl: Kubectl) -> None:
    kubectl.apply(controller(replicas=1))
    ready(kubectl, 1)
    kubectl.run("label", "rc", "web", "test=patched")
    body = json.dumps({"status": {"readyReplicas": 0, "availableReplicas": 0}})
    kubectl.run("patch", "rc", "web", "--subresource=status", "--type=merge", "-p", body)
    ready(kubectl, 1)
    kubectl.run("patch", "rc", "web", "-p", json.dumps({"spec": {"replicas": 2}}))
    ready(kubectl, 2)
    assert len(kubectl.items("rc", "-l", "test=patched")) == 1
    kubectl.run("delete", "rc", "-l", "test=patched")
    assert kubectl.items("rc") == []
    until(lambda: not kubectl.items("pods"), 20, "its pods are gone")


def test_11_8_7_the_scale_subresource(kubectl: Kubectl) -> None:
    kubectl.apply(controller(replicas=1))
    ready(kubectl, 1)
    raw = f"/api/v1/namespaces/{kubectl.namespace}/replicationcontrollers/web/scale"
    found = json.loads(kubectl.run("get", "--raw", raw))
    assert (found["spec"]["replicas"], found["status"]["replicas"]) == (1, 1)
    found["spec"]["replicas"] = 2
    kubectl.run("replace", "--raw", raw, "-f", "-", stdin=json.dumps(found))
    ready(kubectl, 2)


def test_11_6_2_replicas_change_and_11_6_8_scale(kubectl: Kubectl) -> None:
    kubectl.apply(controller(replicas=2))
    ready(kubectl, 2)
    for count in (3, 0, 2):
        kubectl.run("patch", "rc", "web", "-p", json.dumps({"spec": {"replicas": count}}))
        assert len(ready(kubectl, count)) == count
    for count in (1, 3, 0):
        scale(kubectl, count)
    generation = kubectl.json("get", "rc", "web")["metadata"]["generation"]
    body = {"spec": {"template": {"metadata": {"annotations": {"test": "yes"}}}}}
    kubectl.run("patch", "rc", "web", "-p", json.dumps(body))
    until(lambda: status(kubectl).get("observedGeneration") == generation + 1, 15, "the generation is observed")


def test_11_6_3_deleting_and_failed_pods_are_replaced(kubectl: Kubectl) -> None:
    kubectl.apply(controller(replicas=2))
    deleted, failed = ready(kubectl, 2)
    name = deleted["metadata"]["name"]
    kubectl.run("patch", "pod", name, "-p", json.dumps({"metadata": {"finalizers": ["example.com/hold"]}}))
    kubectl.run("delete", "pod", name, "--wait=false")
    body = json.dumps({"status": {"phase": "Failed"}})
    kubectl.run("patch", "pod", failed["metadata"]["name"], "--subresource=status", "-p", body)
    until(lambda: len(kubectl.items("pods", "-l", "app=web")) == 4, 20, "two others beside them")
    ready(kubectl, 2)
    kubectl.run("patch", "pod", name, "-p", json.dumps({"metadata": {"finalizers": None}}))


def test_11_6_4_overlapping_ones_do_not_fight(kubectl: Kubectl) -> None:
    for name, count in (("one", 1), ("two", 2)):
        kubectl.apply(controller(name, count, selector={"app": "web"}, template=template("web")))
    for name, count in (("one", 1), ("two", 2)):
        ready(kubectl, count, name)
    pods = pods_of(kubectl)
    owners = {each["metadata"]["name"]: each["metadata"]["uid"] for each in kubectl.items("rc")}
    assert sorted(controlled_by(each) for each in pods) == sorted([owners["one"], owners["two"], owners["two"]])


def test_11_6_5_labelled_out_and_back(kubectl: Kubectl) -> None:
    kubectl.apply(controller(replicas=1))
    (first,) = ready(kubectl, 1)
    name = first["metadata"]["name"]
    kubectl.run("label", "pod", name, "app=free", "--overwrite")
    until(lambda: not controlled_by(kubectl.json("get", "pod", name)), 15, "it is released")
    (second,) = ready(kubectl, 1)
    kubectl.run("label", "pod", name, "app=web", "--overwrite")
    until(lambda: len(pods_of(kubectl)) == 1, 20, "it is taken back, and there is one too many")
    (left,) = ready(kubectl, 1)
    assert left["metadata"]["uid"] in uids([first, second])
    assert controlled_by(left) == kubectl.json("get", "rc", "web")["metadata"]["uid"]


@pytest.mark.parametrize("others", [0, 1], ids=["11.6.6 one reference", "11.6.6 two references"])
def test_a_reference_that_does_not_control_becomes_one_that_does(kubectl: Kubectl, others: int) -> None:
    """Two pods then, and one is too many: the other, because this one is dear."""
    known = pod("known", "other")
    known["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "100"}
    kubectl.apply(known, controller(replicas=1))
    ready(kubectl, 1)
    kubectl.run("wait", "--for=condition=Ready", "pod/known", "--timeout=20s")
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    kubectl.apply(config_map)
    other = kubectl.json("get", "configmap", "other")["metadata"]["uid"]
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other}
    uid = kubectl.json("get", "rc", "web")["metadata"]["uid"]
    ours = {"apiVersion": "v1", "kind": "ReplicationController", "name": "web", "uid": uid}
    patch = {"metadata": {"labels": {"app": "web"}, "ownerReferences": [*[theirs][:others], ours]}}
    kubectl.run("patch", "pod", "known", "-p", json.dumps(patch))
    until(lambda: [each["metadata"]["name"] for each in pods_of(kubectl)] == ["known"], 20, "the other one goes")
    (kept,) = ready(kubectl, 1)
    assert (controlled_by(kept), len(kept["metadata"]["ownerReferences"])) == (uid, 1 + others)


def test_11_6_7_ready_and_available(kubectl: Kubectl) -> None:
    """Three pods: one not ready, one ready since now, one since long ago; to be ready for an hour is asked for."""
    kubectl.apply(controller(replicas=3, minReadySeconds=3600, template=SLEEPY))
    until(lambda: status(kubectl).get("replicas") == 3, 20, "three pods")
    until(lambda: all(each["status"]["phase"] == "Running" for each in pods_of(kubectl)), 15, "they run")
    for each, at in zip(pods_of(kubectl), ("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"), strict=False):
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": at}
        body = json.dumps({"status": {"conditions": [condition]}})
        kubectl.run("patch", "pod", each["metadata"]["name"], "--subresource=status", "-p", body)

    def counts() -> list[int]:
        said = status(kubectl)
        return [said.get(field, 0) for field in ("replicas", "readyReplicas", "availableReplicas")]

    until(lambda: counts() == [3, 2, 1], 20, "three pods, two ready, one available")


def test_11_6_9_of_matching_orphans_the_surplus_goes(kubectl: Kubectl) -> None:
    orphans = [pod(f"orphan-{number}") for number in range(3)]
    kubectl.apply(*orphans)
    kubectl.run("wait", "--for=condition=Ready", "pods", "-l", "app=web", "--timeout=20s")
    kubectl.apply(controller(replicas=2))
    left = ready(kubectl, 2)
    assert {each["metadata"]["name"] for each in left} < {each["metadata"]["name"] for each in orphans}


def test_11_6_10_fully_labelled(kubectl: Kubectl) -> None:
    made = template("web")
    made["metadata"]["labels"]["extra"] = "yes"
    kubectl.apply(pod("half"), pod("whole", extra="yes"))
    kubectl.run("wait", "--for=condition=Ready", "pods", "-l", "app=web", "--timeout=20s")
    kubectl.apply(controller(replicas=2, template=made))

    def counts() -> list[int]:
        said = status(kubectl)
        return [said.get(field, 0) for field in ("replicas", "fullyLabeledReplicas")]

    until(lambda: counts() == [2, 1], 15, "one of two has every label of the template")


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_delete_with_each_cascade(kubectl: Kubectl, cascade: str) -> None:
    kubectl.apply(controller(replicas=3))
    before = ready(kubectl, 3)
    kubectl.run("delete", "rc", "web", f"--cascade={cascade}", "--timeout=30s")
    assert kubectl.items("rc") == []
    if cascade != "orphan":
        until(lambda: not kubectl.items("pods"), 20, "its pods are gone")
        return
    assert uids(pods_of(kubectl)) == uids(before)
    assert not any(each["metadata"].get("ownerReferences") for each in pods_of(kubectl))
    kubectl.apply(controller(replicas=3))
    assert uids(ready(kubectl, 3)) == uids(before), "the next one of that name adopts them"
