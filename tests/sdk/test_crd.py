"""CustomResourceDefinitions of types: what stands in them, what is refused, and that the server takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import oarlock
from oarlock.sdk.types.crd import crd_of, crds_of, models_of
from oarlock.testing import Cluster, Refused
from tests.sdk import types_of_all_kinds
from tests.sdk.types_of_all_kinds import Thing

Obj = dict[str, Any]


class Spec(oarlock.Struct):
    size: int = 1
    name: str = ""
    tags: list[str] = []


class Status(oarlock.Struct):
    size: int = 0


def kind(api_version: str = "example.com/v1", /, **says: Any) -> type[oarlock.Object]:
    """A class Site, anew each time."""

    class Site(oarlock.Object):
        spec: Spec
        status: Status | None = None

    return oarlock.resource(api_version, **says)(Site)


def version_of(model: type[oarlock.Object]) -> Obj:
    (found,) = crd_of(model)["spec"]["versions"]
    return dict(found)


def test_the_whole_of_one() -> None:
    number = {"type": "integer", "format": "int64"}
    assert crd_of(kind(short_name="st")) == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites.example.com"},
        "spec": {
            "group": "example.com",
            "names": {
                "plural": "sites",
                "singular": "site",
                "kind": "Site",
                "listKind": "SiteList",
                "shortNames": ["st"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "required": ["spec"],
                            "properties": {
                                "apiVersion": {"type": "string"},
                                "kind": {"type": "string"},
                                "metadata": {"type": "object"},
                                "spec": {
                                    "type": "object",
                                    "properties": {
                                        "size": {**number, "default": 1},
                                        "name": {"type": "string", "default": ""},
                                        "tags": {"type": "array", "default": [], "items": {"type": "string"}},
                                    },
                                },
                                "status": {"type": "object", "nullable": True, "properties": {"size": number}},
                            },
                        }
                    },
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def test_texts_come_from_docstrings_and_below_fields() -> None:
    schema = version_of(Thing)["schema"]["openAPIV3Schema"]
    spec = schema["properties"]["spec"]["properties"]
    assert schema["description"] == "All that a schema can say. In two paragraphs."
    assert spec["image"]["description"] == "What runs."
    assert spec["tls"]["description"] == "How it is encrypted."
    assert "description" not in spec["size"]


def test_columns_have_types_and_an_age() -> None:
    columns = version_of(Thing)["additionalPrinterColumns"]
    assert [(each["name"], each["type"], each["jsonPath"]) for each in columns] == [
        ("Image", "string", ".spec.image"),
        ("Ready", "integer", ".status.ready"),
        ("Secret", "string", ".spec.tls.secretName"),
        ("Since", "date", ".spec.since"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]


def test_scope_scale_and_selectable_fields() -> None:
    version = version_of(Thing)
    assert version["selectableFields"] == [{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.public"}]
    assert version["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.ready",
        "labelSelectorPath": ".status.selector",
    }
    assert crd_of(kind(namespaced=False))["spec"]["scope"] == "Cluster"


def test_versions_of_a_kind_are_one_definition() -> None:
    (found,) = crds_of([kind("example.com/v1beta2"), kind("example.com/v1"), kind("example.com/v1alpha1")])
    told = [(each["name"], each["storage"]) for each in found["spec"]["versions"]]
    assert told == [("v1", True), ("v1beta2", False), ("v1alpha1", False)]


def test_models_of_a_file_are_those_of_its_controllers_and_those_beside_them() -> None:
    def here(obj: Any, children: oarlock.Children) -> oarlock.Result:
        return oarlock.Result()

    assert models_of([oarlock.desired(Thing)(here)]) == [Thing]
    assert models_of([oarlock.desired("v1 Pod")(here)]) == []  # what a module imports is another's
    here.__module__ = types_of_all_kinds.__name__
    assert models_of([oarlock.desired("v1 Pod")(here)]) == [Thing]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"columns": {"Size": "spec.sze"}}, "Site: the column 'Size': there is no field spec.sze"),
    ({"columns": {"Size": "status.size.x"}}, "Site: the column 'Size': there is no field status.size.x"),
    ({"selectable": ("spec.tags",)}, "Site: spec.tags: of the fields of spec and status, those with a text"),
    ({"selectable": ("metadata.name",)}, "Site: selectable: there is no field metadata.name"),
    ({"selectable": ("spec.name",) * 9}, "Site: more than 8 selectable fields"),
    ({"scale": ("spec.name", "status.size", "")}, "Site: scale: 'spec.name' has to be a whole number below spec"),
    ({"scale": ("status.size", "status.size", "")}, "Site: scale: 'status.size' has to be a whole number below spec"),
    ({"scale": ("spec.size", "status.size", "spec.size")}, "Site: scale: 'spec.size' has to be a text"),
]


@pytest.mark.parametrize(("says", "told"), BAD, ids=lambda each: str(each)[:50])
def test_what_is_said_beside_the_type_has_to_fit_it(says: dict[str, Any], told: str) -> None:
    with pytest.raises(oarlock.BadDefinition, match=f"^{told}"):
        crd_of(kind(**says))


def test_selectable_fields_are_a_list() -> None:
    with pytest.raises(oarlock.BadDefinition, match=r"selectable='spec\.name' has to be a list of paths"):
        oarlock.resource("example.com/v1", selectable="spec.name")  # type: ignore[arg-type]


NO_PLACES: list[tuple[str, dict[str, Any], str]] = [
    ("Example.com/v1", {}, r"resource\('Example.com/v1'\): a kind of one's own needs <group>/<version>"),
    ("example..com/v1", {}, "a kind of one's own needs <group>/<version>"),
    ("-a.example.com/v1", {}, "a kind of one's own needs <group>/<version>"),
    ("example.com/v1", {"short_name": "ST"}, "short_name='ST' has to be small letters, digits and dashes"),
    ("example.com/v1", {"short_name": ["st"]}, r"short_name=\['st'\] has to be small letters"),
    ("example.com/v1", {"columns": ["spec.size"]}, "columns= has to be a dict: heading -> path"),
    ("example.com/v1", {"plural": "Sites"}, "Site: plural='Sites' has to be small letters"),
]


@pytest.mark.parametrize(("api_version", "says", "told"), NO_PLACES, ids=lambda each: str(each)[:40])
def test_names_that_the_server_would_refuse(api_version: str, says: dict[str, Any], told: str) -> None:
    with pytest.raises(oarlock.BadDefinition, match=told):
        kind(api_version, **says)


def test_a_class_below_resource_without_parentheses() -> None:
    class Site(oarlock.Object):
        spec: Spec

    with pytest.raises(oarlock.BadDefinition, match=r'write @oarlock\.resource\("example\.com/v1"\) above Site'):
        oarlock.resource(Site)  # type: ignore[arg-type]


def test_a_status_needs_a_default() -> None:
    class Site(oarlock.Object):
        spec: Spec
        status: Status

    with pytest.raises(oarlock.BadDefinition, match="Site: status needs a default"):
        crd_of(oarlock.resource("example.com/v1")(Site))


def test_a_version_once() -> None:
    with pytest.raises(oarlock.BadDefinition, match="has its version v1 twice"):
        crds_of([kind(), kind()])
    with pytest.raises(oarlock.BadDefinition, match="differ in their kind or namespaced="):
        crds_of([kind(), kind("example.com/v2", namespaced=False)])


def test_a_class_without_a_place_in_the_api() -> None:
    class Site(oarlock.Object):
        spec: Spec

    with pytest.raises(oarlock.BadDefinition, match=r"Site: put @oarlock\.resource"):
        crd_of(Site)


# -- on the server ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def things() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.create(crd_of(Thing))
        yield cluster


def thing(name: str, **spec: Any) -> Obj:
    return {"apiVersion": "things.example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def test_the_server_keeps_defaults_and_drops_what_the_type_does_not_name(things: Cluster) -> None:
    made = things.create(thing("plain", image="nginx:1", junk=1, tls={"secretName": "a"}))
    assert made["spec"]["tls"] == {"secretName": "a", "port": 443}
    assert "junk" not in made["spec"]
    assert (made["spec"]["size"], made["spec"]["pair"], made["spec"]["limit"]) == ("small", [1, 2], "auto")


def test_all_forms_at_once(things: Cluster) -> None:
    spec: Obj = {
        "image": "nginx:1",
        "port": "http",
        "limit": 5,
        "probes": [{"type": "http", "path": "/"}, {"type": "tcp", "number": 80}],
        "tags": ["a", "b"],
        "labels": {"a": None, "b": "c"},
        "since": "2026-01-01T00:00:00Z",
        "free": {"a": [1, {"b": None}]},
        "mode": None,
        "tls": None,
    }
    kept = things.create(thing("full", **spec))["spec"]
    assert {name: kept.get(name) for name in spec} == spec


REFUSED: list[tuple[Obj, str]] = [
    ({}, "spec.image"),
    ({"image": 1}, "spec.image"),
    ({"image": "a", "size": "huge"}, "spec.size"),
    ({"image": "a", "replicas": 100}, "spec.replicas"),
    ({"image": "a", "limit": "never"}, "spec.limit"),
    ({"image": "a", "port": -1}, "spec.port"),
    ({"image": "a", "tls": {"secretName": "A"}}, "spec.tls.secretName"),
    ({"image": "a", "probes": [{"type": "tcp"}]}, "spec.probes[0]"),
    ({"image": "a", "probes": [{"type": "udp"}]}, "spec.probes[0]"),
    ({"image": "a", "probes": [{"path": "/"}]}, "spec.probes[0].type"),
    ({"image": "a", "tags": ["a", "a"]}, "spec.tags[1]"),
    ({"image": "a", "weights": {"a": 3}}, "spec.weights.a"),
    ({"image": "a", "since": "yesterday"}, "spec.since"),
    ({"image": "a", "pair": [1]}, "spec.pair"),
]


@pytest.mark.parametrize(("spec", "where"), REFUSED, ids=str)
def test_what_the_server_refuses(things: Cluster, spec: Obj, where: str) -> None:
    with pytest.raises(Refused) as caught:
        things.create(thing("refused", **spec))
    assert caught.value.code == 422
    assert where in str(caught.value)


def test_a_type_of_pydantic(things: Cluster) -> None:
    pytest.importorskip("pydantic")
    from tests.sdk.pydantic_site import PydanticSite

    things.create(crd_of(PydanticSite))
    site: Obj = {"apiVersion": "pydantic.example.com/v1", "kind": "PydanticSite", "metadata": {"name": "a"}}
    kept = things.create({**site, "spec": {"image": "a", "probe": {"type": "http"}}})["spec"]
    assert kept == {"image": "a", "replicaCount": 1, "probe": {"type": "http"}, "tags": []}
    with pytest.raises(Refused, match=r"spec\.replicaCount"):
        things.create({**site, "metadata": {"name": "b"}, "spec": {"image": "a", "replicaCount": -1}})
