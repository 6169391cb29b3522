"""Server-side apply of custom resources: lists are merged as their schema says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_harness import Api
from tests.sandbox.apiserver.apply.test_apply import apply, managers
from tests.sandbox.apiserver.custom.definitions import DEFINITIONS, SPEC, WIDGETS, Obj, definition, version, widget

A = f"{WIDGETS}/a"
BY_NAME = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
GATE = 'k:{"name":"gate"}'


@pytest.fixture
def widgets(api: Api) -> Api:
    """A server with widgets in two versions, whose hosts are a map by name."""
    properties: Any = SPEC["properties"]
    spec = {**SPEC, "properties": {**properties, "hosts": {**properties["hosts"], **BY_NAME}}}
    api.create(DEFINITIONS, definition(version(spec=spec), version("v2", spec, storage=False)))
    return api


def hosts(*names: str, weight: int = 1) -> Obj:
    return {**widget(), "spec": {"size": 1, "hosts": [{"name": name, "weight": weight} for name in names]}}


def test_two_managers_share_a_list(widgets: Api) -> None:
    code, made = apply(widgets, A, hosts("door"), "one")
    assert (code, made["metadata"]["generation"]) == (201, 1)
    code, both = apply(widgets, A, hosts("gate"), "two")
    assert (code, [each["name"] for each in both["spec"]["hosts"]]) == (200, ["door", "gate"])
    assert managers(both)["two", "Apply", ""] == {
        "f:spec": {"f:size": {}, "f:hosts": {GATE: {".": {}, "f:name": {}, "f:weight": {}}}}
    }
    code, left = apply(widgets, A, hosts(), "one")
    assert (code, [each["name"] for each in left["spec"]["hosts"]]) == (200, ["gate"])
    assert left["spec"]["color"] == "red", "a default is nobody's"


def test_a_conflict_names_the_field(widgets: Api) -> None:
    apply(widgets, A, hosts("gate"), "one")
    code, status = apply(widgets, A, hosts("gate", weight=2), "two")
    assert (code, status["details"]["causes"][0]["field"]) == (409, '.spec.hosts[name="gate"].weight')
    code, taken = apply(widgets, A, hosts("gate", weight=2), "two", force="true")
    assert (code, taken["spec"]["hosts"][0]["weight"]) == (200, 2)


def test_what_the_schema_refuses_changes_nothing(widgets: Api) -> None:
    _, made = apply(widgets, A, hosts("gate"), "one")
    code, status = apply(widgets, A, hosts("GATE"), "one")
    assert (code, status["reason"]) == (422, "Invalid")
    assert widgets.get(A) == made


def test_in_another_version(widgets: Api) -> None:
    apply(widgets, A, hosts("door"), "one")
    path = A.replace("/v1/", "/v2/")
    code, both = apply(widgets, path, {**hosts("gate"), "apiVersion": "example.com/v2"}, "two")
    assert (code, both["apiVersion"], len(both["spec"]["hosts"])) == (200, "example.com/v2", 2)
    assert len(widgets.get(A)["spec"]["hosts"]) == 2


def test_status_apart(widgets: Api) -> None:
    apply(widgets, A, hosts("door"), "one")
    told = {**widget(), "status": {"size": 3}}
    code, after = apply(widgets, f"{A}/status", told, "two")
    assert (code, after["status"], len(after["spec"]["hosts"])) == (200, {"size": 3}, 1)
    assert managers(after)["two", "Apply", "status"] == {"f:status": {"f:size": {}}}
