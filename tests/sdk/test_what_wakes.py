"""Which changes wake a controller: the table of docs/sdk.md, row by row, against what an ingestor would cache."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import oarlock
from oarlock.controllers.entries import Watched
from oarlock.controllers.objects.whole import Whole
from oarlock.sdk.entries import entries_of
from tests import ROOT

Obj = dict[str, Any]


class Spec(oarlock.Struct):
    image: str = ""


@oarlock.resource("example.com/v1")
class Site(oarlock.Object):
    spec: Spec


SITE = Site.kind


def function(obj: Any, children: oarlock.Children) -> oarlock.Result:
    return oarlock.Result()


def nobody(obj: Any) -> list[str]:
    return []


def watched_by(kind: Any, **options: Any) -> oarlock.Definition:
    return oarlock.desired(kind, name="site", **options)(function)


USES: dict[str, list[oarlock.Definition]] = {
    "cached whole": [watched_by(SITE)],
    "its own, by a type": [watched_by(Site)],
    "its own, by `fields=`": [watched_by(SITE, fields=["spec.image"])],
    "watched, by `fields=`": [
        watched_by("v1 Secret", watches=[oarlock.watch(SITE, wakes=nobody, fields=["spec.image"])])
    ],
}
WHOLE_TOO = {
    "a child": watched_by("v1 Secret", children=[SITE]),
    "watched without fields": watched_by("v1 Secret", watches=[oarlock.watch(SITE, wakes=nobody)]),
}


def cached(definitions: list[oarlock.Definition], obj: Obj) -> Whole:
    (site,) = (each for each in entries_of(definitions) if isinstance(each, Watched) and each.kind == "Site")
    found: Whole = site.from_json(json.dumps(obj).encode())[1]
    return found


def site(**meta: Any) -> Obj:
    meta = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 1, **meta}
    spec = {"image": "nginx:1", "junk": 1}
    return {"apiVersion": "example.com/v1", "kind": "Site", "metadata": meta, "spec": spec, "status": {"ready": 1}}


OWNER = {"apiVersion": "v1", "kind": "Secret", "name": "a", "uid": "o"}
CHANGES: dict[str, Callable[[], Obj]] = {
    "a field that is named": lambda: {**site(), "spec": {"image": "nginx:2", "junk": 1}},
    "another field": lambda: {**site(), "spec": {"image": "nginx:1", "junk": 2}},
    "another field, with the generation": lambda: {**site(generation=2), "spec": {"image": "nginx:1", "junk": 2}},
    "status": lambda: {**site(), "status": {"ready": 2}},
    "annotations": lambda: site(annotations={"a": "b"}),
    "labels": lambda: site(labels={"a": "b"}),
    "finalizers": lambda: site(finalizers=["example.com/a"]),
    "ownerReferences": lambda: site(ownerReferences=[OWNER]),
    "deletionTimestamp": lambda: site(deletionTimestamp="2026-01-05T08:00:00Z"),
    "resourceVersion and managedFields": lambda: site(resourceVersion="8", managedFields=[{"manager": "x"}]),
}
PAGE = (ROOT / "docs" / "sdk.md").read_text()


def table() -> dict[str, dict[str, str]]:
    """What the page says: by change and use."""
    text = PAGE[PAGE.index("| what changes |") :].partition("\n\n")[0]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_the_page_has_every_change_and_every_use() -> None:
    assert {change: list(said) for change, said in table().items()} == {each: list(USES) for each in CHANGES}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("change", CHANGES)
def test_what_the_page_says(change: str, use: str) -> None:
    wakes = cached(USES[use], CHANGES[change]()) != cached(USES[use], site())
    assert table()[change][use] == ("yes" if wakes else "no")


@pytest.mark.parametrize("change", CHANGES)
def test_children_and_what_is_watched_without_fields_are_cached_whole(change: str) -> None:
    for definition in WHOLE_TOO.values():
        assert cached([definition], CHANGES[change]()) == cached(USES["cached whole"], CHANGES[change]())


def test_a_kind_that_two_controllers_use_is_cached_with_the_fields_of_both() -> None:
    by_image = watched_by(SITE, fields=["spec.image"])
    by_junk = oarlock.desired("v1 Secret", name="b", watches=[oarlock.watch(SITE, wakes=nobody, fields=["spec.junk"])])
    obj = {**site(), "spec": {"image": "a", "junk": 1, "more": 2}}
    assert json.loads(cached([by_image, by_junk(function)], obj).body)["spec"] == {"image": "a", "junk": 1}


def test_each_projection_that_differs_wakes_all_whose_keys_they_are() -> None:
    both = [watched_by(SITE), oarlock.desired(SITE, name="other")(function)]
    (watched,) = (each for each in entries_of(both) if isinstance(each, Watched))
    assert watched.route(cached(both, site()), False, None).wake == (("site", "shop/web"), ("other", "shop/web"))


def test_the_identity_is_what_the_page_says() -> None:
    kept = json.loads(cached(USES["watched, by `fields=`"], CHANGES["finalizers"]()).body)["metadata"]
    assert sorted(kept) == ["finalizers", "generation", "name", "namespace", "uid"]
    assert re.search(r"names, labels, generation, finalizers, owner\nreferences", PAGE)
