"""Which fields are cached: those that a type names, or those asked for, if they will do."""

from __future__ import annotations

from typing import Any

import pytest

import oarlock
from oarlock.controllers.objects.field_paths import IDENTITY, projected, tree
from oarlock.sdk.types.fields import paths_of
from oarlock.sdk.types.typed import Typed
from tests.sdk.types_of_all_kinds import Thing


class Rule(oarlock.Struct):
    host: str
    paths: dict[str, int] = {}


class Spec(oarlock.Struct):
    image: str
    rules: list[Rule] = []
    note: str = ""


@oarlock.resource("example.com/v1")
class Site(oarlock.Object):
    spec: Spec
    status: dict[str, Any] = {}


def controller(kind: Any, **says: Any) -> oarlock.Definition:
    return oarlock.desired(kind, name="site", **says)(lambda obj, children: oarlock.Result())


def test_the_fields_of_a_type() -> None:
    assert paths_of(Site) == (
        "metadata.annotations",
        "spec.image",
        "spec.rules.host",
        "spec.rules.paths",
        "spec.note",
        "status",
    )


def test_the_type_still_fits_its_projection() -> None:
    spec = {"image": "a", "rules": [{"host": "b", "junk": 1}], "junk": {"a": 1}}
    obj = {"kind": "Site", "metadata": {"name": "a", "managedFields": []}, "spec": spec, "other": 1}
    kept = projected(obj, tree((*IDENTITY, *paths_of(Site))))
    assert kept == {"kind": "Site", "metadata": {"name": "a"}, "spec": {"image": "a", "rules": [{"host": "b"}]}}
    assert Typed(Site).from_json(kept) == Typed(Site).from_json(obj)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Site, ["spec.image"]),
        (Site, ["spec"]),
        (Site, ["spec.image", "spec.rules.host"]),
        (Site, ["spec.image", "status.anything.at.all", "metadata.annotations[a.b/c]"]),
        (Thing, ["spec.image", "spec.tls.secretName", "spec.labels[a.b/c]"]),
        ("v1 Pod", ["whatever.it[is]"]),
    ],
    ids=str,
)
def test_fields_that_will_do(kind: Any, fields: list[str]) -> None:
    assert controller(kind, fields=fields).fields == tuple(fields)


@pytest.mark.parametrize(
    ("kind", "fields", "told"),
    [
        (Site, ["spec.imge"], "site: fields: Site has no field spec.imge"),
        (Site, ["spec.note"], "site: fields leave out spec.image, which Site requires; add it to them"),
        (Site, ["metadata.labels"], "site: fields leave out spec, which Site requires"),
        (Site, ["spec.image", "spec.rules.paths"], "site: fields leave out spec.rules.host, which Site requires"),
        ("v1 Pod", [".spec"], "site: fields: '.spec' is no path to a field"),
    ],
    ids=str,
)
def test_fields_that_will_not(kind: Any, fields: list[str], told: str) -> None:
    with pytest.raises(oarlock.BadDefinition) as caught:
        controller(kind, fields=fields)
    assert str(caught.value).startswith(told)


def test_fields_of_watches_are_paths_too() -> None:
    watch = oarlock.watch("v1 Secret", names=lambda site: [], fields=["data..x"])
    with pytest.raises(oarlock.BadDefinition, match="is no path to a field"):
        controller(Site, watches=[watch])
