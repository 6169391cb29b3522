"""What `names=` and `wakes=` may return, and what is said of all else: who, which function, the mend."""

from __future__ import annotations

import json
from typing import Any

import pytest

import oarlock
from oarlock.controllers.entries import Watched
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.whole_routes import concerns_entry, names_entry
from oarlock.sdk.entries import entries_of

SECRET, NODE = oarlock.Kind("v1", "Secret"), oarlock.Kind("v1", "Node", namespaced=False)


class Spec(oarlock.Struct):
    size: int = 1


@oarlock.resource("example.com/v1")
class Site(oarlock.Object):
    spec: Spec


@oarlock.resource("example.com/v1", namespaced=False)
class Team(oarlock.Object):
    spec: Spec


def cached(definition: oarlock.Definition, kind: oarlock.Kind, namespace: str = "", **spec: Any) -> Whole:
    """An object of this kind, as an ingestor would cache it."""
    (watched,) = (each for each in entries_of([definition]) if isinstance(each, Watched) and each.kind == kind.kind)
    meta = {"name": "web", "uid": "u", "resourceVersion": "7", **({"namespace": namespace} if namespace else {})}
    raw = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}
    found: Whole = watched.from_json(json.dumps(raw).encode())[1]
    return found


def named(own: type[oarlock.Object], kind: oarlock.Kind, function: Any, **spec: Any) -> Whole:
    @oarlock.desired(own, name="site", watches=[oarlock.watch(kind, names=function)])
    def site(obj: Any, children: oarlock.Children) -> Any: ...

    return cached(site, own.kind, "shop" if own.kind.namespaced else "", **spec)


def woken(own: type[oarlock.Object], kind: oarlock.Kind, function: Any) -> Whole:
    @oarlock.desired(own, name="site", watches=[oarlock.watch(kind, wakes=function)])
    def site(obj: Any, children: oarlock.Children) -> Any: ...

    return cached(site, kind, "shop" if kind.namespaced else "")


KEYS: list[tuple[type[oarlock.Object], oarlock.Kind, Any, list[str]]] = [
    (Site, SECRET, ["live/tls"], ["live/tls"]),
    (Site, SECRET, ["tls"], ["shop/tls"]),
    (Site, SECRET, ("a", "b"), ["shop/a", "shop/b"]),
    (Site, SECRET, {"a"}, ["shop/a"]),
    (Site, SECRET, (name for name in ["a"]), ["shop/a"]),
    (Site, SECRET, ["", None, "a"], ["shop/a"]),
    (Site, SECRET, [], []),
    (Site, NODE, ["n1"], ["n1"]),
    (Team, SECRET, ["live/tls"], ["live/tls"]),
    (Team, NODE, ["system:n1"], ["system:n1"]),
]


@pytest.mark.parametrize(("own", "kind", "found", "keys"), KEYS)
def test_keys_that_an_object_names(own: type[oarlock.Object], kind: oarlock.Kind, found: Any, keys: list[str]) -> None:
    whole = named(own, kind, lambda obj: found)
    assert (whole.keys, whole.fault) == (tuple(names_entry("site", kind.resource, key) for key in keys), "")


WAKES: list[tuple[type[oarlock.Object], oarlock.Kind, Any, list[str]]] = [
    (Site, SECRET, ["live/blog", "blog"], ["live/blog", "shop/blog"]),
    (Site, NODE, ["live/blog"], ["live/blog"]),
    (Team, SECRET, ["red"], ["red"]),
]


@pytest.mark.parametrize(("own", "kind", "found", "keys"), WAKES)
def test_keys_that_an_object_wakes(own: type[oarlock.Object], kind: oarlock.Kind, found: Any, keys: list[str]) -> None:
    whole = woken(own, kind, lambda obj: found)
    assert (whole.keys, whole.fault) == (tuple(concerns_entry("site", key) for key in keys), "")


TEXT = 'a key is a text, as "namespace/name"'
WRONG: list[tuple[type[oarlock.Object], oarlock.Kind, Any, str]] = [
    (Site, SECRET, None, "returned None, not a list of keys; return [] for none"),
    (Site, SECRET, "shop/tls", "returned str, not a list of keys"),
    (Site, SECRET, {"shop": "tls"}, "returned dict, not a list of keys"),
    (Site, SECRET, 7, "returned int, not a list of keys"),
    (Site, SECRET, [("shop", "tls")], f"returned a list that holds tuple: {TEXT}"),
    (Site, SECRET, [("shop",)], f"returned a list that holds tuple: {TEXT}"),
    (Site, SECRET, [7], f"returned a list that holds int: {TEXT}"),
    (Site, SECRET, ["a/b/c"], "returned 'a/b/c', which is no key: write \"namespace/name\""),
    (Site, SECRET, ["shop/"], "returned 'shop/', which is no key: write \"namespace/name\""),
    (Site, SECRET, ["/tls"], "returned '/tls', which is no key: write \"namespace/name\""),
    (Site, SECRET, ["a tls"], "returned 'a tls', which is no key: write \"namespace/name\""),
    (Site, SECRET, json.loads(r'["a\ud800"]'), r"returned 'a\ud800', which is no key: write " '"namespace/name"'),
    (Site, NODE, ["shop/n1"], "returned 'shop/n1': a Node has no namespace; return its name alone"),
    (Team, SECRET, ["tls"], "returned 'tls': a Secret is in a namespace; write \"namespace/tls\""),
]


def my_function(found: Any) -> Any:
    def secret_of(obj: Any) -> Any:
        return found

    return secret_of


@pytest.mark.parametrize(("own", "kind", "found", "fault"), WRONG)
def test_what_is_no_key_is_told(own: type[oarlock.Object], kind: oarlock.Kind, found: Any, fault: str) -> None:
    whole = named(own, kind, my_function(found))
    assert (whole.keys, whole.fault) == ((), f"site: names=secret_of {fault}")
    codec.encode(whole)


def test_an_exception_that_quotes_what_has_no_utf8_stops_nothing_else() -> None:
    """An annotation may hold such JSON, and an ingestor that stops at it would stop at it again."""

    def secret_of(obj: Any) -> Any:
        raise ValueError("no Secret " + json.loads(r'"\ud800"'))

    whole = named(Site, SECRET, secret_of)
    assert whole.fault == r"site: names=secret_of raised ValueError: no Secret \ud800"
    codec.encode(whole)


def test_the_same_of_what_it_wakes() -> None:
    assert woken(Site, NODE, my_function(None)).fault == (
        "site: wakes=secret_of returned None, not a list of keys; return [] for none"
    )
    assert woken(Site, NODE, my_function(["web"])).fault == (
        "site: wakes=secret_of returned 'web': a Site is in a namespace; write \"namespace/web\""
    )
    assert woken(Site, NODE, lambda obj: obj["no"]).fault == "site: wakes=<lambda> raised KeyError: 'no'"


def test_an_object_that_does_not_fit_its_type_names_nobody_and_says_so() -> None:
    assert named(Site, SECRET, my_function([]), size="two").fault == (
        "site: names=secret_of is not called: the Site does not fit its type:"
        " spec.size: has to be a whole number, not a text"
    )
