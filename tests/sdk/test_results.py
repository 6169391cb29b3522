"""From what a function returns to what is wanted; what is wrong with it is told in one line and not tried again."""

from __future__ import annotations

import enum
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


SECONDS = "has to be a number of seconds, more than 0 and less than 1e+09"
REASON = "write one word of letters and digits, such as RecordCreated"


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in child().items() if name != field}


ERRORS: dict[str, tuple[Any, str]] = {
    "no result": (None, "its function returned NoneType, not oarlock.Result"),
    "a list": ([child()], "its function returned list, not oarlock.Result"),
    "no children": (
        oarlock.Result(children=None),  # type: ignore[arg-type]
        "children= has to be a list of objects, not None; write [] for none",
    ),
    "a child without a list": (oarlock.Result(child()), "children= has to be a list of objects, not dict"),  # type: ignore[arg-type]
    "a generator": (
        oarlock.Result(child() for _ in "a"),  # type: ignore[arg-type]
        "children= has to be a list of objects, not generator",
    ),
    "a text": (oarlock.Result("web"), "children= has to be a list of objects, not str"),
    "no object": (result(child(), "a"), "children[1] has to be a dict or an oarlock.Object, not str"),
    "nothing": (result(None), "children[0] has to be a dict or an oarlock.Object, not None"),
    "no version": (
        result(without("apiVersion")),
        "children[0] has no apiVersion: write it as a text, such as apiVersion: v1, kind: ConfigMap",
    ),
    "no kind": (
        result(without("kind")),
        "children[0] has no kind: write it as a text, such as apiVersion: v1, kind: ConfigMap",
    ),
    "a kind that is no text": (
        result({**child(), "kind": ["ConfigMap"]}),
        "children[0] has no kind: write it as a text, such as apiVersion: v1, kind: ConfigMap",
    ),
    "no metadata": (
        result(without("metadata")),
        "children[0], a ConfigMap, has no metadata: it has to be a dict with a name",
    ),
    "metadata of another form": (
        result({**child(), "metadata": "a"}),
        "children[0], a ConfigMap, has no metadata: it has to be a dict with a name",
    ),
    "not declared": (
        result({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
        'it wants a child "v1 Secret" that is not in its children= ("v1 ConfigMap", "v1 Namespace")',
    ),
    "no name": (
        result(child(name=None)),
        "children[0], a ConfigMap, has the name None: write metadata.name as a text without a slash",
    ),
    "an empty name": (
        result(child(name="")),
        "children[0], a ConfigMap, has the name '': write metadata.name as a text without a slash",
    ),
    "a number": (
        result(child(name=7)),
        "children[0], a ConfigMap, has the name 7: write metadata.name as a text without a slash",
    ),
    "a key": (
        result(child(name="shop/a")),
        "children[0], a ConfigMap, has the name 'shop/a': write metadata.name as a text without a slash",
    ),
    "generateName": (
        result(child(generateName="a-")),
        "children[0], a ConfigMap, has generateName, a name that nobody knows before the answer: a repeated request"
        " would make a second one; give it a name, as f'{obj.name}-web'",
    ),
    "two of a name": (
        result(child(), child(labels={"a": "b"})),
        "it wants two children ConfigMap a: each needs a name of its own",
    ),
    "another namespace": (
        result(child(namespace="kube-system")),
        "ConfigMap a is in namespace kube-system: children are in their owner's, shop",
    ),
    "a namespace that is no text": (
        result(child(namespace=7)),
        "ConfigMap a: metadata.namespace has to be a text, not int",
    ),
    "labels as a list": (result(child(labels=["a=b"])), "ConfigMap a: metadata.labels has to be a dict, not list"),
    "annotations as a text": (
        result(child(annotations="a=b")),
        "ConfigMap a: metadata.annotations has to be a dict, not str",
    ),
    "owners that are none": (
        result(child(ownerReferences=["web"])),
        "ConfigMap a: metadata.ownerReferences has to be a list of dicts; leave it out, it is set",
    ),
    "no namespace at all": (
        result({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
        "Namespace a has no namespace: an object in a namespace cannot own it",
    ),
    "no JSON": (
        result({**child(), "data": {"v": object()}}),
        "ConfigMap a is not JSON: a value of type object; write dicts, lists, texts and numbers",
    ),
    "a status that is no JSON": (
        result(status={"a": object()}),
        "the status is not JSON: a value of type object; write dicts, lists, texts and numbers",
    ),
    "a status that is a text": (
        result(status="ready"),
        "the status has to be a dict or a Struct, not str; write {} for an empty one",
    ),
    "a status that is a list": (
        result(status=[("ready", 1)]),
        "the status has to be a dict or a Struct, not list; write {} for an empty one",
    ),
    "again at once": (result(again_s=0), f"again_s=0 {SECONDS}"),
    "again before now": (result(again_s=-1.5), f"again_s=-1.5 {SECONDS}"),
    "again some time": (result(again_s=float("nan")), f"again_s=nan {SECONDS}"),
    "never again": (result(again_s=float("inf")), f"again_s=inf {SECONDS}"),
    "again as a text": (result(again_s="5s"), f"again_s='5s' {SECONDS}"),
    "again or not": (result(again_s=True), f"again_s=True {SECONDS}"),
    "no events": (
        result(events=None),
        "events= has to be a list of (reason, message), not None; write [] for none",
    ),
    "an event as a text": (result(events=["Ready"]), "events= holds str: each event is a pair (reason, message)"),
    "an event of one word": (
        result(events=[("Ready",)]),
        "events= holds tuple: each event is a pair (reason, message)",
    ),
    "a reason with blanks": (
        result(events=[("all is well", "now")]),
        f"an event has the reason 'all is well': {REASON}",
    ),
    "no reason": (result(events=[("", "now")]), f"an event has the reason '': {REASON}"),
    "a reason that is none": (result(events=[(None, "now")]), f"an event has the reason None: {REASON}"),
    "a reason without end": (result(events=[("a" * 129, "")]), f"an event has the reason '{'a' * 129}': {REASON}"),
    "a message that is an error": (
        result(events=[("Failed", KeyError("a"))]),
        "the event Failed has a message that is KeyError: write a text, as str(...)",
    ),
}


@pytest.mark.parametrize(("given", "message"), ERRORS.values(), ids=list(ERRORS))
def test_what_is_wrong_with_a_result_is_told_in_one_line_and_not_tried_again(given: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        wanted(given)
    assert caught.value.message == f"site: Site shop/web: {message}"
    assert caught.value.never


@pytest.mark.parametrize("raised", [oarlock.Later(seconds=5, reason="it comes"), oarlock.Never("no such region")])
def test_later_and_never_are_taken_as_they_are(raised: UserError) -> None:
    def raises(obj: Any) -> Any:
        raise raised

    with pytest.raises(UserError) as caught:
        wanted(raises)
    assert caught.value is raised


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


class Color(enum.Enum):
    RED, BLUE = "red", "blue"


class Words(str):
    """As a YAML library has it."""


class Part(oarlock.Struct):
    tls_port: int


def test_parts_of_a_child_may_be_of_types() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", size=(int, 1))
    data = {"part": Part(tls_port=1), "model": model(), "word": Words("x"), "colors": {Color.RED, Color.BLUE}}
    body = msgspec.json.decode(wanted(result({**child(), "data": data})).children[0].body)
    assert body["data"] == {"part": {"tlsPort": 1}, "model": {"size": 1}, "word": "x", "colors": ["blue", "red"]}


def test_status_again_and_events() -> None:
    found = wanted(result(status={"ready": 1}, again_s=1.5, events=[("Ready", "all is well")]))
    assert (found.status, found.again_ms) == (b'{"ready":1}', 1500)
    assert [(each.type, each.reason, each.message) for each in found.events] == [("Normal", "Ready", "all is well")]
    assert wanted(result()).status is None
