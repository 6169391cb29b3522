"""CustomResourceDefinitions and custom resources, as kubectl meets them on upstream's server and on the embedded one.

After upstream's staging/src/k8s.io/apiextensions-apiserver/test/integration (validation_test.go, pruning_test.go,
defaulting_test.go, subresources_test.go, table_test.go, versioning_test.go, finalization_test.go).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.acceptance.stages import Stage
from tests.e2e.e2e_kubectl import Kubectl, until

pytestmark = [pytest.mark.kubectl]

Obj = dict[str, Any]
GROUP = "acceptance.oarlock.io"
NAME = f"widgets.{GROUP}"
SELECTABLE_SINCE = (1, 31)
SOUND_SINCE = (1, 24)
"""Of servers that are built here: since then Kubernetes brings a reflect2 that knows Go 1.18."""

SPEC: Obj = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 9},
        "step": {"type": "number", "multipleOf": 2},
        "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
        "code": {"type": "string", "minLength": 2, "pattern": "^[a-z]*$"},
        "when": {"type": "string", "format": "date-time"},
        "hosts": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}, "weight": {"type": "integer", "default": 1}}}},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
        "port": {"x-kubernetes-int-or-string": True},
        "maybe": {"type": "string", "nullable": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "either": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    },
}  # fmt: skip
STATUS: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
COLUMNS: list[Obj] = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "First", "type": "string", "jsonPath": ".spec.hosts[0].name"},
    {"name": "Free", "type": "string", "jsonPath": ".spec.free", "priority": 1},
]


def version(name: str = "v1", *, storage: bool = True, **changes: Any) -> Obj:
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "additionalPrinterColumns": COLUMNS,
        **changes,
    }


def definition(*versions: Obj, **spec: Any) -> Obj:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["awd"]},
            "versions": list(versions) or [version(), version("v1beta1", storage=False)],
            **spec,
        },
    }


def widget(name: str = "a", /, api: str = "v1", **spec: Any) -> Obj:
    return {"apiVersion": f"{GROUP}/{api}", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1, **spec}}


def create(kubectl: Kubectl, obj: Obj, code: int = 0) -> str:
    return kubectl.run("create", "--validate=false", "-f", "-", stdin=yaml.safe_dump(obj), code=code)


def establish(kubectl: Kubectl, made: Obj) -> None:
    create(kubectl, made)
    name = made["metadata"]["name"]
    kubectl.run("wait", "--for=condition=Established", f"crd/{name}", "--timeout=60s")
    kind = made["spec"]["names"]["plural"] + "." + made["spec"]["group"]
    until(lambda: kind in kubectl.run("api-resources", "-o", "name"), 30, f"{kind} is served")


@pytest.fixture(scope="module")
def served(everywhere: Kubectl) -> Iterator[None]:
    establish(everywhere, definition())
    yield
    everywhere.run("delete", "crd", NAME)


@pytest.fixture
def keeps_objects(cluster: Stage) -> None:
    """Skip where the server ends at the first custom resource."""
    if cluster.server is not None and cluster.version < SOUND_SINCE:
        # Built by Go 1.19, its github.com/modern-go/reflect2 1.0.1 walks maps as Go had them before 1.18: a SIGSEGV in
        # json-iterator as soon as it encodes an object without a Go type.
        pytest.skip("kube-apiserver 1.20.2 of a Go since 1.18 ends at the first custom resource")


@pytest.fixture
def widgets(keeps_objects: None, served: None, kubectl: Kubectl) -> Kubectl:
    return kubectl


def spec_of(kubectl: Kubectl, name: str = "a") -> Obj:
    return dict(kubectl.json("get", "widgets.v1." + GROUP, name)["spec"])


def test_accepted_names(served: None, everywhere: Kubectl) -> None:
    status = everywhere.json("get", "crd", NAME)["status"]
    assert {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]} == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["awd"],
    }
    group = json.loads(everywhere.run("get", "--raw", f"/apis/{GROUP}"))
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1"]


FORMED: list[tuple[Obj, Obj]] = [
    ({}, {}),
    ({"junk": 1}, {}),
    ({"color": "blue"}, {"color": "blue"}),
    ({"color": None}, {}),
    ({"free": {"a": {"b": [1]}}}, {"free": {"a": {"b": [1]}}}),
    ({"hosts": [{"name": "h", "junk": 1}]}, {"hosts": [{"name": "h", "weight": 1}]}),
    ({"labels": {"a": 1, "b": 2}}, {"labels": {"a": 1, "b": 2}}),
    ({"port": "http"}, {"port": "http"}),
    ({"port": 80}, {"port": 80}),
    ({"maybe": None}, {"maybe": None}),
]


@pytest.mark.parametrize(("given", "kept"), FORMED)
def test_form(widgets: Kubectl, given: Obj, kept: Obj) -> None:
    create(widgets, widget(**given))
    assert spec_of(widgets) == {"size": 1, "color": "red", **kept}


REFUSED: list[tuple[Obj, str]] = [
    ({"size": -1}, "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0"),
    ({"size": 10}, "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9"),
    ({"size": "x"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
    ({"step": 3}, "spec.step in body should be a multiple of 2"),
    ({"color": "x"}, 'spec.color: Unsupported value: "x": supported values: "red", "blue"'),
    ({"code": "a"}, "spec.code in body should be at least 2 chars long"),
    ({"code": "AB"}, "spec.code: Invalid value: \"AB\": spec.code in body should match '^[a-z]*$'"),
    ({"when": "now"}, 'spec.when: Invalid value: "now": spec.when in body must be of type date-time: "now"'),
    ({"hosts": []}, "spec.hosts in body should have at least 1 items"),
    ({"hosts": [{}]}, "name: Required value"),
    ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
    ({"labels": {"a": "b"}}, 'spec.labels.a in body must be of type integer: "string"'),
    ({"port": [1]}, 'spec.port in body must be of type integer,string: "array"'),
    ({"either": {}}, "must validate one and only one schema (oneOf)"),
    ({"either": {"a": "x", "b": "y"}}, "must validate one and only one schema (oneOf)"),
]


@pytest.mark.parametrize(("given", "told"), REFUSED)
def test_refused(widgets: Kubectl, given: Obj, told: str) -> None:
    said = create(widgets, widget(**given), code=1)
    assert 'The Widget "a" is invalid' in said
    assert told in said


def test_a_missing_field(widgets: Kubectl) -> None:
    bare = widget()
    del bare["spec"]["size"]
    assert 'The Widget "a" is invalid: spec.size: Required value' in create(widgets, bare, code=1)


def test_generations_and_status(widgets: Kubectl) -> None:
    create(widgets, {**widget(), "status": {"size": 9}})

    def seen() -> tuple[Any, ...]:
        obj = widgets.json("get", "awd", "a")
        return obj["metadata"]["generation"], obj["spec"]["size"], obj.get("status")

    assert seen() == (1, 1, None)
    widgets.run("label", "awd", "a", "x=y")
    assert seen() == (1, 1, None)
    widgets.run("patch", "awd", "a", "--type=merge", "-p", '{"spec":{"size":2},"status":{"size":5}}')
    assert seen() == (2, 2, None)
    both = '{"spec":{"size":7},"status":{"size":2},"metadata":{"labels":{"x":"z"}}}'
    widgets.run("patch", "awd", "a", "--subresource=status", "--type=merge", "-p", both)
    assert seen() == (2, 2, {"size": 2})
    assert widgets.json("get", "awd", "a")["metadata"]["labels"] == {"x": "y"}


def test_scale(widgets: Kubectl) -> None:
    create(widgets, widget(size=3))
    path = f"/apis/{GROUP}/v1/namespaces/{widgets.namespace}/widgets/a/scale"
    scale = json.loads(widgets.run("get", "--raw", path))
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 0)
    widgets.run("scale", "awd/a", "--replicas=5")
    assert spec_of(widgets) == {"size": 5, "color": "red"}
    assert "spec.size" in widgets.run("scale", "awd/a", "--replicas=10", code=1)


def test_patches(widgets: Kubectl) -> None:
    create(widgets, widget(hosts=[{"name": "a"}, {"name": "b"}]))
    widgets.run("patch", "awd", "a", "--type=merge", "-p", '{"spec":{"hosts":[{"name":"c"}],"color":null}}')
    assert spec_of(widgets) == {"size": 1, "color": "red", "hosts": [{"name": "c", "weight": 1}]}
    added = '[{"op":"add","path":"/spec/hosts/-","value":{"name":"d","junk":1}},{"op":"remove","path":"/spec/color"}]'
    widgets.run("patch", "awd", "a", "--type=json", "-p", added)
    assert [each["name"] for each in spec_of(widgets)["hosts"]] == ["c", "d"]
    told = widgets.run("patch", "awd", "a", "--type=strategic", "-p", '{"spec":{"size":2}}', code=1)
    assert "application/strategic-merge-patch+json is not supported" in told


def test_apply_and_collections(widgets: Kubectl) -> None:
    for size in (1, 2):
        stdin = yaml.safe_dump_all([widget("a", size=size), widget("b", size=size)])
        widgets.run("apply", "--validate=false", "-f", "-", stdin=stdin)
    assert [each["spec"]["size"] for each in widgets.items("awd")] == [2, 2]
    widgets.run("delete", "awd", "--all")
    assert widgets.items("awd") == []


def test_columns(widgets: Kubectl) -> None:
    create(widgets, widget(hosts=[{"name": "h"}], free={"x": 1}))
    header, row = widgets.run("get", "awd").splitlines()
    assert (header.split(), row.split()) == (["NAME", "SIZE", "READY", "FIRST"], ["a", "1", "h"])
    ready = '{"status":{"conditions":[{"type":"X"},{"type":"Ready","status":"True"}]}}'
    widgets.run("patch", "awd", "a", "--subresource=status", "--type=merge", "-p", ready)
    assert widgets.run("get", "awd", "-o", "wide", "--no-headers").split() == ["a", "1", "True", "h", '{"x":1}']


def test_versions(widgets: Kubectl) -> None:
    create(widgets, widget(api="v1beta1", size=4))
    assert widgets.json("get", f"widgets.v1.{GROUP}", "a")["apiVersion"] == f"{GROUP}/v1"
    assert widgets.json("get", f"widgets.v1beta1.{GROUP}", "a")["apiVersion"] == f"{GROUP}/v1beta1"
    widgets.run("patch", f"widgets.v1beta1.{GROUP}", "a", "--type=merge", "-p", '{"spec":{"size":5}}')
    old = widgets.json("get", f"widgets.v1beta1.{GROUP}", "a")
    assert (old["spec"]["size"], old["metadata"]["generation"]) == (5, 2)


def test_field_selectors(widgets: Kubectl) -> None:
    create(widgets, widget("a"))
    create(widgets, widget("b"))
    assert [each["metadata"]["name"] for each in widgets.items("awd", "--field-selector=metadata.name=b")] == ["b"]
    assert "field label not supported: spec.color" in widgets.run("get", "awd", "--field-selector=spec.color=b", code=1)


def test_selectable_fields(kubectl: Kubectl, everywhere: Kubectl, cluster: Stage) -> None:
    if cluster.version < SELECTABLE_SINCE:
        pytest.skip("a server of this version drops selectableFields: 1.31 keeps them")
    names = {"plural": "choices", "kind": "Choice"}
    made = definition(version(selectableFields=[{"jsonPath": ".spec.color"}]), names=names)
    made["metadata"]["name"] = f"choices.{GROUP}"
    establish(everywhere, made)
    try:
        for name, color in (("a", "red"), ("b", "blue")):
            create(kubectl, {**widget(name, color=color), "kind": "Choice"})
        found = kubectl.items("choices", "--field-selector=spec.color=blue")
        assert [each["metadata"]["name"] for each in found] == ["b"]
    finally:
        everywhere.run("delete", "crd", f"choices.{GROUP}")


def test_owners(widgets: Kubectl) -> None:
    create(widgets, widget())
    uid = widgets.json("get", "awd", "a")["metadata"]["uid"]
    owner = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "name": "a", "uid": uid}
    meta = {"name": "child", "ownerReferences": [owner]}
    create(widgets, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    widgets.run("delete", "awd", "a")
    named = "--field-selector=metadata.name=child"
    until(lambda: not widgets.items("configmaps", named), 60, "the collector took the child")


def change(path: str, value: Any) -> Obj:
    """The definition with `value` at a path of fields and positions; None takes it out."""
    made = copy.deepcopy(definition(version(), names={"plural": "gadgets", "kind": "Gadget"}))
    made["metadata"]["name"] = f"gadgets.{GROUP}"
    at: Any = made
    *way, last = path.split("/")
    for part in way:
        at = at[int(part)] if part.isdigit() else at[part]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return made


SCHEMA = "spec/versions/0/schema/openAPIV3Schema"
FIELD = f"{SCHEMA}/properties/spec/properties/size"
WHERE = "spec.validation.openAPIV3Schema.properties[spec].properties[size]"
"""What all versions have alike, upstream's errors call a part of the spec."""
BAD: list[tuple[str, Any, str]] = [
    ("metadata/name", "x.y", 'metadata.name: Invalid value: "x.y": must be spec.names.plural+"."+spec.group'),
    ("spec/scope", "Any", "spec.scope"),
    ("spec/names/kind", None, "spec.names.kind: Required value"),
    ("spec/names/plural", "Gadgets", "spec.names.plural: Invalid value"),
    ("spec/versions/0/storage", False, "must have exactly one version marked as storage version"),
    ("spec/versions", [version(), version(storage=False)], "must contain unique version names"),
    (
        "spec/versions",
        [version(schema={"openAPIV3Schema": {"type": "array"}}), version("v2", storage=False)],
        "spec.versions[0].schema.openAPIV3Schema.type: Invalid value",
    ),
    ("spec/versions/0/schema", None, "schemas are required"),
    ("spec/preserveUnknownFields", True, "spec.preserveUnknownFields: Invalid value: true"),
    (f"{SCHEMA}/type", None, "openAPIV3Schema.type: Required value: must not be empty at the root"),
    (f"{FIELD}/type", None, f"{WHERE}.type: Required value: must not be empty for specified object fields"),
    (FIELD, {"type": "array"}, f"{WHERE}.items: Required value: must be specified"),
    (FIELD, {"type": "text"}, f"{WHERE}.type"),
    (f"{FIELD}/default", "x", f"{WHERE}.default: Invalid value"),
    (f"{FIELD}/uniqueItems", True, f"{WHERE}.uniqueItems: Forbidden"),
    (f"{FIELD}/anyOf", [{"type": "integer"}], f"{WHERE}.anyOf[0].type: Forbidden: must be empty to be structural"),
    (
        FIELD,
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
        f"{WHERE}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
    ),
    ("spec/versions/0/subresources/scale/specReplicasPath", ".size", "scale.specReplicasPath: Invalid value"),
    ("spec/versions/0/additionalPrinterColumns/0/type", "text", "additionalPrinterColumns[0].type"),
    ("spec/versions/0/additionalPrinterColumns/0/jsonPath", "spec", "additionalPrinterColumns[0].JSONPath"),
]


@pytest.mark.parametrize(("path", "value", "told"), BAD)
def test_bad_definitions(everywhere: Kubectl, path: str, value: Any, told: str) -> None:
    assert told in create(everywhere, change(path, value), code=1)


def test_deletion_removes_the_objects(keeps_objects: None, kubectl: Kubectl, everywhere: Kubectl) -> None:
    made = change("spec/scope", "Namespaced")
    establish(everywhere, made)
    create(kubectl, {**widget(), "kind": "Gadget"})
    everywhere.run("delete", "crd", f"gadgets.{GROUP}")
    establish(everywhere, made)
    assert kubectl.items("gadgets") == []
    everywhere.run("delete", "crd", f"gadgets.{GROUP}")
