"""Custom resources: their form, what is refused, and every verb on them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.api_harness import JSON_PATCH, MERGE, PODS, STRATEGIC, TABLE, Api, names, pod
from tests.sandbox.apiserver.custom.definitions import DEFINITIONS, WIDGETS, Obj, definition, version, widget

A = f"{WIDGETS}/a"


def test_pruned_and_defaulted(widgets: Api) -> None:
    made = widgets.create(WIDGETS, {**widget(junk=1, free={"x": {"y": 1}}, hosts=[{"name": "h", "z": 1}]), "top": 1})
    assert made["spec"] == {"size": 1, "color": "red", "free": {"x": {"y": 1}}, "hosts": [{"name": "h"}]}
    assert "top" not in made
    assert widgets.get(A) == made


def test_a_null_gives_way_to_a_default(widgets: Api) -> None:
    assert widgets.create(WIDGETS, widget(color=None))["spec"]["color"] == "red"


@pytest.mark.parametrize(
    ("spec", "reason", "message", "field"),
    [
        ({"size": -1}, "Invalid", "spec.size in body should be greater than or equal to 0", "spec.size"),
        ({"size": "x"}, "TypeInvalid", 'spec.size in body must be of type integer: "string"', "spec.size"),
        ({"size": None}, "Required", "Required value", "spec.size"),  # prunenulls.go
        ({"color": "x"}, "NotSupported", 'Unsupported value: "x": supported values: "red", "blue"', "spec.color"),
        ({"hosts": [{}]}, "Required", "Required value", "spec.hosts[0].name"),
        ({"hosts": [{"name": "A"}]}, "Invalid", "should match '^[a-z]+$'", "spec.hosts[0].name"),
        ({"hosts": [{"name": "a"}] * 4}, "TooMany", "Too many: 4: must have at most 3 items", "spec.hosts"),
        ({"port": []}, "TypeInvalid", 'must be of type integer,string: "array"', "spec.port"),
    ],
)
def test_refused(widgets: Api, spec: Obj, reason: str, message: str, field: str) -> None:
    code, status = widgets.call("POST", WIDGETS, widget(**spec))
    assert (code, status["reason"], status["details"]["kind"]) == (422, "Invalid", "Widget")
    cause = status["details"]["causes"][0]
    assert (cause["field"], cause["reason"]) == (field, f"FieldValue{reason}")
    assert message in cause["message"]
    assert 'Widget.example.com "a" is invalid' in status["message"]


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({**widget(), "apiVersion": "example.com/v2"}, "does not match the expected API version (example.com/v1)"),
        ({**widget(), "kind": "Gadget"}, 'Gadget in version "v1" cannot be handled as a Widget'),
        ({**widget(), "metadata": {"name": "a", "labels": [1]}}, 'Widget in version "v1" cannot be handled'),
    ],
)
def test_bad_requests(widgets: Api, obj: Obj, message: str) -> None:
    code, status = widgets.call("POST", WIDGETS, obj)
    assert (code, message in status["message"]) == (400, True), status


def test_generation_and_status(widgets: Api) -> None:
    made = widgets.create(WIDGETS, {**widget(), "status": {"size": 9}})
    assert "status" not in made
    assert made["metadata"]["generation"] == 1
    assert widgets.patch(A, {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert widgets.patch(A, {"spec": {"size": 2}})["metadata"]["generation"] == 2
    told = widgets.patch(
        f"{A}/status", {"spec": {"size": 7}, "status": {"size": 2}, "metadata": {"labels": {"c": "d"}}}
    )
    assert (told["spec"]["size"], told["status"], told["metadata"]["generation"]) == (2, {"size": 2}, 2)
    assert told["metadata"]["labels"] == {"a": "b"}
    kept = widgets.patch(A, {"status": {"size": 8}})
    assert kept["status"] == {"size": 2}
    assert kept["metadata"]["resourceVersion"] == told["metadata"]["resourceVersion"]
    assert widgets.get(f"{A}/status")["status"] == {"size": 2}


def test_without_a_status_of_its_own_all_is_content(api: Api) -> None:
    api.create(DEFINITIONS, definition(version(subresources={})))
    assert api.create(WIDGETS, {**widget(), "status": {"size": 9}})["status"] == {"size": 9}
    assert api.patch(A, {"status": {"size": 8}})["metadata"]["generation"] == 2
    assert api.call("PATCH", f"{A}/status", {"status": {}}, MERGE)[0] == 404
    assert api.call("GET", f"{A}/scale")[0] == 404


def test_scale(widgets: Api) -> None:
    widgets.create(WIDGETS, widget(size=3))
    widgets.patch(f"{A}/status", {"status": {"size": 2, "selector": "a=b"}})
    scale = widgets.get(f"{A}/scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "a=b"})
    scale["spec"]["replicas"] = 5
    assert widgets.put(f"{A}/scale", scale)["spec"] == {"replicas": 5}
    assert widgets.call("PUT", f"{A}/scale", scale)[0] == 409
    assert widgets.patch(f"{A}/scale", {"spec": {"replicas": 6}})["spec"] == {"replicas": 6}
    whole = widgets.get(A)
    assert (whole["spec"]["size"], whole["metadata"]["generation"]) == (6, 3)
    assert "replicas" not in whole["spec"]


def test_patches(widgets: Api) -> None:
    widgets.create(WIDGETS, widget(hosts=[{"name": "a"}]))
    merged = widgets.patch(A, {"spec": {"hosts": [{"name": "b"}]}})
    assert merged["spec"]["hosts"] == [{"name": "b"}]
    operations = [{"op": "add", "path": "/spec/hosts/-", "value": {"name": "c", "junk": 1}}]
    assert widgets.patch(A, operations, JSON_PATCH)["spec"]["hosts"] == [{"name": "b"}, {"name": "c"}]
    code, status = widgets.call("PATCH", A, {"spec": {}}, STRATEGIC)
    assert (code, status["reason"]) == (415, "UnsupportedMediaType")


def test_updates_need_a_resource_version(widgets: Api) -> None:
    made = widgets.create(WIDGETS, widget())
    code, status = widgets.call("PUT", A, widget(size=2))
    assert (code, status["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")
    changed = {**made, "spec": {"size": 2}}
    assert widgets.put(A, changed)["spec"] == {"size": 2, "color": "red"}
    assert widgets.call("PUT", A, changed)[0] == 409


def test_lists_watches_and_collections(widgets: Api) -> None:
    for name, color in (("a", "red"), ("b", "blue")):
        widgets.create(WIDGETS, {**widget(name, color=color), "metadata": {"name": name, "labels": {"c": color}}})
    listing = widgets.get(WIDGETS)
    assert (listing["kind"], listing["apiVersion"]) == ("WidgetList", "example.com/v1")
    assert names(widgets.get("/apis/example.com/v1/widgets")) == ["a", "b"]
    assert names(widgets.get(WIDGETS, labelSelector="c=blue")) == ["b"]
    assert names(widgets.get(WIDGETS, limit=1)) == ["a"]
    stream = widgets.watch(WIDGETS, resourceVersion=listing["metadata"]["resourceVersion"])
    widgets.patch(A, {"spec": {"size": 4}})
    widgets.delete(A)
    events = stream.take(2)
    assert [each["type"] for each in events] == ["MODIFIED", "DELETED"]
    assert events[0]["object"]["spec"]["size"] == 4
    widgets.delete(WIDGETS)
    assert names(widgets.get(WIDGETS)) == []


def test_selectable_fields(api: Api) -> None:
    paths = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}]
    api.create(DEFINITIONS, definition(version(selectableFields=paths)))
    api.create(WIDGETS, widget("a"))
    api.create(WIDGETS, widget("b", color="blue", size=5))
    assert names(api.get(WIDGETS, fieldSelector="spec.color=blue,spec.size=5")) == ["b"]
    assert names(api.get(WIDGETS, fieldSelector="spec.color!=blue")) == ["a"]
    assert api.call("GET", WIDGETS, fieldSelector="spec.port=1")[0] == 400


def test_tables(api: Api) -> None:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Hosts", "type": "string", "jsonPath": ".spec.hosts[*].name", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    api.create(DEFINITIONS, definition(version(additionalPrinterColumns=columns)))
    api.create(WIDGETS, widget(hosts=[{"name": "h"}]))
    assert rows(api) == [["a", 1, None, "h", "0s"]]
    api.patch(f"{A}/status", {"status": {"conditions": [{"type": "X"}, {"type": "Ready", "status": "True"}]}})
    assert rows(api) == [["a", 1, "True", "h", "0s"]]
    _, body = api.raw("GET", WIDGETS, headers={"Accept": TABLE})
    assert b'"priority":1' in body


def rows(api: Api) -> list[list[Any]]:
    code, body = api.raw("GET", WIDGETS, headers={"Accept": TABLE})
    assert code == 200
    return [row["cells"] for row in json.loads(body)["rows"]]


def test_versions_without_a_webhook(api: Api) -> None:
    fewer: Obj = {"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}}}
    api.create(DEFINITIONS, definition(version("v2"), version("v1", spec=fewer, storage=False)))
    old, new = A, A.replace("v1", "v2")
    made = api.create(WIDGETS, widget(size=-1, hosts=[{"name": "h"}]))
    assert (made["apiVersion"], made["spec"]) == ("example.com/v1", {"size": -1, "color": "red"})
    assert (api.get(new)["apiVersion"], api.get(new)["spec"]) == ("example.com/v2", {"size": -1, "color": "red"})
    assert api.call("PATCH", new, {"spec": {"color": "blue"}}, MERGE)[0] == 422
    changed = api.patch(new, {"spec": {"size": 2, "hosts": [{"name": "h"}]}})
    assert (changed["apiVersion"], changed["metadata"]["generation"]) == ("example.com/v2", 2)
    assert "hosts" not in api.get(old)["spec"]
    assert api.get(WIDGETS)["items"][0]["apiVersion"] == "example.com/v1"
    stream = api.watch(WIDGETS)
    assert stream.next()["object"]["apiVersion"] == "example.com/v1"
    assert api.patch(old, {"spec": {"size": 3}})["apiVersion"] == "example.com/v1"
    assert stream.next()["object"]["apiVersion"] == "example.com/v1"


def test_a_version_that_is_stored_and_not_served(api: Api) -> None:
    api.create(DEFINITIONS, definition(version("v2", served=False), version("v1", storage=False)))
    assert api.create(WIDGETS, widget())["apiVersion"] == "example.com/v1"
    assert api.call("GET", A.replace("v1", "v2"))[0] == 404


def test_cluster_scope(api: Api) -> None:
    api.create(DEFINITIONS, definition(scope="Cluster"))
    path = "/apis/example.com/v1/widgets"
    made = api.create(path, {**widget(), "metadata": {"name": "a", "namespace": "default"}})
    assert "namespace" not in made["metadata"]
    assert api.call("GET", WIDGETS)[0] == 404
    assert names(api.get(path)) == ["a"]


def test_lists_that_are_sets_or_maps(api: Api) -> None:
    lists: Obj = {
        "type": "object",
        "properties": {
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "ports": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}},
            },
        },
    }
    api.create(DEFINITIONS, definition(version(spec=lists, subresources={})))
    ports = [{"name": "a", "port": 1}, {"name": "a", "port": 2}]
    code, status = api.call("POST", WIDGETS, {**widget(), "spec": {"tags": ["a", "b", "a"], "ports": ports}})
    causes = {cause["field"]: cause["message"] for cause in status["details"]["causes"]}
    assert causes == {
        "spec.tags[2]": 'Duplicate value: "a"',
        "spec.ports[1]": 'Duplicate value: {"name":"a"}',
    }
    assert code == 422


def test_owners_and_namespaces(widgets: Api) -> None:
    owner = widgets.create(WIDGETS, widget())
    ref = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": owner["metadata"]["uid"]}
    child = pod("p")
    child["metadata"]["ownerReferences"] = [ref]
    widgets.create(PODS, child)
    grandchild = widget("b")
    grandchild["metadata"]["ownerReferences"] = [ref]
    widgets.create(WIDGETS, grandchild)
    widgets.delete(A, propagationPolicy="Foreground")
    for path in (f"{PODS}/p", f"{WIDGETS}/b", A):
        assert any(widgets.call("GET", path)[0] == 404 for _ in range(500)), path
    widgets.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    widgets.create("/apis/example.com/v1/namespaces/n/widgets", widget())
    widgets.delete("/api/v1/namespaces/n")
    assert any(widgets.call("GET", "/api/v1/namespaces/n")[0] == 404 for _ in range(500))
    assert widgets.get("/apis/example.com/v1/widgets")["items"] == []


def test_quota_counts_them(widgets: Api) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/widgets.example.com": "1"}}}
    widgets.create("/api/v1/namespaces/default/resourcequotas", quota)
    widgets.create(WIDGETS, widget("a"))
    code, status = widgets.call("POST", WIDGETS, widget("b"))
    assert (code, "exceeded quota" in status["message"]) == (403, True)


def test_dry_run_stores_nothing(widgets: Api) -> None:
    assert widgets.create(WIDGETS, widget(junk=1), dryRun="All")["spec"] == {"size": 1, "color": "red"}
    assert widgets.get(WIDGETS)["items"] == []


def test_strict_field_validation(widgets: Api) -> None:
    code, status = widgets.call(
        "POST", WIDGETS, widget(junk=1, hosts=[{"name": "h", "z": 1}]), fieldValidation="Strict"
    )
    assert (code, status["reason"]) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.junk", unknown field "spec.hosts[0].z"' in status["message"]
    widgets.create(WIDGETS, widget(junk=1), fieldValidation="Warn")
    assert widgets.call("PATCH", A, {"spec": {"junk": 2}}, MERGE, fieldValidation="Strict")[0] == 400
    assert widgets.call("PATCH", A, {}, MERGE, fieldValidation="Some")[0] == 422


def test_the_schema_document(widgets: Api) -> None:
    listed = widgets.get("/openapi/v3")["paths"]
    assert list(listed) == ["apis/example.com/v1"]
    document = widgets.get(listed["apis/example.com/v1"]["serverRelativeURL"])
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Widget"}]
    assert schema["properties"]["spec"]["properties"]["color"]["default"] == "red"
    widgets.delete(f"{DEFINITIONS}/widgets.example.com")
    assert any(widgets.get("/openapi/v3") == {"paths": {}} for _ in range(500))
