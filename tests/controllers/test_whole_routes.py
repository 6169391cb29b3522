"""Whom an event of an object of any kind wakes, and under which index entries it lies."""

from __future__ import annotations

import pytest

from oarlock.controllers.objects.model import OwnerRef
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.whole_routes import OwnerQueue, WholeRoutes, concerns_entry, named, names_entry

SITES = ("example.com", "Website")
TEAMS = ("example.com", "Team")
NOBODY = WholeRoutes()
OWN = WholeRoutes(own=("site", "audit"))
CHILD = WholeRoutes(owners={SITES: (OwnerQueue("site"), OwnerQueue("audit")), TEAMS: (OwnerQueue("team", False),)})
NAMED = WholeRoutes(fan_outs=("site-secrets.v1",))


def obj(*refs: OwnerRef, namespace: str = "shop", keys: tuple[str, ...] = (), fault: str = "") -> Whole:
    return Whole(namespace, "cart", "u1", owner_refs=refs, keys=keys, fault=fault)


def ref(kind: str = "Website", api_version: str = "example.com/v1", *, controller: bool = True) -> OwnerRef:
    return OwnerRef(api_version, kind, "web", "o1", controller)


CASES = {
    "matters to nobody": (NOBODY, obj(), (), ()),
    "wakes itself, for each of its controllers": (
        OWN,
        obj(),
        ("all",),
        (("site", "shop/cart"), ("audit", "shop/cart")),
    ),
    "of one without a namespace the key is the name": (
        OWN,
        obj(namespace=""),
        ("all",),
        (("site", "cart"), ("audit", "cart")),
    ),
    "a child wakes its controller": (CHILD, obj(ref()), ("owner=o1",), (("site", "shop/web"), ("audit", "shop/web"))),
    "whatever version the reference names": (
        CHILD,
        obj(ref(api_version="example.com/v1beta1")),
        ("owner=o1",),
        (("site", "shop/web"), ("audit", "shop/web")),
    ),
    "a kind of that name in another group is another": (
        CHILD,
        obj(ref(api_version="other.com/v1")),
        ("owner=o1",),
        (),
    ),
    "a child of one without a namespace": (CHILD, obj(ref("Team")), ("owner=o1",), (("team", "web"),)),
    "a reference that is no controller's": (CHILD, obj(ref(controller=False)), (), ()),
    "an orphan": (CHILD, obj(), (), ()),
    "one that others name": (NAMED, obj(), (), (("site-secrets.v1", "shop/cart"),)),
    "one that concerns keys": (
        NOBODY,
        obj(keys=(concerns_entry("site", "shop/a"), concerns_entry("team", "b"))),
        ("for=site:shop/a", "for=team:b"),
        (("site", "shop/a"), ("team", "b")),
    ),
    "one that names others": (
        OWN,
        obj(keys=(names_entry("site", "secrets.v1", "shop/tls"),)),
        ("all", "ref=site/secrets.v1/shop/tls"),
        (("site", "shop/cart"), ("audit", "shop/cart")),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_routes(case: str) -> None:
    routes, whole, index, wake = CASES[case]
    found = routes.route(whole, False)
    assert (found.index, found.wake, found.warning) == (index, wake, "")
    gone = routes.route(whole, True)
    assert (gone.index, gone.wake) == ((), wake)


def test_an_index_function_that_failed_is_told() -> None:
    assert routes_warning(obj(fault="KeyError: 'spec'")) == "shop/cart: KeyError: 'spec'"


def routes_warning(whole: Whole) -> str:
    return OWN.route(whole, False).warning


def test_names_are_read_back_by_controller_and_resource() -> None:
    keys = (
        names_entry("site", "secrets.v1", "shop/tls"),
        names_entry("site", "configmaps.v1", "shop/c"),
        names_entry("other", "secrets.v1", "shop/x"),
        names_entry("site", "secrets.v1", "shop/b"),
    )
    assert named(obj(keys=keys), "site", "secrets.v1") == ("shop/tls", "shop/b")
