"""ReplicaSets and ReplicationControllers: the integration and end-to-end cases of upstream, with kubectl.

Numbers in names, in the order in which they are counted there. Of ReplicaSets: upstream:
test/integration/replicaset/replicaset_test.go (11.5) and test/e2e/apps/replica_set.go (11.7). Of
ReplicationControllers: test/integration/replicationcontroller/replicationcontroller_test.go (11.6) and
test/e2e/apps/rc.go (11.8).
"""

from __future__ import annotations

import json

import pytest

from tests.cluster.acceptance.replicas import (
    RS,
    Kind,
    bare_pod,
    both,
    change_status,
    pod_path,
    pods_of,
    ready,
    status,
    uids,
)
from tests.cluster.acceptance.stages import Stage, beyond_upstream
from tests.e2e.e2e_kubectl import NEVER_READY, Kubectl, Obj, controlled_by, template, until

pytestmark = [pytest.mark.kubectl]

COST = "controller.kubernetes.io/pod-deletion-cost"
COUNTS_TERMINATING = (1, 35)
"""The version whose servers keep terminatingReplicas unless told otherwise; the embedded one keeps it, too."""
SLEEPY = template("web", annotations=NEVER_READY)
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}


def patch(kubectl: Kubectl, what: str, name: str, body: Obj) -> str:
    return kubectl.run("patch", what, name, "-p", json.dumps(body))


def owner_uid(kubectl: Kubectl, kind: Kind, name: str = "web") -> str:
    uid: str = kubectl.json("get", kind.short, name)["metadata"]["uid"]
    return uid


def reference(kind: Kind, uid: str, name: str = "web", **flags: bool) -> Obj:
    return {"apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": uid, **flags}


def config_map_reference(kubectl: Kubectl, **flags: bool) -> Obj:
    """To an owner of another kind, which is made."""
    kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}})
    uid = kubectl.json("get", "configmap", "other")["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": uid, **flags}


def set_phase(kubectl: Kubectl, pod: Obj, phase: str) -> None:
    change_status(kubectl, pod_path(kubectl, pod), lambda status: {**status, "phase": phase})


# -- pods by number --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("image", ["nginx:1", "registry.example.com/private/nginx:1"], ids=["public", "private"])
@both("11.7.1 11.7.2", "11.8.1 11.8.2")
def test_serves_an_image(kubectl: Kubectl, kind: Kind, image: str) -> None:
    kubectl.apply(kind.make(pod=template("web", image)))
    pods = ready(kubectl, kind, 2)
    assert {each["spec"]["containers"][0]["image"] for each in pods} == {image}
    assert {controlled_by(each) for each in pods} == {owner_uid(kubectl, kind)}
    until(
        lambda: "SuccessfulCreate" in kubectl.run("describe", kind.short, "web"), 15, "events follow in their own time"
    )


@both("11.7.3", "11.8.3")
def test_a_quota_is_a_condition(kubectl: Kubectl, kind: Kind) -> None:
    kubectl.apply(QUOTA)
    until(lambda: kubectl.json("get", "quota", "q").get("status", {}).get("hard"), 30, "the quota is known")
    kubectl.apply(kind.make(replicas=3))

    def failure() -> str:
        conditions = status(kubectl, kind).get("conditions") or []
        return next((each["reason"] for each in conditions if each["type"] == "ReplicaFailure"), "")

    until(lambda: failure() == "FailedCreate", 15, "the condition")
    assert len(pods_of(kubectl)) == 2
    kubectl.run("scale", kind.short, "web", "--replicas=2")
    until(lambda: status(kubectl, kind) and not failure(), 30, "the condition goes")


@both("11.5.3 11.5.10", "11.6.2 11.6.8")
def test_replicas_change_and_scale(kubectl: Kubectl, kind: Kind) -> None:
    kubectl.apply(kind.make(replicas=2))
    ready(kubectl, kind, 2)
    for count in (3, 0, 2):
        patch(kubectl, kind.short, "web", {"spec": {"replicas": count}})
        assert len(ready(kubectl, kind, count)) == count
    for count in (1, 3, 0):
        kubectl.run("scale", kind.short, "web", f"--replicas={count}")
        assert len(ready(kubectl, kind, count)) == count
    generation = kubectl.json("get", kind.short, "web")["metadata"]["generation"]
    patch(kubectl, kind.short, "web", {"spec": {"template": {"metadata": {"annotations": {"test": "yes"}}}}})
    until(lambda: status(kubectl, kind).get("observedGeneration") == generation + 1, 15, "the generation is observed")


@both("11.7.5", "11.8.7")
def test_the_scale_subresource(kubectl: Kubectl, kind: Kind) -> None:
    kubectl.apply(kind.make(replicas=1))
    ready(kubectl, kind, 1)
    raw = kind.raw(kubectl, subresource="scale")
    found = json.loads(kubectl.run("get", "--raw", raw))
    assert (found["spec"]["replicas"], found["status"]["replicas"]) == (1, 1)
    found["spec"]["replicas"] = 2
    kubectl.run("replace", "--raw", raw, "-f", "-", stdin=json.dumps(found))
    ready(kubectl, kind, 2)
    kubectl.run("scale", kind.short, "web", "--replicas=4")
    ready(kubectl, kind, 4)


@both("11.5.4", "11.6.3")
def test_deleting_and_failed_pods_are_replaced(kubectl: Kubectl, kind: Kind) -> None:
    kubectl.apply(kind.make(replicas=2))
    deleted, failed = ready(kubectl, kind, 2)
    name = deleted["metadata"]["name"]
    patch(kubectl, "pod", name, {"metadata": {"finalizers": ["example.com/hold"]}})
    kubectl.run("delete", "pod", name, "--wait=false")
    set_phase(kubectl, failed, "Failed")
    until(lambda: len(kubectl.items("pods", "-l", "app=web")) == 4, 20, "two others beside them")
    ready(kubectl, kind, 2)
    patch(kubectl, "pod", name, {"metadata": {"finalizers": None}})


def test_11_5_14_a_pod_on_its_way_out_is_counted_beside_its_successor(kubectl: Kubectl, cluster: Stage) -> None:
    """Pods that no node takes: what a kubelet ends is on its way out no longer, but has ended."""
    kubectl.apply(RS.make(replicas=2, pod=template("web", nodeSelector={"no": "where"})))

    def counts() -> list[int | None]:
        said = status(kubectl, RS)
        return [said.get("replicas"), said.get("terminatingReplicas")]

    counted = cluster.embedded or cluster.version >= COUNTS_TERMINATING
    until(lambda: counts() == [2, 0 if counted else None], 20, "two pods")
    name = pods_of(kubectl)[0]["metadata"]["name"]
    patch(kubectl, "pod", name, {"metadata": {"finalizers": ["example.com/hold"]}})
    kubectl.run("delete", "pod", name, "--wait=false")
    until(lambda: len(kubectl.items("pods", "-l", "app=web")) == 3, 20, "its successor stands beside it")
    until(lambda: counts() == [2, 1 if counted else None], 20, "older servers drop what they do not know")
    patch(kubectl, "pod", name, {"metadata": {"finalizers": None}})
    until(lambda: len(kubectl.items("pods", "-l", "app=web")) == 2, 20, "it is gone")
    until(lambda: counts() == [2, 0 if counted else None], 20, "two pods again")


@pytest.mark.parametrize(
    ("dear", "stable", "kept"),
    [
        ({"oarlock-0": "1000", "oarlock-1": "100"}, "", "oarlock-0"),
        ({"oarlock-0": "100", "oarlock-1": "1000"}, "", "oarlock-1"),
        ({"oarlock-0": "100", "oarlock-1": "100"}, "oarlock-1", "oarlock-1"),
        ({}, "oarlock-0", "oarlock-0"),
    ],
    ids=["the dear first one", "the dear second one", "equal costs: restarts decide", "no costs: restarts decide"],
)
@both("11.5.5", "as 11.5.5")
def test_deletion_cost(
    kubectl: Kubectl, kind: Kind, cluster: Stage, dear: dict[str, str], stable: str, kept: str
) -> None:
    """Two to one. The cost counts on every server: it is an annotation, and who decides is ours."""
    beyond_upstream("the deletion cost counts since 1.22", (1, 22), cluster.version)
    names = ("oarlock-0", "oarlock-1")
    costs = {name: {COST: dear[name]} if name in dear else {} for name in names}
    kubectl.apply(*(bare_pod(name, annotations=costs[name], restarted="no") for name in names))
    kubectl.run("wait", "--for=condition=Ready", "pods", "-l", "app=web", "--timeout=120s")
    made = template("web")
    made["metadata"]["labels"]["restarted"] = "no"
    kubectl.apply(kind.make(replicas=2, pod=made))
    ready(kubectl, kind, 2)
    at = "2020-01-01T00:00:00Z"  # ready since the same moment: what is compared after it decides
    for name in names:

        def restarted(said: Obj, restarts: int = 0 if name == stable else 5) -> Obj:
            conditions = [{**each, "lastTransitionTime": at} for each in said["conditions"]]
            containers = [{**each, "restartCount": restarts} for each in said["containerStatuses"]]
            return {**said, "conditions": conditions, "containerStatuses": containers}

        if stable:
            change_status(kubectl, pod_path(kubectl, name), restarted)
    kubectl.run("label", "pods", "-l", "app=web", "restarted=yes", "--overwrite")
    until(lambda: not status(kubectl, kind).get("fullyLabeledReplicas"), 15, "the controller knows of it")
    kubectl.run("scale", kind.short, "web", "--replicas=1")
    until(lambda: len(pods_of(kubectl)) == 1, 15, "one goes")
    (left,) = pods_of(kubectl)
    assert left["metadata"]["name"] == kept


@both("11.5.9", "11.6.7")
def test_ready_and_available(kubectl: Kubectl, kind: Kind) -> None:
    """Three pods: one not ready, one ready since now, one since long ago; to be ready for an hour is asked for."""
    kubectl.apply(kind.make(replicas=3, minReadySeconds=3600, pod=SLEEPY))
    until(lambda: status(kubectl, kind).get("replicas") == 3, 20, "three pods")
    until(lambda: all(each["status"]["phase"] == "Running" for each in pods_of(kubectl)), 15, "they run")
    for each, at in zip(pods_of(kubectl), ("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"), strict=False):
        now_ready = {"type": "Ready", "status": "True", "lastTransitionTime": at}

        def made_ready(said: Obj, condition: Obj = now_ready) -> Obj:
            return {**said, "conditions": [*(c for c in said["conditions"] if c["type"] != "Ready"), condition]}

        change_status(kubectl, pod_path(kubectl, each), made_ready)

    def counts() -> list[int]:
        said = status(kubectl, kind)
        return [said.get(field, 0) for field in ("replicas", "readyReplicas", "availableReplicas")]

    until(lambda: counts() == [3, 2, 1], 20, "three pods, two ready, one available")


@both("11.5.12", "11.6.10")
def test_fully_labelled(kubectl: Kubectl, kind: Kind) -> None:
    made = template("web")
    made["metadata"]["labels"]["extra"] = "yes"
    kubectl.apply(bare_pod("half"), bare_pod("whole", extra="yes"))
    kubectl.run("wait", "--for=condition=Ready", "pods", "-l", "app=web", "--timeout=120s")
    kubectl.apply(kind.make(replicas=2, pod=made))

    def counts() -> list[int]:
        said = status(kubectl, kind)
        return [said.get(field, 0) for field in ("replicas", "fullyLabeledReplicas")]

    until(lambda: counts() == [2, 1], 15, "one of two has every label of the template")


# -- whose they are --------------------------------------------------------------------------------------------------


@both("11.7.4", "11.6.1 11.8.4 11.8.5")
def test_a_bare_pod_is_adopted_and_released(kubectl: Kubectl, kind: Kind) -> None:
    kubectl.apply(bare_pod("foundling"))
    kubectl.run("wait", "--for=condition=Ready", "pod/foundling", "--timeout=120s")
    kubectl.apply(kind.make(replicas=1))
    (kept,) = ready(kubectl, kind, 1)
    assert (kept["metadata"]["name"], controlled_by(kept)) == ("foundling", owner_uid(kubectl, kind))
    kubectl.run("label", "pod", "foundling", "app=free", "--overwrite")
    until(lambda: not controlled_by(kubectl.json("get", "pod", "foundling")), 15, "it is released")
    (other,) = until(lambda: pods_of(kubectl), 15, "another comes")
    ready(kubectl, kind, 1)
    assert other["metadata"]["name"] != "foundling"


@pytest.mark.parametrize("before", ["plain", "none", "controlled", "by another"])
@both("11.5.1", "11.6.1")
def test_adoption(kubectl: Kubectl, kind: Kind, cluster: Stage, before: str) -> None:
    """A pod that comes to match, with references of four sorts. Ready and dear, it stays, and the one there goes."""
    beyond_upstream("the deletion cost counts since 1.22", (1, 22), cluster.version)
    kubectl.apply(bare_pod("known", "other", annotations={COST: "100"}), kind.make(replicas=1))
    ready(kubectl, kind, 1)
    kubectl.run("wait", "--for=condition=Ready", "pod/known", "--timeout=120s")
    uid = owner_uid(kubectl, kind)
    references = {
        "plain": [reference(kind, uid)],
        "none": [],
        "controlled": [reference(kind, uid, controller=True)],
        "by another": [config_map_reference(kubectl, controller=True), reference(kind, uid)],
    }[before]
    patch(kubectl, "pod", "known", {"metadata": {"labels": {"app": "web"}, "ownerReferences": references}})
    if before == "by another":
        kubectl.run("scale", kind.short, "web", "--replicas=2")
        assert len(ready(kubectl, kind, 2)) == 3, "it counts for nobody but its own"
        assert kubectl.json("get", "pod", "known")["metadata"]["ownerReferences"] == references
        return
    until(lambda: [each["metadata"]["name"] for each in pods_of(kubectl)] == ["known"], 20, "the other one goes")
    (kept,) = ready(kubectl, kind, 1)
    both_flags = [reference(kind, uid, controller=True, blockOwnerDeletion=True)]
    assert kept["metadata"]["ownerReferences"] == (references if before == "controlled" else both_flags)


@both("11.5.8", "11.6.6")
@pytest.mark.parametrize("others", [0, 1], ids=["one reference", "two references"])
def test_a_reference_that_does_not_control_becomes_one_that_does(
    kubectl: Kubectl, kind: Kind, cluster: Stage, others: int
) -> None:
    """Two pods then, and one is too many: the other, because this one is dear."""
    beyond_upstream("the deletion cost counts since 1.22", (1, 22), cluster.version)
    kubectl.apply(bare_pod("known", "other", annotations={COST: "100"}), kind.make(replicas=1))
    ready(kubectl, kind, 1)
    kubectl.run("wait", "--for=condition=Ready", "pod/known", "--timeout=120s")
    uid = owner_uid(kubectl, kind)
    references = [*[config_map_reference(kubectl)][:others], reference(kind, uid)]
    patch(kubectl, "pod", "known", {"metadata": {"labels": {"app": "web"}, "ownerReferences": references}})
    until(lambda: [each["metadata"]["name"] for each in pods_of(kubectl)] == ["known"], 20, "the other one goes")
    (kept,) = ready(kubectl, kind, 1)
    assert (controlled_by(kept), len(kept["metadata"]["ownerReferences"])) == (uid, 1 + others)


@both("11.5.6", "11.6.4")
def test_overlapping_ones_do_not_fight(kubectl: Kubectl, kind: Kind) -> None:
    for name, count in (("one", 1), ("two", 2)):
        kubectl.apply(kind.make(name, count, app="web"))
    for name, count in (("one", 1), ("two", 2)):
        ready(kubectl, kind, count, name)
    pods = pods_of(kubectl)
    owners = {each["metadata"]["name"]: each["metadata"]["uid"] for each in kubectl.items(kind.short)}
    assert sorted(controlled_by(each) for each in pods) == sorted([owners["one"], owners["two"], owners["two"]])


@both("11.5.7 11.5.15", "11.6.5")
def test_labelled_out_and_back(kubectl: Kubectl, kind: Kind) -> None:
    kubectl.apply(kind.make(replicas=1))
    (first,) = ready(kubectl, kind, 1)
    name = first["metadata"]["name"]
    kubectl.run("label", "pod", name, "app=free", "--overwrite")
    until(lambda: not controlled_by(kubectl.json("get", "pod", name)), 15, "it is released")
    (second,) = until(lambda: pods_of(kubectl), 15, "another comes")
    kubectl.run("label", "pod", name, "app=web", "--overwrite")
    until(lambda: len(pods_of(kubectl)) == 1, 20, "it is taken back, and there is one too many")
    (left,) = ready(kubectl, kind, 1)
    assert left["metadata"]["uid"] in uids([first, second])
    assert controlled_by(left) == owner_uid(kubectl, kind)


@both("11.5.11", "11.6.9")
def test_of_matching_orphans_the_surplus_goes(kubectl: Kubectl, kind: Kind) -> None:
    orphans = [bare_pod(f"orphan-{number}") for number in range(3)]
    kubectl.apply(*orphans)
    kubectl.run("wait", "--for=condition=Ready", "pods", "-l", "app=web", "--timeout=120s")
    kubectl.apply(kind.make(replicas=2))
    left = ready(kubectl, kind, 2)
    assert {each["metadata"]["name"] for each in left} < {each["metadata"]["name"] for each in orphans}


# -- the object itself -----------------------------------------------------------------------------------------------


def test_11_5_2_the_selector_stays(kubectl: Kubectl) -> None:
    kubectl.apply(RS.make())
    body = json.dumps({"spec": {"selector": {"matchLabels": {"app": "other"}}, "template": template("other")}})
    said = kubectl.run("patch", "rs", "web", "--type=merge", "-p", body, code=1)
    assert "field is immutable" in said


def test_11_5_13_deletion_leaves_no_finalizer(kubectl: Kubectl) -> None:
    kubectl.apply(RS.make(replicas=1))
    ready(kubectl, RS, 1)
    patch(kubectl, "rs", "web", {"metadata": {"finalizers": ["example.com/hold"]}})
    kubectl.run("delete", "--raw", RS.raw(kubectl))
    assert kubectl.json("get", "rs", "web")["metadata"]["finalizers"] == ["example.com/hold"]
    patch(kubectl, "rs", "web", {"metadata": {"finalizers": None}})
    until(lambda: not kubectl.items("rs") and not kubectl.items("pods"), 30, "it is gone, and its pod")


@both("11.7.6", "as 11.7.6")
def test_replace_and_patch(kubectl: Kubectl, kind: Kind) -> None:
    kubectl.apply(kind.make(replicas=1))
    ready(kubectl, kind, 1)
    kubectl.run("scale", kind.short, "web", "--replicas=2")
    ready(kubectl, kind, 2)
    container = {"name": "c", "image": "nginx:2"}
    body = {"metadata": {"labels": {"test": "patched"}}, "spec": {"replicas": 3, "template": {"spec": {}}}}
    body["spec"]["template"]["spec"] = {"containers": [container]}  # type: ignore[index]
    patch(kubectl, kind.short, "web", body)
    pods = ready(kubectl, kind, 3)
    images = sorted(each["spec"]["containers"][0]["image"] for each in pods)
    assert images == ["nginx:1", "nginx:1", "nginx:2"], "pods that exist stay as they are"


@both("11.7.7", "11.8.6")
def test_life_cycle_and_delete_collection(kubectl: Kubectl, kind: Kind) -> None:
    kubectl.apply(kind.make(replicas=1))
    ready(kubectl, kind, 1)
    label = f"test={kubectl.namespace}"
    kubectl.run("label", kind.short, "web", label)
    change_status(kubectl, kind.raw(kubectl), lambda said: {**said, "readyReplicas": 0, "availableReplicas": 0})
    ready(kubectl, kind, 1)
    patch(kubectl, kind.short, "web", {"spec": {"replicas": 2}})
    ready(kubectl, kind, 2)
    assert len(kubectl.items(kind.short, "--all-namespaces", "-l", label)) == 1
    kubectl.run("delete", kind.short, "-l", label)
    assert kubectl.items(kind.short) == []
    until(lambda: not kubectl.items("pods"), 30, "its pods are gone")


@both("11.7.8", "as 11.7.8")
def test_conditions_of_others_survive(kubectl: Kubectl, kind: Kind) -> None:
    kubectl.apply(kind.make(replicas=1))
    ready(kubectl, kind, 1)
    condition = {"type": "StatusUpdate", "status": "True", "reason": "E2E", "message": "set from a test"}
    change_status(kubectl, kind.raw(kubectl), lambda said: {**said, "conditions": [condition]})
    kubectl.run("scale", kind.short, "web", "--replicas=2")
    ready(kubectl, kind, 2)

    def types() -> list[str]:
        return [each["type"] for each in status(kubectl, kind).get("conditions") or ()]

    assert types() == ["StatusUpdate"]
    change_status(kubectl, kind.raw(kubectl), lambda said: {**said, "conditions": [condition | {"type": "Other"}]})
    kubectl.run("scale", kind.short, "web", "--replicas=1")
    ready(kubectl, kind, 1)
    assert types() == ["Other"]


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
@both("delete", "delete")
def test_delete_with_each_cascade(kubectl: Kubectl, kind: Kind, cascade: str) -> None:
    kubectl.apply(kind.make(replicas=3))
    before = ready(kubectl, kind, 3)
    kubectl.run("delete", kind.short, "web", f"--cascade={cascade}", "--timeout=120s")
    assert kubectl.items(kind.short) == []
    if cascade != "orphan":
        until(lambda: not kubectl.items("pods"), 30, "its pods are gone")
        return
    assert uids(pods_of(kubectl)) == uids(before)
    assert not any(each["metadata"].get("ownerReferences") for each in pods_of(kubectl))
    kubectl.apply(kind.make(replicas=3))
    assert uids(ready(kubectl, kind, 3)) == uids(before), "the next one of that name adopts them"
