"""From what a function returns to what is wanted; what is wrong with it is told in one line and not tried again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import oarlock
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.wanted import UserError, Wanted
from oarlock.sdk.results import want

CHILDREN = ["v1 ConfigMap", "v1 Namespace"]


def wanted(result: Any, *, namespace: str = "shop", children: Any = CHILDREN) -> Wanted:
    @oarlock.desired(oarlock.Kind("example.com/v1", "Site"), children=children)
    def site(obj: Any, children: oarlock.Children) -> Any:
        return result(obj) if callable(result) else result

    meta = {"name": "web", "namespace": namespace, "uid": "o1"}
    body = msgspec.json.encode({"apiVersion": "example.com/v1", "kind": "Site", "metadata": meta, "spec": {"n": 1}})
    return want(site)(Whole(namespace, "web", "o1", body=body), [], [])


def child(**meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **meta}, "data": {"v": "1"}}


def result(*children: Any, **more: Any) -> oarlock.Result:
    return oarlock.Result(children, **more)


ERRORS: dict[str, tuple[Any, str]] = {
    "no result": (None, "site: it returned NoneType, not oarlock.Result"),
    "a list": ([child()], "site: it returned list, not oarlock.Result"),
    "no object": (result("a"), "site: a child is an object with apiVersion, kind and metadata"),
    "no metadata": (
        result({"apiVersion": "v1", "kind": "ConfigMap"}),
        "site: a child is an object with apiVersion, kind and metadata",
    ),
    "not declared": (
        result({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
        'site: it wants a child "v1 Secret" that is not in its children= (v1 ConfigMap, v1 Namespace)',
    ),
    "no name": (result(child(name=None)), "site: a ConfigMap without metadata.name"),
    "an empty name": (result(child(name="")), "site: a ConfigMap without metadata.name"),
    "generateName": (
        result(child(generateName="a-")),
        "site: a ConfigMap with generateName: a repeated create would make another one; give it a name",
    ),
    "two of a name": (
        result(child(), child(labels={"a": "b"})),
        "site: it wants two children ConfigMap a: each needs a name of its own",
    ),
    "another namespace": (
        result(child(namespace="kube-system")),
        "site: ConfigMap a is in namespace kube-system: children are in their owner's, shop",
    ),
    "no namespace at all": (
        result({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
        "site: Namespace a has no namespace: an object in a namespace cannot own it",
    ),
    "no JSON": (result({**child(), "data": {"v": {1, 2}, "w": object()}}), "site: ConfigMap a is not JSON"),
    "a status that is no JSON": (result(status={"a": object()}), "site: its status is not JSON"),
    "again at once": (result(again_s=0), "site: again_s=0 has to be more than nothing"),
    "again before now": (result(again_s=-1.5), "site: again_s=-1.5 has to be more than nothing"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    given, message = ERRORS[case]
    with pytest.raises(UserError) as caught:
        wanted(given)
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    assert caught.value.never


def test_a_function_that_raises_is_called_again() -> None:
    with pytest.raises(UserError, match="site: KeyError: 'replicas'") as caught:
        wanted(lambda obj: obj["spec"]["replicas"])
    assert not caught.value.never


def test_of_an_owner_without_a_namespace_children_say_theirs() -> None:
    found = wanted(
        result({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}, child(namespace="a")),
        namespace="",
    )
    assert [(each.kind, each.namespace) for each in found.children] == [("Namespace", ""), ("ConfigMap", "a")]
    with pytest.raises(UserError, match=r"ConfigMap a needs a metadata\.namespace, as its owner has none"):
        wanted(result(child()), namespace="")


def test_a_child_made_from_a_live_one_loses_what_the_server_wrote() -> None:
    meta = {"uid": "u", "resourceVersion": "5", "creationTimestamp": "2026-01-05T08:00:00Z", "generation": 2}
    one = wanted(result(child(**meta) | {"status": {"x": 1}})).children[0]
    assert one == wanted(result(child())).children[0]


def test_what_was_given_is_not_changed() -> None:
    given = child()
    before = msgspec.json.encode(given)
    wanted(result(given))
    assert msgspec.json.encode(given) == before


def test_status_again_and_events() -> None:
    found = wanted(result(status={"ready": 1}, again_s=1.5, events=[("Ready", "all is well")]))
    assert (found.status, found.again_ms) == (b'{"ready":1}', 1500)
    assert [(each.type, each.reason, each.message) for each in found.events] == [("Normal", "Ready", "all is well")]
    assert wanted(result()).status is None
