"""A ctx without a cluster: what a function sees and does by it is what it sees and does in one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import oarlock
from oarlock.testing import Cluster, FakeAsyncContext, FakeContext

Obj = dict[str, Any]


class Spec(oarlock.Struct):
    script: str = ""
    secret: str = ""


@oarlock.resource("fake.example.com/v1")
class Job(oarlock.Object):
    spec: Spec
    status: dict[str, Any] = {}


def made(name: str, **parts: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **parts}


def data_of(found: Obj | None) -> Any:
    return None if found is None else found.get("data", {})


def names_of(found: list[Obj]) -> list[str]:
    return sorted(each["metadata"]["name"] for each in found)


def patch_stale(ctx: oarlock.Context) -> Any:
    """Of one that is gone since it was read."""
    ctx.create(made("web"))
    ctx.delete("ConfigMap", "web")
    return ctx.patch("ConfigMap", "web", {"data": {"a": "2"}})


SCRIPTS: dict[str, Callable[[oarlock.Context], Any]] = {
    "get nothing": lambda ctx: ctx.get("ConfigMap", "web"),
    "create": lambda ctx: data_of(ctx.create(made("web", data={"a": "1"}))),
    "create and get": lambda ctx: (ctx.create(made("web", data={"a": "1"})), data_of(ctx.get("ConfigMap", "web")))[1],
    "create and list": lambda ctx: (ctx.create(made("web")), names_of(ctx.list("ConfigMap")))[1],
    "create twice": lambda ctx: [data_of(ctx.create(made("web", data={"a": each}))) for each in "12"],
    "create what another has": lambda ctx: data_of(ctx.create(made("taken"))),
    "apply what another has": lambda ctx: data_of(ctx.apply(made("taken"))),
    "apply": lambda ctx: [data_of(ctx.apply(made("web", data=each))) for each in ({"a": "1", "b": "2"}, {"a": "3"})],
    "patch": lambda ctx: [
        data_of(ctx.create(made("web", data={"a": "1", "b": "2"}))),
        data_of(ctx.patch("ConfigMap", "web", {"data": {"a": None, "c": "3"}})),
        data_of(ctx.get("ConfigMap", "web")),
    ],
    "patch nothing": lambda ctx: ctx.patch("ConfigMap", "web", {}),
    "patch what is gone": patch_stale,
    "patch what another has": lambda ctx: data_of(ctx.patch("ConfigMap", "taken", {"data": {"a": "2"}})),
    "delete": lambda ctx: [ctx.create(made("web")) and None, ctx.delete("ConfigMap", "web"), ctx.list("ConfigMap")],
    "delete nothing": lambda ctx: ctx.delete("ConfigMap", "web"),
    "a secret": lambda ctx: [data_of(ctx.get("Secret", "tls")), names_of(ctx.list("Secret"))],
    "create what its watch has found": lambda ctx: [data_of(ctx.get("Secret", "tls")), data_of(ctx.create(SECRET))],
    "delete without a name": lambda ctx: ctx.delete("ConfigMap", ""),
    "a label of its own": lambda ctx: ctx.patch(Job, "job", {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"],
    "two statuses": lambda ctx: (ctx.status({"a": 1}), ctx.status({"b": 2}))[1],
    "still mine": lambda ctx: ctx.still_mine(),
}


def named(job: Job) -> list[str]:
    return [job.spec.secret]


SECRETS = oarlock.watch("v1 Secret", names=named, writes=["create"])


@oarlock.steps(Job, children=["v1 ConfigMap"], watches=[SECRETS], name="fakejob")
def job(obj: Job, ctx: oarlock.Context) -> None:
    """Play the script that the object names, and write what came of it into the status."""
    if obj.status:
        return  # done
    if ctx.get("ConfigMap", "taken") is None or ctx.get("Secret", "tls") is None:
        raise oarlock.Later(seconds=0.05)  # the cache of a cluster is behind, that of a FakeContext never
    try:
        came = SCRIPTS[obj.spec.script](ctx)
    except oarlock.ApiError as error:
        came = f"ApiError {error.code} {error.stale}"
    except oarlock.Never as never:
        came = f"Never {never.message.partition(': it would ')[2]}"
    ctx.status({"came": came, "last": True})


TAKEN = made("taken", data={"a": "1"})
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "data": {"key": "AAAA"}}
OTHER_SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}}


def of(script: str) -> Job:
    return Job(metadata=oarlock.Meta(name="job", namespace="shop"), spec=Spec(script=script, secret="tls"))


@pytest.fixture(scope="module")
def running() -> Any:
    with Cluster(operator=[job], controllers="") as cluster:
        yield cluster


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_comes_of_each_word_is_what_comes_of_it_in_a_cluster(script: str, running: Cluster) -> None:
    ctx = FakeContext(job, of(script), others=[TAKEN, SECRET, OTHER_SECRET])
    job(of(script), ctx)
    with running.fresh(script) as cluster:
        for each in (TAKEN, SECRET, OTHER_SECRET):
            cluster.create(each)
        plain = {"apiVersion": "fake.example.com/v1", "kind": "Job", "metadata": {"name": "job"}}
        cluster.create({**plain, "spec": {"script": script, "secret": "tls"}})
        status = cluster.wait("jobs.fake.example.com/job", lambda it: it["status"]["last"] and it["status"])["status"]
    assert ctx.did.status == status


# -- what it tells a test ----------------------------------------------------------------------------------------------


def test_what_was_done() -> None:
    ctx = FakeContext(job, of(""), children=[made("old", data={"a": "1"})])
    ctx.create(made("web", data={"a": "1"}))
    ctx.patch("ConfigMap", "old", {"data": {"a": "2"}})
    ctx.delete("ConfigMap", "old")
    ctx.status({"done": True})
    ctx.event("Made", "web")
    ctx.event("Late", "by a day", warning=True)
    ctx.again(seconds=90)
    ctx.again(seconds=30)
    assert [(each.verb, each.kind, each.name) for each in ctx.did.writes] == [
        ("create", "ConfigMap", "web"),
        ("patch", "ConfigMap", "old"),
        ("delete", "ConfigMap", "old"),
        ("status", "Job", "job"),
    ]
    assert ctx.did.writes[1].body == {"data": {"a": "2"}}
    assert ctx.did.writes[0].body["metadata"]["ownerReferences"][0]["kind"] == "Job"
    assert ctx.did.status == {"done": True}
    assert ctx.did.events == [("Normal", "Made", "web"), ("Warning", "Late", "by a day")]
    assert ctx.did.again_s == 30
    assert (ctx.key, ctx.namespace) == ("shop/job", "shop")


@pytest.mark.parametrize("owner", [[], [{"apiVersion": "v1", "kind": "Job", "name": "x", "uid": "u-1"}]])
def test_what_is_there_and_anothers_is_not_created(owner: list[Obj]) -> None:
    there = {**SECRET, "metadata": {"name": "tls", "ownerReferences": [{**each, "controller": True} for each in owner]}}
    ctx = FakeContext(job, of(""), others=[there])
    with pytest.raises(oarlock.ApiError, match="exists and is not controlled by shop/job") as refused:
        ctx.create(SECRET)
    assert (refused.value.code, ctx.did.writes) == (409, [])


def test_nothing_was_done() -> None:
    ctx = FakeContext(job, of(""))
    assert (ctx.did.writes, ctx.did.status, ctx.did.events, ctx.did.again_s) == ([], None, [], None)


@pytest.mark.parametrize("code", [0, 403, 409, 422, 429, 500])
@pytest.mark.parametrize("verb", ["create", "apply", "patch", "delete", "status"])
def test_writes_that_are_refused(verb: str, code: int) -> None:
    ctx = FakeContext(job, of(""), children=[made("old")], refuse={verb: code})
    calls: dict[str, Callable[[], Any]] = {
        "create": lambda: ctx.create(made("web")),
        "apply": lambda: ctx.apply(made("old")),
        "patch": lambda: ctx.patch("ConfigMap", "old", {"data": {}}),
        "delete": lambda: ctx.delete("ConfigMap", "old"),
        "status": lambda: ctx.status({"a": 1}),
    }
    for each, call in calls.items():
        if each == verb:
            with pytest.raises(oarlock.ApiError) as refused:
                call()
            assert refused.value.code == code
        else:
            call()
    assert (ctx.did.status is None) == (verb == "status")


def test_an_object_that_is_another_workers_is_read_and_not_written() -> None:
    ctx = FakeContext(job, of(""), children=[made("old")], lost=True)
    assert names_of(ctx.list("ConfigMap")) == ["old"]
    for call in (ctx.still_mine, lambda: ctx.status({"a": 1}), lambda: ctx.delete("ConfigMap", "old")):
        with pytest.raises(oarlock.LostClaim):
            call()
    assert ctx.did.writes == []


def test_what_is_held_by_a_finalizer_is_going_and_not_gone() -> None:
    held = made("old")
    held["metadata"]["finalizers"] = ["example.com/held"]
    ctx = FakeContext(job, of(""), children=[held])
    ctx.delete("ConfigMap", "old")
    found = ctx.get("ConfigMap", "old")
    assert found is not None
    assert "deletionTimestamp" in found["metadata"]


def test_an_async_function() -> None:
    @oarlock.steps(Job, children=["v1 ConfigMap"], name="later")
    async def later(obj: Job, ctx: oarlock.AsyncContext) -> None:
        await ctx.create(made("web"))
        await ctx.status({"maps": names_of(await ctx.list("ConfigMap"))})

    ctx = FakeAsyncContext(later, of(""))
    asyncio.run(later(of(""), ctx))
    assert ctx.did.status == {"maps": ["web"]}


def test_what_a_watch_finds_is_found_by_its_own_function() -> None:
    @oarlock.steps(
        "v1 Namespace",
        name="counting",
        watches=[oarlock.watch("v1 Pod", wakes=lambda pod: [pod["metadata"]["labels"]["team"]], fields=["status"])],
    )
    def counting(obj: Obj, ctx: oarlock.Context) -> None: ...

    def pod(name: str, team: str) -> Obj:
        meta = {"name": name, "namespace": "live", "labels": {"team": team}}
        return {"kind": "Pod", "metadata": meta, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}

    ctx = FakeContext(
        counting, {"kind": "Namespace", "metadata": {"name": "red"}}, others=[pod("a", "red"), pod("b", "x")]
    )
    (found,) = ctx.list("Pod")
    assert (found["metadata"]["name"], "spec" in found, found["status"]) == ("a", False, {"phase": "Running"})
    with pytest.raises(ValueError, match=r"Pod c: counting: wakes=<lambda> raised KeyError: 'labels'"):
        FakeContext(
            counting,
            {"kind": "Namespace", "metadata": {"name": "red"}},
            others=[{"kind": "Pod", "metadata": {"name": "c", "namespace": "x"}}],
        )


@oarlock.desired(Job, name="wanting")
def wanting(obj: Job, children: oarlock.Children) -> oarlock.Result:
    return oarlock.Result()


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a desired-state function": (
        lambda: FakeContext(wanting, of("")),
        "wanting says what is wanted: call it with oarlock.Children instead of a ctx",
    ),
    "a kind that is not declared": (
        lambda: FakeContext(job, of(""), others=[{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]),
        '"v1 Pod" is none of the kinds that fakejob knows: "fake.example.com/v1 Job", "v1 ConfigMap", "v1 Secret"',
    ),
    "a verb": (
        lambda: FakeContext(job, of(""), refuse={"update": 409}),
        "refuse={'update': 409}: a verb of create, apply, patch, delete, status; a code from 400 on, or 0",
    ),
    "a code": (
        lambda: FakeContext(job, of(""), refuse={"create": 200}),
        "refuse={'create': 200}: a verb of create, apply, patch, delete, status; a code from 400 on, or 0",
    ),
}


@pytest.mark.parametrize(("call", "text"), WRONG.values(), ids=list(WRONG))
def test_what_cannot_be_is_said(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError) as said:
        call()
    assert str(said.value) == text
