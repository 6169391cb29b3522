"""What a ctx asks the turn for, and what it refuses before anything is asked."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import Any

import pytest

import oarlock
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.requests import (
    Delete,
    Get,
    List,
    LookAgain,
    Patch,
    Put,
    Request,
    SetStatus,
    StillMine,
    Tell,
)
from oarlock.sdk.context import AsyncContext, Context, runs, undoes
from oarlock.sdk.errors import Later, Never
from oarlock.sdk.words import UNCHANGED, merge_patch

CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "b"}}
REFERENCE = {
    "apiVersion": "example.com/v1",
    "kind": "Website",
    "name": "blog",
    "uid": "u-1",
    "controller": True,
    "blockOwnerDeletion": True,
}


@oarlock.resource("example.com/v1")
class Website(oarlock.Object):
    class Spec(oarlock.Struct):
        image: str
        replicas: int = 1

    spec: Spec


def define(**options: Any) -> oarlock.Definition:
    @oarlock.steps(
        Website,
        children=["v1 ConfigMap", "apps/v1 Deployment"],
        watches=[oarlock.watch("v1 Namespace", names=lambda site: ["shop"])],
        **options,
    )
    def website(obj: Any, ctx: Any) -> None: ...

    return website


class Line:
    """Answers by type of request, and keeps what was asked."""

    def __init__(self, **answers: Any) -> None:
        self.asked: list[Request] = []
        self._answers = answers

    def ask(self, request: Request) -> Any:
        self.asked.append(request)
        return self._answers.get(type(request).__name__)

    async def ask_later(self, request: Request) -> Any:
        return self.ask(request)


def own(**status: Any) -> dict[str, Any]:
    meta = {"name": "blog", "namespace": "shop", "uid": "u-1", "generation": 3}
    return {"apiVersion": "example.com/v1", "kind": "Website", "metadata": meta, "spec": {"image": "x"}, **status}


SAID = [
    pytest.param("get", ("ConfigMap", "web"), Get("configmaps.v1", "shop", "web"), id="a bare kind and name"),
    pytest.param("get", ("v1 ConfigMap", "live/web"), Get("configmaps.v1", "live", "web"), id="both in full"),
    pytest.param("get", ("Namespace", "shop"), Get("namespaces.v1", "", "shop"), id="a kind without a namespace"),
    pytest.param("get", (Website, "blog"), Get("websites.example.com", "shop", "blog"), id="a class"),
    pytest.param("list", ("Deployment",), List("deployments.apps"), id="list"),
    pytest.param(
        "patch",
        ("Deployment", "web", {"spec": {"replicas": 2}}),
        Patch("deployments.apps", "shop", "web", b'{"spec":{"replicas":2}}'),
        id="patch",
    ),
    pytest.param("delete", ("Deployment", "web"), Delete("deployments.apps", "shop", "web"), id="delete"),
    pytest.param("status", ({"ready": True},), SetStatus(b'{"status":{"ready":true}}'), id="status"),
    pytest.param("event", ("Made", "it is there"), Tell("Normal", "Made", "it is there"), id="event"),
    pytest.param("still_mine", (), StillMine(), id="still mine"),
]
ANSWERS = {"Get": None, "List": [], "Patch": b'{"metadata":{}}', "Put": b'{"metadata":{"managedFields":[]}}'}


@pytest.mark.parametrize(("word", "arguments", "request_"), SAID)
def test_words_become_requests_sync_and_async(word: str, arguments: tuple[Any, ...], request_: Request) -> None:
    line = Line(**ANSWERS)
    getattr(Context(define(), own(), line), word)(*arguments)
    asyncio.run(getattr(AsyncContext(define(), own(), line), word)(*arguments))
    assert line.asked == [request_, request_]


def test_both_surfaces_are_the_same() -> None:
    def surface(of: type) -> dict[str, Any]:
        names = [name for name in dir(of) if not name.startswith("_")]
        return {
            name: inspect.signature(getattr(of, name)) if callable(getattr(of, name)) else "property" for name in names
        }

    assert surface(Context) == surface(AsyncContext)
    assert all(
        inspect.iscoroutinefunction(getattr(AsyncContext, name))
        for name, kind in surface(Context).items()
        if kind != "property"
    )


def test_a_child_gets_its_owner_and_namespace() -> None:
    line = Line(**ANSWERS)
    given = json.loads(json.dumps(CONFIGMAP))
    assert Context(define(), own(), line).create(given) == {"metadata": {}}
    assert given == CONFIGMAP  # what the function gave is its own
    (put,) = line.asked
    assert isinstance(put, Put)
    assert (put.verb, put.resource, put.namespace, put.name, put.is_child) == (
        "create",
        "configmaps.v1",
        "shop",
        "web",
        True,
    )
    assert json.loads(put.body)["metadata"] == {"name": "web", "namespace": "shop", "ownerReferences": [REFERENCE]}


@pytest.mark.parametrize("word", ["create", "apply"])
def test_a_child_keeps_further_owners_that_it_is_given(word: str) -> None:
    line = Line(**ANSWERS)
    other = {"apiVersion": "v1", "kind": "Secret", "name": "tls", "uid": "u-8"}
    meta = {"name": "web", "ownerReferences": [REFERENCE, other]}
    getattr(Context(define(), own(), line), word)(CONFIGMAP | {"metadata": meta})
    (put,) = line.asked
    assert isinstance(put, Put)
    assert json.loads(put.body)["metadata"]["ownerReferences"] == [other, REFERENCE]


def test_what_is_only_watched_gets_no_owner() -> None:
    line = Line(**ANSWERS)
    Context(define(), own(), line).apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    (put,) = line.asked
    assert isinstance(put, Put)
    assert (put.is_child, put.namespace) == (False, "")
    assert json.loads(put.body)["metadata"] == {"name": "shop"}


def test_what_was_read_can_be_applied_again() -> None:
    line = Line(**ANSWERS)
    meta = {"name": "web", "uid": "u-7", "resourceVersion": "12", "managedFields": [], "generation": 2}
    Context(define(), own(), line).apply(CONFIGMAP | {"metadata": meta})
    (put,) = line.asked
    assert isinstance(put, Put)
    assert sorted(json.loads(put.body)["metadata"]) == ["name", "namespace", "ownerReferences"]


BAD = [
    pytest.param(
        lambda ctx: ctx.get("Secret", "x"),
        'website knows no "Secret": it is none of "example.com/v1 Website", "v1 ConfigMap"',
        id="a kind not declared",
    ),
    pytest.param(lambda ctx: ctx.get("configmaps", "x"), 'website knows no "configmaps"', id="a plural"),
    pytest.param(lambda ctx: ctx.list("v1 Secret"), "name it in children= or watches=", id="nor in full"),
    pytest.param(
        lambda ctx: ctx.create(CONFIGMAP | {"metadata": {"generateName": "web-"}}),
        "nobody knows before the answer",
        id="generateName",
    ),
    pytest.param(
        lambda ctx: ctx.apply(CONFIGMAP | {"metadata": {}}),
        "website: Website shop/blog: what it would apply, a ConfigMap, has the name None: write metadata.name",
        id="no name",
    ),
    pytest.param(lambda ctx: ctx.create([CONFIGMAP]), "would create has to be a dict or an", id="a list"),
    pytest.param(lambda ctx: ctx.apply({"metadata": {"name": "web"}}), "would apply has no apiVersion", id="no kind"),
    pytest.param(lambda ctx: ctx.status("ready"), "Website shop/blog: the status has to be a dict", id="a bad status"),
    pytest.param(lambda ctx: ctx.status(None), "not None; write {} for an empty one", id="no status"),
    pytest.param(lambda ctx: ctx.event("all is well", ""), "an event has the reason 'all is well'", id="a bad reason"),
    pytest.param(lambda ctx: ctx.event("Ready", None), "has a message that is None", id="a bad message"),
    pytest.param(lambda ctx: ctx.get("v1  ConfigMap", "x"), "shop/blog: 'v1  ConfigMap' is no kind", id="two blanks"),
    pytest.param(lambda ctx: ctx.get("ConfigMap", None), "name of a ConfigMap has to be a text, not None", id="none"),
    pytest.param(lambda ctx: ctx.get("ConfigMap", "\ud800"), "has half of a character in it", id="half a name"),
    pytest.param(
        lambda ctx: ctx.delete("ConfigMap", ""),
        "website: Website shop/blog: it would delete a ConfigMap with the name '': give its name",
        id="delete without a name",
    ),
    pytest.param(lambda ctx: ctx.patch("ConfigMap", "live/", {}), "would patch a ConfigMap with", id="a bare slash"),
    pytest.param(
        lambda ctx: ctx.delete("Namespace", "a/b"), "kind has no namespace; give the bare name", id="too much"
    ),
    pytest.param(
        lambda ctx: ctx.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "namespace": "b"}}),
        "Namespace a is in namespace b, but its kind has none",
        id="a namespace in one",
    ),
    pytest.param(
        lambda ctx: ctx.patch("Website", "blog", [{"op": "remove"}]),
        "the patch of Website blog: a JSON merge patch is a dict, not list",
        id="a patch that is a list",
    ),
    pytest.param(
        lambda ctx: ctx.create(CONFIGMAP | {"data": {"a": 2**70}}),
        "website: Website shop/blog: the ConfigMap 'web' is not JSON: Integer exceeds 64-bit range; write dicts",
        id="a number too large",
    ),
    pytest.param(lambda ctx: ctx.apply(CONFIGMAP | {"data": object()}), "'web' is not JSON: ", id="no JSON"),
    pytest.param(lambda ctx: ctx.patch("ConfigMap", "a", {"data": "\ud800"}), "is not JSON: ", id="half a character"),
    pytest.param(lambda ctx: ctx.status({"a": 2**70}), "the status is not JSON: Integer", id="a status too large"),
    pytest.param(lambda ctx: ctx.again(seconds=-1), "seconds=-1 has to be a number of seconds, from 0 on", id="before"),
    pytest.param(lambda ctx: ctx.again(seconds=None), "Website shop/blog: again.*seconds=None has to be", id="no time"),
    pytest.param(
        lambda ctx: ctx.create(CONFIGMAP | {"metadata": {"name": "web", "namespace": "live"}}),
        "ConfigMap live/web: a child lives in its owner's namespace",
        id="another namespace",
    ),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_refused_before_anything_is_asked(call: Any, text: str) -> None:
    line = Line()
    with pytest.raises(Never, match=text):
        call(Context(define(), own(), line))
    assert line.asked == []


def test_a_status_is_written_only_where_it_differs() -> None:
    line = Line()
    ctx = Context(define(), own(status={"ready": True, "old": 1}), line)
    ctx.status({"ready": True, "old": 1})
    ctx.status({"ready": False})
    ctx.status({"ready": False})
    assert line.asked == [SetStatus(b'{"status":{"old":null,"ready":false}}')]


PATCHES = [
    ({}, {}, UNCHANGED),
    (None, {}, {}),
    (None, None, UNCHANGED),
    ({"a": 1}, None, None),
    ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
    ({"a": [1, 2]}, {"a": [2]}, {"a": [2]}),
    ({"a": True}, {"a": 1}, {"a": 1}),
    ({"a": 1.0}, {"a": 1}, UNCHANGED),
]


@pytest.mark.parametrize(("has", "wants", "patch"), PATCHES)
def test_merge_patch(has: Any, wants: Any, patch: Any) -> None:
    assert merge_patch(has, wants) == patch


def test_times_and_keys() -> None:
    line = Line()
    ctx = Context(define(), own(), line)
    ctx.again(seconds=1.5)
    assert line.asked == [LookAgain(1500)]
    assert (ctx.key, ctx.namespace, ctx.idempotency_key) == ("shop/blog", "shop", "u-1-3")
    ctx.again(seconds=0)
    assert line.asked[1:] == [LookAgain(0)]
    with pytest.raises(ValueError, match="from 0 on"):
        Later(seconds=float("nan"))


def whole(obj: dict[str, Any]) -> Whole:
    return Whole("shop", "blog", "u-1", body=json.dumps(obj).encode())


MISFIT = own() | {"spec": {"replicas": "two"}}
DNS = "example.com/dns"


def test_a_run_gets_a_typed_object_and_one_that_does_not_fit_is_never() -> None:
    seen = []

    @oarlock.steps(Website)
    def website(obj: Website, ctx: oarlock.Context) -> None:
        seen.append((obj.spec.image, obj.metadata.uid, ctx.key))

    runs(website)(whole(own()), Line())
    assert seen == [("x", "u-1", "shop/blog")]
    with pytest.raises(Never, match=r"^Website shop/blog does not fit its type: spec\.replicas: has to be a whole"):
        runs(website)(whole(MISFIT), Line())


def undoing(**options: Any) -> tuple[oarlock.Definition, list[Any]]:
    given: list[Any] = []
    definition = define(finalizer=DNS)

    @definition.finalize(**options)
    def forget(obj: Any, ctx: oarlock.Context) -> None:
        given.append(obj)

    return definition, given


def test_what_undoes_gets_a_plain_dict_if_it_asks_for_it_whether_it_fits_or_not() -> None:
    definition, given = undoing(raw=True)
    undo = undoes(definition)
    assert undo is not None
    for obj in (own(), MISFIT):
        undo(whole(obj), Line())
    assert given == [own(), MISFIT]


def test_what_undoes_a_typed_object_is_not_called_for_a_misfit_and_the_mend_is_said() -> None:
    definition, given = undoing(raw=False)
    undo = undoes(definition)
    assert undo is not None
    undo(whole(own()), Line())
    assert [type(each) for each in given] == [Website]
    mend = "mend the object, or have forget take any object, by finalize\\(raw=True\\)"
    with pytest.raises(Never, match=f"the finalizer {DNS} stays: {mend}"):
        undo(whole(MISFIT), Line())


def test_finalize_needs_a_finalizer_and_is_given_once() -> None:
    with pytest.raises(oarlock.BadDefinition, match="needs a finalizer"):
        define().finalize(lambda obj, ctx: None)
    definition = define(finalizer="example.com/dns")
    definition.finalize(lambda obj, ctx: None)
    with pytest.raises(oarlock.BadDefinition, match="already"):
        definition.finalize(lambda obj, ctx: None)
    assert define(finalizer="example.com/dns").undo == []  # no definition shares it with another


def key_of(data: Any, **meta: Any) -> str:
    given = {"name": "a", "namespace": "shop", "uid": "u-2", **meta}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": given, "data": data}
    return Context(define(), obj, Line()).idempotency_key


KEYS = [
    pytest.param(key_of({"a": "1"}, labels={"b": "c"}, annotations={"d": "e"}), True, id="other metadata"),
    pytest.param(key_of({"a": "2"}), False, id="another content"),
    pytest.param(key_of({"a": "1"}, uid="u-3"), False, id="another object"),
    pytest.param(key_of({"a": "1"}, deletionTimestamp="2026-01-01T00:00:00Z"), False, id="to be undone"),
]


@pytest.mark.parametrize(("key", "same"), KEYS)
def test_a_key_of_a_kind_without_a_generation_tells_contents_apart(key: str, same: bool) -> None:
    assert (key == key_of({"a": "1"})) is same


def test_a_key_with_a_generation_is_that() -> None:
    assert key_of({"a": "1"}, generation=7, deletionTimestamp="2026-01-01T00:00:00Z") == "u-2-7"


@pytest.mark.parametrize("namespace", [None, "", "shop"])
def test_a_namespace_that_is_empty_is_the_owners(namespace: str | None) -> None:
    line = Line(**ANSWERS)
    Context(define(), own(), line).create(CONFIGMAP | {"metadata": {"name": "web", "namespace": namespace}})
    (put,) = line.asked
    assert isinstance(put, Put)
    assert (put.namespace, json.loads(put.body)["metadata"]["namespace"]) == ("shop", "shop")


class Data(oarlock.Struct):
    the_key: str


def test_sets_bytes_and_structs_are_sent_as_in_the_desired_style() -> None:
    line = Line(**ANSWERS)
    ctx = Context(define(), own(status={"all": [1, 8]}), line)
    data = {"c": {"b", "a"}, "b": b"x", "a": Data(the_key="1")}
    ctx.create(CONFIGMAP | {"data": data})
    ctx.patch("ConfigMap", "web", {"data": data})
    ctx.status({"all": {8, 1}})
    ctx.status({"all": (1, 8)})
    put, patch = line.asked
    assert isinstance(put, Put)
    assert isinstance(patch, Patch)
    sent = {"a": {"theKey": "1"}, "b": "eA==", "c": ["a", "b"]}
    assert (json.loads(put.body)["data"], json.loads(patch.body)["data"]) == (sent, sent)


def wrapped(function: Any) -> Any:
    """As a decorator makes it that knows nothing of async functions."""

    def inner(obj: Any, ctx: Any) -> Any:
        return function(obj, ctx)

    return inner


async def awaited(obj: Any, ctx: Any) -> None: ...


async def never_awaited(obj: Any, ctx: Any) -> Any:
    return awaited(obj, ctx)


def stepwise(obj: Any, ctx: Any) -> Any:
    yield obj


async def stepwise_and_async(obj: Any, ctx: Any) -> Any:
    yield obj


def a_result(obj: Any, ctx: Any) -> Any:
    return oarlock.Result()


RETURNED = [
    pytest.param(wrapped(awaited), "inner returned coroutine: it is not awaited", id="a wrapper that is not async"),
    pytest.param(never_awaited, "never_awaited returned coroutine: it is not awaited", id="a call that is not awaited"),
    pytest.param(stepwise, "stepwise returned generator: .* leave the yield out", id="a generator"),
    pytest.param(wrapped(stepwise), "inner returned generator", id="a wrapper of a generator"),
    pytest.param(stepwise_and_async, "stepwise_and_async returned async_generator: .*yield", id="an async generator"),
    pytest.param(a_result, "a_result returned Result: .* returns nothing", id="what the other style returns"),
]


@pytest.mark.parametrize("undo", [False, True], ids=["runs", "undoes"])
@pytest.mark.parametrize(("function", "text"), RETURNED)
def test_what_a_function_returns_is_not_passed_over(function: Any, text: str, undo: bool) -> None:
    """It may not have run at all, so its finalizer must stay."""
    definition = oarlock.steps(Website, finalizer=DNS, name="site")(function)
    definition.finalize(function)
    call = undoes(definition) if undo else runs(definition)
    assert call is not None

    async def turn() -> None:
        called = call(whole(own()), Line())
        if inspect.iscoroutine(called):
            await called

    with pytest.raises(Never, match=f"^site: {text}"):
        asyncio.run(turn())
