"""Definitions: accepted, served, discovered, refused, changed, deleted with their objects."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.sandbox.api_harness import MERGE, Api
from tests.sandbox.apiserver.custom.definitions import (
    DEFINITIONS,
    NAME,
    SPEC,
    WIDGETS,
    Obj,
    definition,
    version,
    widget,
)


def conditions(api: Api, name: str = NAME) -> dict[str, tuple[str, str]]:
    status = api.get(f"{DEFINITIONS}/{name}")["status"]
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def gone(api: Api, path: str) -> None:
    assert any(api.call("GET", path)[0] == 404 for _ in range(500)), f"{path} is still there"


def test_names_are_accepted_and_the_kind_is_served_at_once(api: Api) -> None:
    made = api.create(DEFINITIONS, definition())
    assert made["spec"]["names"]["singular"] == "widget"
    assert made["spec"]["names"]["listKind"] == "WidgetList"
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert api.create(WIDGETS, widget())["metadata"]["generation"] == 1
    assert conditions(api) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    status = api.get(f"{DEFINITIONS}/{NAME}")["status"]
    assert status["acceptedNames"] == made["spec"]["names"]
    assert status["storedVersions"] == ["v1"]


def test_discovery_follows(api: Api) -> None:
    assert "example.com" not in {group["name"] for group in api.get("/apis")["groups"]}
    old = version("v1beta1", storage=False, subresources={})
    api.create(DEFINITIONS, definition(version(), old, version("v1alpha1", storage=False, served=False)))
    group = next(group for group in api.get("/apis")["groups"] if group["name"] == "example.com")
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1"
    assert api.get("/apis/example.com")["name"] == "example.com"
    resources = {each["name"]: each for each in api.get("/apis/example.com/v1")["resources"]}
    assert set(resources) == {"widgets", "widgets/status", "widgets/scale"}
    assert resources["widgets"]["kind"] == "Widget"
    assert resources["widgets"]["shortNames"] == ["wd"]
    assert resources["widgets"]["categories"] == ["all"]
    assert [each["name"] for each in api.get("/apis/example.com/v1beta1")["resources"]] == ["widgets"]
    assert api.call("GET", "/apis/example.com/v1alpha1")[0] == 404
    api.delete(f"{DEFINITIONS}/{NAME}")
    gone(api, "/apis/example.com")


def test_a_name_that_is_taken(api: Api) -> None:
    api.create(DEFINITIONS, definition())
    other = definition(names={"plural": "gadgets", "kind": "Gadget", "shortNames": ["wd"]})
    other["metadata"]["name"] = "gadgets.example.com"
    api.create(DEFINITIONS, other)
    assert conditions(api, "gadgets.example.com") == {
        "NamesAccepted": ("False", "ShortNamesConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert api.call("GET", "/apis/example.com/v1/gadgets")[0] == 404
    api.delete(f"{DEFINITIONS}/{NAME}")
    gone(api, f"{DEFINITIONS}/{NAME}")
    assert conditions(api, "gadgets.example.com")["Established"] == ("True", "InitialNamesAccepted")
    assert api.get("/apis/example.com/v1/gadgets")["items"] == []


def test_the_same_kind_in_two_groups_is_two_kinds(api: Api) -> None:
    other = definition(group="other.org")
    other["metadata"]["name"] = "widgets.other.org"
    api.create(DEFINITIONS, definition())
    api.create(DEFINITIONS, other)
    api.create(WIDGETS, widget("a"))
    elsewhere = WIDGETS.replace("example.com", "other.org")
    api.create(elsewhere, {**widget("b"), "apiVersion": "other.org/v1"})
    assert [each["metadata"]["name"] for each in api.get(elsewhere)["items"]] == ["b"]
    assert [each["metadata"]["name"] for each in api.get(WIDGETS)["items"]] == ["a"]


def test_a_kind_named_as_a_built_in_one(api: Api) -> None:
    """Knative has Services of its own."""
    made = definition(group="k.dev", names={"plural": "services", "kind": "Service"})
    made["metadata"]["name"] = "services.k.dev"
    api.create(DEFINITIONS, made)
    obj = {**widget(), "apiVersion": "k.dev/v1", "kind": "Service"}
    path = "/apis/k.dev/v1/namespaces/default/services"
    assert api.create(path, obj)["kind"] == "Service"
    assert api.get("/api/v1/services")["items"] == []
    code, status = api.call("POST", path, {**obj, "spec": {}})
    assert (code, status["details"]["group"]) == (422, "k.dev")


def bad(change: Any) -> Obj:
    made = definition()
    change(made["spec"])
    return made


def part(**changes: Any) -> Any:
    return lambda spec: spec.update(changes)


def of_version(**changes: Any) -> Any:
    return lambda spec: spec["versions"][0].update(changes)


def of_schema(root: Obj) -> Any:
    return of_version(schema={"openAPIV3Schema": root})


def of_field(field: Obj) -> Any:
    return of_schema({"type": "object", "properties": {"a": field}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (part(group="x"), 'metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+'),
        (part(group="x"), 'spec.group: Invalid value: "x": should be a domain with at least one dot'),
        (part(scope="Any"), 'spec.scope: Unsupported value: "Any": supported values: "Cluster", "Namespaced"'),
        (part(preserveUnknownFields=True), "spec.preserveUnknownFields: Invalid value: true"),
        (part(names={"plural": "widgets"}), "spec.names.kind: Required value"),
        (part(names={"plural": "widgets", "kind": "W", "listKind": "W"}), "kind and listKind may not be the same"),
        (part(versions=[]), "must have exactly one version marked as storage version"),
        (lambda spec: spec["versions"].append(version()), "must contain unique version names"),
        (of_version(name="V1"), 'spec.versions[0].name: Invalid value: "V1"'),
        (of_version(schema={}), "spec.validation.openAPIV3Schema: Required value: schemas are required"),
        (of_schema({}), "openAPIV3Schema.type: Required value: must not be empty at the root"),
        (of_schema({"type": "array", "items": {"type": "string"}}), '"array": must be object at the root'),
        (of_field({}), "properties[a].type: Required value: must not be empty for specified object fields"),
        (
            of_field({"type": "array", "items": {}}),
            "properties[a].items: Required value: must be specified",
        ),
        (of_field({"type": "strin"}), 'properties[a].type: Unsupported value: "strin"'),
        (of_field({"type": "object", "additionalProperties": False}), "additionalProperties cannot be set to false"),
        (
            of_field(
                {
                    "type": "object",
                    "properties": {"b": {"type": "string"}},
                    "additionalProperties": {"type": "string"},
                }
            ),
            "additionalProperties and properties are mutual exclusive",
        ),
        (of_field({"type": "array", "uniqueItems": True, "items": {"type": "string"}}), "uniqueItems cannot be set"),
        (of_field({"type": "string", "pattern": "("}), "spec.validation.openAPIV3Schema: Invalid value"),
        (of_field({"type": "integer", "default": "x"}), "properties[a].default: Invalid value"),
        (of_field({"type": "object", "default": {"b": 1}}), "default: Invalid value: {"),
        (of_field({"type": "string", "anyOf": [{"type": "string"}]}), "anyOf[0].type: Forbidden: must be empty to be"),
        (
            of_field({"type": "object", "anyOf": [{"properties": {"z": {"minimum": 1}}}]}),
            "properties[a].properties[z]: Required value: because it is defined in",
        ),
        (
            of_schema(
                {
                    "type": "object",
                    "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}},
                }
            ),
            "must not specify anything other than name and generateName",
        ),
        (
            of_field({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            of_version(subresources={"scale": {"specReplicasPath": ".size", "statusReplicasPath": ".status.a"}}),
            "scale.specReplicasPath: Invalid value",
        ),
        (
            of_version(additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".a"}]),
            'additionalPrinterColumns[0].type: Unsupported value: "text"',
        ),
        (
            of_version(additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": "..a"}]),
            "additionalPrinterColumns[0].JSONPath: Invalid value",
        ),
        (of_version(selectableFields=[{"jsonPath": ".metadata.name"}]), "must not point to fields in metadata"),
        (
            lambda spec: spec.update(
                conversion={"strategy": "Webhook"}, versions=[version(), version("v2", storage=False)]
            ),
            'spec.conversion.strategy: Unsupported value: "Webhook"',
        ),
    ],
)
def test_what_is_refused(api: Api, change: Any, message: str) -> None:
    code, status = api.call("POST", DEFINITIONS, bad(change))
    assert code == 422, status
    assert message in status["message"]
    assert api.get(DEFINITIONS)["items"] == []


@pytest.mark.parametrize(
    "field",
    [
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "string", "nullable": True, "x-kubernetes-validations": [{"rule": "self != ''"}]},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    ],
)
def test_what_is_structural(api: Api, field: Obj) -> None:
    api.create(DEFINITIONS, bad(of_field(field)))


def test_what_cannot_change(api: Api) -> None:
    made = api.create(DEFINITIONS, definition())
    code, status = api.call("PATCH", f"{DEFINITIONS}/{NAME}", {"spec": {"scope": "Cluster"}}, MERGE)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "spec.scope")
    moved = {"spec": {"versions": [version("v2")]}}
    code, status = api.call("PATCH", f"{DEFINITIONS}/{NAME}", moved, MERGE)
    assert code == 422
    assert "v1 was previously a storage version" in status["message"]
    assert made["metadata"]["generation"] == 1


def test_a_changed_schema_holds_for_old_and_new_objects(api: Api) -> None:
    api.create(DEFINITIONS, definition())
    api.create(WIDGETS, widget())
    grown = {**SPEC, "properties": {**SPEC["properties"], "level": {"type": "integer", "default": 5}}}
    api.patch(f"{DEFINITIONS}/{NAME}", {"spec": {"versions": [version(spec=grown)]}})
    assert api.get(f"{WIDGETS}/a")["spec"]["level"] == 5
    assert api.get(WIDGETS)["items"][0]["spec"]["level"] == 5
    assert api.patch(f"{WIDGETS}/a", {"spec": {"level": 6}})["spec"]["level"] == 6
    assert api.call("PATCH", f"{WIDGETS}/a", {"spec": {"level": "x"}}, MERGE)[0] == 422


def test_a_changed_definition_ends_its_watches(api: Api) -> None:
    api.create(DEFINITIONS, definition())
    api.create(WIDGETS, widget())
    stream = api.watch(WIDGETS)
    assert stream.next()["type"] == "ADDED"
    api.patch(f"{DEFINITIONS}/{NAME}", {"spec": {"names": {"shortNames": ["w", "wd"]}}})
    assert stream.ended()


def test_deletion_takes_the_objects_first(api: Api) -> None:
    api.create(DEFINITIONS, definition())
    held = widget()
    held["metadata"]["finalizers"] = ["x.io/y"]
    api.create(WIDGETS, held)
    api.create(WIDGETS, widget("b"))
    stream = api.watch(WIDGETS, resourceVersion=api.get(WIDGETS)["metadata"]["resourceVersion"])
    answer = api.delete(f"{DEFINITIONS}/{NAME}")
    assert answer["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions(api)["Terminating"] == ("True", "InstanceDeletionInProgress")
    gone(api, f"{WIDGETS}/b")
    code, status = api.call("POST", WIDGETS, widget("c"))
    assert code == 405
    assert status["message"] == "create not allowed while custom resource definition is terminating"
    assert api.get(f"{DEFINITIONS}/{NAME}")["metadata"]["deletionTimestamp"]
    api.patch(f"{WIDGETS}/a", {"metadata": {"finalizers": None}})
    gone(api, f"{DEFINITIONS}/{NAME}")
    assert api.call("GET", WIDGETS)[0] == 404
    assert stream.ended()
    api.create(DEFINITIONS, definition())
    assert api.get(WIDGETS)["items"] == []


def test_without_the_library_a_definition_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    code, status = api.call("POST", DEFINITIONS, definition())
    assert (code, "pip install 'oarlock[testing]'" in status["message"]) == (500, True)
    assert api.get(DEFINITIONS)["items"] == []
