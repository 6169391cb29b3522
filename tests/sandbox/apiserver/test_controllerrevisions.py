"""ControllerRevisions: data of any kind, kept to the letter and for ever; a number that may change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.api_harness import DAEMONSETS, MERGE, REVISIONS, TABLE, Api, daemonset

Obj = dict[str, Any]
PATH = f"{REVISIONS}/agent-1"


def revision(data: Any = None, number: int | None = 1) -> Obj:
    obj: Obj = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "agent-1", "labels": {"controller-revision-hash": "1"}},
        "data": {"spec": {"template": {"$patch": "replace"}}} if data is None else data,
    }
    return obj if number is None else {**obj, "revision": number}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"spec": {"template": {"metadata": {"creationTimestamp": None}}}}, id="nulls"),
        pytest.param({"$patch": "replace", "list": [None, {"a": None}]}, id="nulls in lists"),
        pytest.param({}, id="an empty object"),
        pytest.param("text", id="a text"),
        pytest.param([1, 2.5, True], id="a list"),
        pytest.param(0, id="a number"),
    ],
)
def test_data_is_kept_to_the_letter(api: Api, data: Any) -> None:
    assert api.create(REVISIONS, revision(data))["data"] == data
    labelled = api.patch(PATH, {"metadata": {"labels": {"a": "b"}}})
    assert labelled["data"] == data
    assert api.put(PATH, {**labelled, "revision": 4})["revision"] == 4
    assert json.dumps(api.get(PATH)["data"]) == json.dumps(data)


def test_a_number_that_is_left_out_is_0(api: Api) -> None:
    assert api.create(REVISIONS, revision(number=None))["revision"] == 0


def test_numbers_of_64_bits(api: Api) -> None:
    assert api.create(REVISIONS, revision(number=2**63 - 1))["revision"] == 2**63 - 1
    code, status = api.call("PUT", PATH, revision(number=2**63))
    assert (code, "ControllerRevision" in status["message"]) == (400, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"data": None}, "data: Required value: data is mandatory", id="no data"),
        pytest.param({"revision": -1}, "revision: Invalid value: -1: must be greater than", id="below 0"),
    ],
)
def test_what_may_not_be(api: Api, change: Obj, message: str) -> None:
    code, status = api.call("POST", REVISIONS, {**revision(), **change})
    assert (code, message in status["message"]) == (422, True)


def test_data_never_changes(api: Api) -> None:
    api.create(REVISIONS, revision())
    for patch in ({"data": {"spec": {"x": 1}}}, {"data": None}):
        code, status = api.call("PATCH", PATH, patch, MERGE)
        assert (code, status["reason"], "data" in status["message"]) == (422, "Invalid", True)
    assert api.patch(PATH, {"revision": 2})["revision"] == 2
    assert api.get(PATH)["data"] == revision()["data"]


@pytest.mark.parametrize("other", [{"b": 1, "a": 2}, {"a": 2.0, "b": 1}, {"a": 2, "b": True}], ids=str)
def test_data_is_compared_as_text(api: Api, other: Obj) -> None:
    made = api.create(REVISIONS, revision({"a": 2, "b": 1}))
    code, status = api.call("PUT", PATH, {**made, "data": other, "revision": 2})
    assert (code, "data" in status["message"]) == (422, True)
    assert api.put(PATH, {**made, "data": {"a": 2, "b": 1}, "revision": 2})["revision"] == 2


def test_it_has_neither_status_nor_generation(api: Api) -> None:
    made = api.create(REVISIONS, revision())
    assert "generation" not in made["metadata"]
    assert api.call("GET", f"{PATH}/status")[0] == 404


def test_lifecycle(api: Api) -> None:
    """Listed by label, replaced on its version only, deleted alone or as a collection."""
    made = api.create(REVISIONS, revision())
    assert len(api.get(REVISIONS, labelSelector="controller-revision-hash=1")["items"]) == 1
    api.patch(PATH, {"metadata": {"labels": {"a": "b"}}})
    assert api.call("PUT", PATH, {**made, "revision": 9})[0] == 409
    assert api.call("DELETE", PATH, {"preconditions": {"resourceVersion": "1"}})[0] == 409
    api.delete(PATH)
    api.create(REVISIONS, revision())
    api.delete(REVISIONS, labelSelector="controller-revision-hash=1")
    assert api.get(REVISIONS)["items"] == []


def test_table(api: Api) -> None:
    node = api.create("/api/v1/nodes", {"metadata": {"name": "n"}})["metadata"]["uid"]
    uid = api.create(DAEMONSETS, daemonset())["metadata"]["uid"]
    owned = revision(number=3)
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": node},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": uid, "controller": True},
    ]
    api.create(REVISIONS, owned)
    alone = revision()
    alone["metadata"]["name"] = "alone"
    api.create(REVISIONS, alone)
    _, body = api.raw("GET", REVISIONS, headers={"Accept": TABLE})
    table = json.loads(body)
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Controller", "Revision", "Age"]
    assert [row["cells"] for row in table["rows"]] == [
        ["agent-1", "daemonset.apps/agent", 3, "0s"],
        ["alone", "<none>", 1, "0s"],
    ]
