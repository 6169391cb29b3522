"""The whole embedded cluster over HTTP: pods get ready, owners take their pods with them, rules are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from oarlock.sandbox.nodes.settings import NodeSettings
from tests.sandbox.api_harness import PODS, SETS, STRATEGIC, WAIT_S, Api, names, pod, quick, replicaset, running

Obj = dict[str, Any]


@pytest.fixture
def api() -> Iterator[Api]:
    """A server with two simulated nodes."""
    with running(quick(nodes=NodeSettings(nodes=2, pods_per_node=500))) as client:
        yield client


def eventually(look: Callable[[], Any], want: Any) -> None:
    """Look until it is as wanted; the deadline only ends a failing run."""
    deadline_s = time.monotonic() + WAIT_S
    while (seen := look()) != want:
        assert time.monotonic() < deadline_s, f"still {seen!r}, not {want!r}"
        time.sleep(0.002)


def ready(obj: Obj) -> bool:
    conditions = obj["status"].get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def owned(owner: Obj, name: str) -> Obj:
    meta = owner["metadata"]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": meta["name"], "uid": meta["uid"]}
    made = pod(name, {"app": "web"})
    made["metadata"]["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    return made


def owner_with_pods(api: Api, count: int) -> Obj:
    owner = api.create(SETS, replicaset("web"))
    for i in range(count):
        api.create(PODS, owned(owner, f"web-{i}"))
    eventually(lambda: sum(map(ready, api.get(PODS)["items"])), count)
    return owner


def test_a_pod_becomes_ready(api: Api) -> None:
    watch = api.watch(PODS)
    created = api.create(PODS, pod("p"))
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    added, bound, run = watch.take(3)
    assert (added["type"], bound["type"], run["type"]) == ("ADDED", "MODIFIED", "MODIFIED")
    assert bound["object"]["spec"]["nodeName"] in ("node-0", "node-1")
    assert bound["object"]["status"]["phase"] == "Pending"
    assert run["object"]["status"]["phase"] == "Running"
    assert ready(run["object"])


def test_a_pod_bound_by_hand(api: Api) -> None:
    api.create(PODS, pod("p", schedulerName="mine"))
    api.create(f"{PODS}/p/binding", {"target": {"kind": "Node", "name": "node-1"}})
    eventually(lambda: ready(api.get(f"{PODS}/p")), True)


def test_a_pod_is_deleted_in_good_order(api: Api) -> None:
    api.create(PODS, pod("p"))
    eventually(lambda: ready(api.get(f"{PODS}/p")), True)
    watch = api.watch(PODS, resourceVersion=api.get(PODS)["metadata"]["resourceVersion"])
    answer = api.delete(f"{PODS}/p")
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 30
    marked, ended, gone = watch.take(3)
    assert (marked["type"], ended["type"], gone["type"]) == ("MODIFIED", "MODIFIED", "DELETED")
    assert marked["object"]["metadata"]["deletionGracePeriodSeconds"] == 30
    assert ended["object"]["metadata"]["deletionGracePeriodSeconds"] == 0


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_pods_go_with_their_owner(api: Api, policy: str) -> None:
    owner_with_pods(api, 20)
    api.create(PODS, pod("alone"))
    api.delete(f"{SETS}/web", {"propagationPolicy": policy})
    eventually(lambda: names(api.get(PODS)), ["alone"])
    eventually(lambda: names(api.get(SETS)), [])


def test_pods_stay_without_their_owner(api: Api) -> None:
    owner_with_pods(api, 5)
    api.delete(f"{SETS}/web", {"propagationPolicy": "Orphan"})
    eventually(lambda: names(api.get(SETS)), [])
    pods = api.get(PODS)["items"]
    assert len(pods) == 5
    assert not any("ownerReferences" in p["metadata"] for p in pods)


def test_a_pod_for_an_owner_that_is_gone(api: Api) -> None:
    owner = owner_with_pods(api, 0)
    api.delete(f"{SETS}/web")
    api.create(PODS, owned(owner, "late"))
    eventually(lambda: names(api.get(PODS)), [])


def test_adoption_and_release(api: Api) -> None:
    owner = api.create(SETS, replicaset("web"))
    orphan = api.create(PODS, pod("p", {"app": "web"}))
    reference = owned(owner, "p")["metadata"]["ownerReferences"][0]
    uid = orphan["metadata"]["uid"]
    patch = {"metadata": {"ownerReferences": [reference], "uid": uid}}
    assert api.patch(f"{PODS}/p", patch, STRATEGIC)["metadata"]["ownerReferences"] == [reference]

    code, answer = api.call("PATCH", f"{PODS}/p", {"metadata": {**patch["metadata"], "uid": "x"}}, STRATEGIC)
    assert (code, answer["reason"]) == (422, "Invalid")

    rival = {**reference, "uid": "y", "name": "rival"}
    code, answer = api.call("PATCH", f"{PODS}/p", {"metadata": {"ownerReferences": [rival]}}, STRATEGIC)
    assert (code, answer["reason"]) == (422, "Invalid")
    assert "Only one reference can have Controller set to true" in answer["message"]

    gone = {"metadata": {"uid": uid, "ownerReferences": [{"$patch": "delete", "uid": reference["uid"]}]}}
    for _ in range(2):  # what is not there can be patched away
        assert not api.patch(f"{PODS}/p", gone, STRATEGIC)["metadata"].get("ownerReferences")


def test_a_quota(api: Api) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}
    where = "/api/v1/namespaces/default/resourcequotas"
    api.create(where, quota)
    for name in ("a", "b"):
        api.create(PODS, pod(name))
    code, answer = api.call("POST", PODS, pod("c"))
    assert (code, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        'pods "c" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2'
    )
    eventually(lambda: api.get(f"{where}/q")["status"]["used"], {"pods": "2"})
    api.delete(f"{PODS}/a")
    eventually(lambda: names(api.get(PODS)), ["b"])
    api.create(PODS, pod("c"))


def test_a_namespace_goes_with_all_that_is_in_it(api: Api) -> None:
    where = "/api/v1/namespaces"
    api.create(where, {"metadata": {"name": "team"}})
    for i in range(10):
        api.create(f"{where}/team/pods", pod(f"p{i}"))
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    api.create(f"{where}/team/configmaps", held)
    api.delete(f"{where}/team")
    eventually(lambda: names(api.get(f"{where}/team/pods")), [])
    assert api.get(f"{where}/team")["status"]["phase"] == "Terminating"
    code, answer = api.call("POST", f"{where}/team/pods", pod("late"))
    assert (code, answer["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    api.patch(f"{where}/team/configmaps/held", {"metadata": {"finalizers": None}})
    eventually(lambda: api.call("GET", f"{where}/team")[0], 404)


def test_pods_that_are_to_fail(api: Api) -> None:
    doomed = pod("p")
    doomed["metadata"]["annotations"] = {"oarlock.io/sim-fail": "NodeLost"}
    api.create(PODS, doomed)
    eventually(lambda: api.get(f"{PODS}/p")["status"].get("reason"), "NodeLost")
    api.create(PODS, pod("q"))
    eventually(lambda: ready(api.get(f"{PODS}/q")), True)
    api.patch(f"{PODS}/q", {"metadata": {"annotations": {"oarlock.io/sim-fail": "true"}}})
    eventually(lambda: api.get(f"{PODS}/q")["status"]["phase"], "Failed")


@pytest.mark.parametrize(
    ("path", "body", "code", "words"),
    [
        (PODS, {"metadata": {"name": "p"}, "spec": []}, 400, "cannot unmarshal"),
        (PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": 1}]}}, 400, "cannot unmarshal"),
        (PODS, {"metadata": {"name": "p", "labels": {"a": 1}}}, 400, "cannot unmarshal"),
        (PODS, {"metadata": {"name": "p"}}, 422, "spec.containers: Required value"),
        (PODS, {"metadata": {"name": "P"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, 422, "RFC 1123"),
        (SETS, replicaset("web", -1), 422, "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        (
            SETS,
            replicaset("web", selector={"matchLabels": {"app": "db"}}),
            422,
            'ReplicaSet.apps "web" is invalid: spec.template.metadata.labels: Invalid value: {"app":"web"}: '
            "`selector` does not match template `labels`",
        ),
        (SETS, replicaset("web", selector=None), 422, "spec.selector: Required value"),
    ],
)
def test_what_is_refused(api: Api, path: str, body: Obj, code: int, words: str) -> None:
    answered, answer = api.call("POST", path, body)
    assert (answered, words in answer["message"]) == (code, True), answer
    assert api.get(path)["items"] == []


def test_updates_that_are_refused(api: Api) -> None:
    api.create(SETS, replicaset("web"))
    api.create(PODS, pod("p"))
    eventually(lambda: ready(api.get(f"{PODS}/p")), True)
    code, answer = api.call("PATCH", f"{PODS}/p", {"spec": {"nodeName": "node-9"}}, "application/merge-patch+json")
    assert (code, "pod updates may not change fields other than" in answer["message"]) == (422, True)
    status = {"status": {"replicas": 1, "readyReplicas": 2}}
    code, answer = api.call("PATCH", f"{SETS}/web/status", status, "application/merge-patch+json")
    assert code == 422
    assert answer["details"]["causes"][0]["field"] == "status.readyReplicas"
    selector = {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}}}}
    code, answer = api.call("PATCH", f"{SETS}/web", selector, "application/merge-patch+json")
    assert code == 422
    assert 'spec.selector: Invalid value: {"matchLabels":{"app":"x"}}: field is immutable' in answer["message"]


def test_an_image_may_be_changed_and_nothing_else_with_it(api: Api) -> None:
    api.create(PODS, pod("p"))
    eventually(lambda: ready(api.get(f"{PODS}/p")), True)
    patch = {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}
    changed = api.patch(f"{PODS}/p", patch, STRATEGIC)
    (container,) = changed["spec"]["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("nginx:2", "Always")


def test_nulls_are_as_good_as_absent(api: Api) -> None:
    body = pod("p", nodeName=None)
    body["metadata"]["creationTimestamp"] = None
    body["metadata"]["labels"] = None
    body["spec"]["containers"][0]["ports"] = None
    created = api.create(PODS, body)
    assert "nodeName" not in created["spec"]
    assert "labels" not in created["metadata"]
    assert "ports" not in created["spec"]["containers"][0]
