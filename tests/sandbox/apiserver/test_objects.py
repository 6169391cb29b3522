"""Objects over HTTP: what a create, update, patch and delete do, and how they are refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.sandbox.api_harness import (
    JSON_PATCH,
    MERGE,
    PODS,
    SETS,
    STRATEGIC,
    Api,
    names,
    pod,
    quick,
    replicaset,
    running,
)


def test_create_fills_in_what_the_server_owns(api: Api) -> None:
    """uid, resourceVersion, creationTimestamp, generation and first status come from the server alone."""
    sent = replicaset()
    sent["metadata"] |= {"uid": "mine", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z"}
    sent["status"] = {"replicas": 9}
    made = api.create(SETS, sent)
    meta = made["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", meta["uid"])
    assert meta["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert meta["generation"] == 1
    assert int(meta["resourceVersion"]) > 0
    assert made["status"] == {"replicas": 0}
    assert api.get(f"{SETS}/web") == made


def test_generate_name_appends_five_characters_of_the_alphabet(api: Api) -> None:
    """Long prefixes are cut so that the name stays within 63 characters."""
    made = [api.create(PODS, pod())["metadata"]["name"] for _ in range(20)]
    assert len(set(made)) == 20
    assert all(re.fullmatch(r"web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in made)
    long = pod()
    long["metadata"]["generateName"] = "a" * 80
    assert len(api.create(PODS, long)["metadata"]["name"]) == 63


def test_a_pod_starts_pending_with_its_quality_of_service(api: Api) -> None:
    made = api.create(PODS, pod("a"))
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


REFUSED: list[Any] = [
    pytest.param(
        "POST", PODS, pod("Bad_Name"), 422, "Invalid", 'Pod "Bad_Name" is invalid: metadata.name', id="bad name"
    ),
    pytest.param(
        "POST",
        PODS,
        {"metadata": {}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        422,
        "Invalid",
        "metadata.name: Required value: name or generateName is required",
        id="no name",
    ),
    pytest.param("POST", PODS, pod("taken"), 409, "AlreadyExists", 'pods "taken" already exists', id="name taken"),
    pytest.param("POST", PODS, replicaset(), 400, "BadRequest", "the API version in the data", id="other version"),
    pytest.param(
        "POST",
        PODS,
        {**pod("a"), "kind": "Node"},
        400,
        "BadRequest",
        "cannot be handled as a Pod",
        id="other kind",
    ),
    pytest.param(
        "POST",
        PODS,
        {**pod("a"), "metadata": {"name": "a", "namespace": "other"}},
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
        id="other namespace",
    ),
    pytest.param(
        "POST",
        "/api/v1/namespaces/nowhere/pods",
        pod("a"),
        404,
        "NotFound",
        'namespaces "nowhere" not found',
        id="no such namespace",
    ),
    pytest.param(
        "POST", PODS, {**pod("a"), "metadata": {"labels": {"a": 1}}}, 400, "BadRequest", "labels", id="label type"
    ),
    pytest.param("POST", PODS, {**pod("a"), "spec": []}, 400, "BadRequest", "spec", id="spec type"),
    pytest.param("POST", PODS, [], 400, "BadRequest", "must be an object", id="a list"),
    pytest.param("POST", "/api/v1/pods", pod("a"), 405, "MethodNotAllowed", "", id="create without namespace"),
    pytest.param("PUT", PODS, pod("a"), 405, "MethodNotAllowed", "", id="put on a collection"),
    pytest.param("GET", f"{PODS}/none", None, 404, "NotFound", 'pods "none" not found', id="absent pod"),
    pytest.param("GET", f"{SETS}/none", None, 404, "NotFound", 'replicasets.apps "none" not found', id="absent set"),
    pytest.param("DELETE", f"{PODS}/none", None, 404, "NotFound", 'pods "none" not found', id="delete absent"),
    pytest.param("PUT", f"{PODS}/none", pod("none"), 404, "NotFound", "not found", id="put absent"),
    pytest.param(
        "PUT",
        f"{PODS}/taken",
        pod("other"),
        400,
        "BadRequest",
        "the name of the object (other) does not match the name on the URL (taken)",
        id="put under another name",
    ),
    pytest.param(
        "GET",
        "/apis/batch/v1/namespaces/default/gizmos",
        None,
        404,
        "NotFound",
        "the server could not find the requested resource",
        id="unknown kind",
    ),
    pytest.param("GET", f"{PODS}/taken/log", None, 404, "NotFound", "simulated", id="no logs"),
    pytest.param("POST", f"{PODS}/taken/exec", None, 404, "NotFound", "simulated", id="no exec"),
    pytest.param(
        "POST",
        SETS,
        replicaset(selector={"matchLabels": {"app": "other"}}),
        422,
        "Invalid",
        "`selector` does not match template `labels`",
        id="selector does not match",
    ),
    pytest.param("POST", SETS, replicaset(replicas=-1), 422, "Invalid", "spec.replicas", id="negative replicas"),
    pytest.param(
        "DELETE",
        "/api/v1/namespaces/default",
        None,
        403,
        "Forbidden",
        'namespaces "default" is forbidden: this namespace may not be deleted',
        id="protected namespace",
    ),
    pytest.param("GET", f"{PODS}?fieldSelector=spec.foo%3Dx", None, 400, "BadRequest", "spec.foo", id="unknown field"),
    pytest.param("GET", f"{PODS}?labelSelector=a%20b", None, 400, "BadRequest", "unable to parse", id="bad selector"),
]


@pytest.mark.parametrize(("method", "path", "body", "code", "reason", "message"), REFUSED)
def test_refusals(api: Api, method: str, path: str, body: Any, code: int, reason: str, message: str) -> None:
    """Each refusal is a Status with upstream's code, reason and words."""
    api.create(PODS, pod("taken"))
    got_code, status = api.call(method, path, body)
    assert (got_code, status["code"], status["reason"]) == (code, code, reason)
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert message in status["message"]


def test_invalid_lists_a_cause_for_each_field(api: Api) -> None:
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": n, "uid": n, "controller": True} for n in "ab"]
    bad = pod("a")
    bad["metadata"]["ownerReferences"] = owners
    code, status = api.call("POST", PODS, bad)
    assert (code, status["reason"]) == (422, "Invalid")
    assert status["details"]["kind"] == "Pod"
    assert status["details"]["causes"][0]["field"] == "metadata.ownerReferences"
    assert "Only one reference can have Controller set to true" in status["message"]


def test_a_body_that_cannot_be_read(api: Api) -> None:
    assert api.raw("POST", PODS, b"{", {"Content-Type": "application/json"})[0] == 400
    code, answer = api.raw("POST", PODS, b"<x/>", {"Content-Type": "application/xml"})
    assert (code, json.loads(answer)["reason"]) == (415, "UnsupportedMediaType")
    code, answer = api.raw(
        "POST", PODS, b"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod", {"Content-Type": "application/vnd.kubernetes.protobuf"}
    )
    assert code == 415
    assert "kubectl create -f" in json.loads(answer)["message"]


def test_yaml_bodies_are_read(api: Api) -> None:
    body = b"metadata: {name: y}\nspec:\n  containers: [{name: c, image: i}]\n"
    code, answer = api.raw("POST", PODS, body, {"Content-Type": "application/yaml"})
    assert (code, json.loads(answer)["metadata"]["name"]) == (201, "y")


def test_put_replaces_spec_and_ignores_status(api: Api) -> None:
    """Generation counts changes of spec only; status is written through its own address."""
    made = api.create(SETS, replicaset())
    made["spec"]["replicas"] = 5
    made["status"] = {"replicas": 77}
    updated = api.put(f"{SETS}/web", made)
    assert updated["metadata"]["generation"] == 2
    assert (updated["spec"]["replicas"], updated["status"]) == (5, {"replicas": 0})
    updated["metadata"]["labels"] = {"a": "b"}
    labelled = api.put(f"{SETS}/web", updated)
    assert labelled["metadata"]["generation"] == 2
    labelled["status"] = {"replicas": 5, "observedGeneration": 2}
    labelled["spec"]["replicas"] = 9
    reported = api.put(f"{SETS}/web/status", labelled)
    assert (reported["spec"]["replicas"], reported["status"]["replicas"]) == (5, 5)
    assert reported["metadata"]["generation"] == 2


def test_a_write_that_changes_nothing_commits_nothing(api: Api) -> None:
    made = api.create(SETS, replicaset())
    again = api.put(f"{SETS}/web", made)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_put_with_an_old_resource_version_conflicts(api: Api) -> None:
    made = api.create(SETS, replicaset())
    api.patch(f"{SETS}/web", {"spec": {"replicas": 1}})
    code, status = api.call("PUT", f"{SETS}/web", made)
    assert (code, status["reason"]) == (409, "Conflict")
    assert status["message"] == (
        'Operation cannot be fulfilled on replicasets.apps "web": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    del made["metadata"]["resourceVersion"]  # unconditional, as upstream allows for this kind
    assert api.put(f"{SETS}/web", made)["spec"]["replicas"] == 3


def test_put_with_another_uid_conflicts(api: Api) -> None:
    made = api.create(PODS, pod("a"))
    made["metadata"]["uid"] = "other"
    code, status = api.call("PUT", f"{PODS}/a", made)
    assert (code, status["reason"]) == (409, "Conflict")
    assert "UID in precondition: other" in status["message"]


@pytest.mark.parametrize("subresource", ["", "/status"])
@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC])
def test_patch_with_another_uid_is_invalid(api: Api, subresource: str, content_type: str) -> None:
    """Seen with 1.20.2: a patch has no precondition but its resourceVersion; the uid is immutable."""
    made = api.create(PODS, pod("a"))
    patch = {"metadata": {"uid": "other"}}
    code, status = api.call("PATCH", f"{PODS}/a{subresource}", patch, content_type)
    assert (code, status["reason"]) == (422, "Invalid")
    assert status["message"] == 'Pod "a" is invalid: metadata.uid: Invalid value: "other": field is immutable'
    api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}})
    patch["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    code, status = api.call("PATCH", f"{PODS}/a{subresource}", patch, content_type)
    assert (code, status["reason"]) == (409, "Conflict")


def test_leases_are_created_by_put_and_need_a_resource_version(api: Api) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l"
    code, made = api.call("PUT", path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    assert code == 201
    code, status = api.call("PUT", path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}})
    assert (code, status["reason"]) == (422, "Invalid")
    assert "metadata.resourceVersion" in status["message"]
    made["spec"]["holderIdentity"] = "b"
    assert api.put(path, made)["spec"]["holderIdentity"] == "b"


PATCHES: list[Any] = [
    pytest.param(MERGE, {"metadata": {"labels": {"x": "y", "app": None}}}, {"x": "y"}, id="merge"),
    pytest.param(JSON_PATCH, [{"op": "add", "path": "/metadata/labels/x", "value": "y"}], None, id="json"),
    pytest.param(STRATEGIC, {"metadata": {"labels": {"x": "y"}}}, None, id="strategic"),
]


@pytest.mark.parametrize(("content_type", "patch", "labels"), PATCHES)
def test_patch(api: Api, content_type: str, patch: Any, labels: dict[str, str] | None) -> None:
    api.create(PODS, pod("a", {"app": "web"}))
    patched = api.patch(f"{PODS}/a", patch, content_type)
    assert patched["metadata"]["labels"] == (labels or {"app": "web", "x": "y"})


def test_patch_with_preconditions(api: Api) -> None:
    """A patch that names a resourceVersion means exactly that state."""
    made = api.create(PODS, pod("a"))
    rv = made["metadata"]["resourceVersion"]
    api.patch(f"{PODS}/a", {"metadata": {"resourceVersion": rv, "labels": {"a": "1"}}})
    code, status = api.call("PATCH", f"{PODS}/a", {"metadata": {"resourceVersion": rv, "labels": {"a": "2"}}}, MERGE)
    assert (code, status["reason"]) == (409, "Conflict")


def test_status_patch_leaves_the_spec(api: Api) -> None:
    api.create(PODS, pod("a"))
    patched = api.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}})
    assert patched["status"]["phase"] == "Running"
    assert "nodeName" not in patched["spec"]
    patched = api.patch(f"{PODS}/a", {"status": {"phase": "Failed"}, "metadata": {"labels": {"a": "b"}}})
    assert patched["status"]["phase"] == "Running"


def test_dry_run_answers_and_stores_nothing(api: Api) -> None:
    before = api.get(PODS)["metadata"]["resourceVersion"]
    assert api.create(PODS, pod("a"), dryRun="All")["metadata"]["name"] == "a"
    assert api.get(PODS)["items"] == []
    api.create(PODS, pod("b"))
    assert api.patch(f"{PODS}/b", {"metadata": {"labels": {"a": "b"}}}, dryRun="All")["metadata"]["labels"]
    api.delete(f"{PODS}/b", dryRun="All")
    after = api.get(PODS)
    assert names(after) == ["b"]
    assert int(after["metadata"]["resourceVersion"]) == int(before) + 1


def test_a_namespace_keeps_its_name_as_a_label_and_its_finalizer(api: Api) -> None:
    made = api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert (made["spec"], made["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    patched = api.patch("/api/v1/namespaces/team", {"spec": {"finalizers": []}, "metadata": {"labels": {"a": "b"}}})
    assert patched["spec"] == {"finalizers": ["kubernetes"]}


def test_a_terminating_namespace_takes_nothing_new_until_it_is_finalized(api: Api) -> None:
    path = "/api/v1/namespaces/team"
    api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    # A finalizer of one's own keeps the namespace controller from ending it before the test has looked.
    api.patch(path, {"metadata": {"finalizers": ["example.com/hold"]}})
    assert api.delete(path)["status"]["phase"] == "Terminating"
    code, status = api.call("POST", "/api/v1/namespaces/team/pods", pod("a"))
    assert (code, status["reason"]) == (403, "Forbidden")
    assert status["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    assert "because it is being terminated" in status["message"]
    held = api.get(path)
    held["spec"]["finalizers"] = []
    api.put(f"{path}/finalize", held)
    api.patch(path, {"metadata": {"finalizers": None}})
    assert api.call("GET", path)[0] == 404


def test_secret_string_data_ends_up_in_data(api: Api) -> None:
    made = api.create("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    assert made["data"] == {"k": "dg=="}
    assert "stringData" not in made


def test_a_token_is_demanded_when_there_is_one() -> None:
    with running(quick(token="sesame")) as api:
        code, answer = api.raw("GET", PODS)
        assert (code, json.loads(answer)["reason"]) == (401, "Unauthorized")
        assert api.raw("GET", PODS, headers={"Authorization": "Bearer open"})[0] == 401
        assert api.raw("GET", PODS, headers={"Authorization": "Bearer sesame"})[0] == 200


def test_metadata_only_answers(api: Api) -> None:
    api.create(PODS, pod("a"))
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    listing = json.loads(api.raw("GET", PODS, headers=accept)[1])
    assert listing["kind"] == "PartialObjectMetadataList"
    assert set(listing["items"][0]) == {"kind", "apiVersion", "metadata"}
    assert api.raw("GET", PODS, headers={"Accept": "text/html"})[0] == 406


def test_what_is_empty_in_metadata_is_left_out(api: Api) -> None:
    """As upstream's types, whose fields are omitted when empty: a released pod has no ownerReferences at all."""
    owner = api.create(SETS, replicaset())["metadata"]
    sent = pod("a")
    sent["metadata"] |= {"finalizers": [], "annotations": {}}
    sent["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner["uid"], "controller": True}
    ]
    made = api.create(PODS, sent)["metadata"]
    assert not {"finalizers", "annotations"} & made.keys()
    assert "ownerReferences" in made
    release = {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner["uid"]}]}}
    released = api.patch(f"{PODS}/a", release, STRATEGIC)
    assert "ownerReferences" not in released["metadata"]
