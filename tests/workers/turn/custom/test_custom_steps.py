"""The turn that runs a user's function, by hand: what it sends for each request, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

import oarlock
from oarlock.broker.expectations import REWRITTEN, UNDONE, Expectations, Rewritten
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Change, Finish, Verdict
from oarlock.cluster.answer import NO_ANSWER, TOO_LATE, Answer
from oarlock.controllers.entries import StepsController
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.whole import decode_whole, reader
from oarlock.controllers.requests import (
    ApiError,
    Delete,
    Ended,
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
from oarlock.sdk.entries import entries_of
from oarlock.sdk.errors import Later, Never
from oarlock.workers.turn.custom.custom_steps import NeverAgain, StepsContext, custom_steps
from oarlock.workers.turn.custom.rewrites import FREE
from oarlock.workers.turn.steps import Announce, Failures, Look, Read, Resume, Send, TurnFailed, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

CONFIGMAPS, SITES, OWN_RV = "configmaps.v1", "sites.example.com", "5"
FINALIZER = "example.com/site"


@oarlock.resource("example.com/v1")
class Site(oarlock.Object):
    pass


@oarlock.steps(Site, children=["v1 ConfigMap"], every_s=600, retry=oarlock.Retry(base_s=1, max_s=60))
def site(obj: Site, ctx: oarlock.Context) -> None: ...


@oarlock.steps(Site, finalizer=FINALIZER, name="held")
def held(obj: Site, ctx: oarlock.Context) -> None: ...


@held.finalize
def undo(obj: Site, ctx: oarlock.Context) -> None: ...


@oarlock.steps(Site, finalizer=FINALIZER, name="rawly")
def rawly(obj: Site, ctx: oarlock.Context) -> None: ...


@rawly.finalize(raw=True)
def undo_raw(obj: dict[str, Any], ctx: oarlock.Context) -> None: ...


CONTROLLERS = {each.name: each for each in entries_of([site, held, rawly]) if isinstance(each, StepsController)}


def own(rv: str = OWN_RV, **parts: Any) -> Cached:
    meta = {"name": "blog", "namespace": "shop", "uid": "u-1", "generation": 1, **parts.pop("metadata", {})}
    return cached({"apiVersion": "example.com/v1", "kind": "Site", "metadata": meta, "spec": {}, **parts}, rv)


def configmap(name: str = "web", owner: str = "u-1", uid: str = "c-1") -> dict[str, Any]:
    refs = [{"apiVersion": "example.com/v1", "kind": "Site", "name": "blog", "uid": owner, "controller": True}]
    meta = {"name": name, "namespace": "shop", "uid": uid, **({"ownerReferences": refs} if owner else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def cached(obj: dict[str, Any], rv: str = "7") -> Cached:
    obj["metadata"].setdefault("resourceVersion", rv)
    found_rv, whole = reader(obj["apiVersion"], obj["kind"])(json.dumps(obj).encode())
    return Cached(found_rv, whole.uid, codec.encode(whole))


def answer(code: int = 200, rv: str = "20", obj: dict[str, Any] | None = None) -> Answer:
    if code in (200, 201):
        found = obj or configmap()
        found["metadata"]["resourceVersion"] = rv
        return Answer(code, json.dumps(found).encode())
    if code <= 0:
        return Answer(code, error="no answer")
    reason = {409: "Conflict", 404: "NotFound", 4090: "AlreadyExists"}.get(code, "Forbidden")
    real = 409 if code == 4090 else code
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": "no",
        "code": real,
    }
    return Answer(real, json.dumps(status).encode())


class Run:
    """A function that asks what is in ``script``, and keeps the answers. ``raises``: its end."""

    def __init__(self, script: Sequence[Request], raises: BaseException | None = None) -> None:
        self._script, self._raises, self.answers, self.abandoned = list(script), raises, list[Any](), False
        self._begun = False

    def next(self, given: Any) -> Request | Ended:
        if self._begun:
            self.answers.append(given)
        self._begun = True
        if isinstance(given, Exception):
            return Ended(given)  # as most functions do with what their ctx raises
        return self._script.pop(0) if self._script else Ended(self._raises)

    def resume(self, answer: Any = None) -> Any:
        raise AssertionError("the driver of the test resumes it")

    def abandon(self) -> None:
        self.abandoned = True


class Play:
    """One turn. ``answers``: to the steps other than Resume, in order; ``asked``: these steps; ``finish``: its end."""

    def __init__(
        self,
        *script: Request,
        answers: Iterable[Any] = (),
        raises: BaseException | None = None,
        owner: Cached | None = None,
        children: Sequence[Cached] = (),
        controller: str = "site",
        never: NeverAgain | None = None,
        min_rv: str = "",
        gone: bool = False,
        noted: tuple[str, ...] = (),
        now_ms: int = 0,
    ) -> None:
        self.run, self.asked, self.undone = Run(script, raises), list[Any](), list[bool]()
        there, expectations = None if gone else owner or own(), Expectations.parse(noted)
        claim = Claim(
            controller, "shop/blog", "nonce", there, list(children), expectations, min_rv, False, 0, now_ms=now_ms
        )
        self.outcome, self.failure = TurnOutcome(claim), ""
        ctx = StepsContext(self._start, never or NeverAgain())
        turn, given, result = custom_steps(claim, CONTROLLERS[controller], ctx, self.outcome), iter(answers), None
        try:
            while True:
                step = turn.send(result)
                if isinstance(step, Resume):
                    result = self.run.next(step.answer)
                    continue
                self.asked.append(step)
                result = next(given)
        except StopIteration as end:
            self.finish: Finish = end.value
        except TurnFailed as failed:
            self.finish, self.failure = failed.finish, str(failed)
        assert next(given, None) is None, "an answer was not asked for"

    def _start(self, whole: Any, undo: bool) -> Run:
        self.given = whole
        self.undone.append(undo)
        return self.run

    @property
    def ran(self) -> bool:
        return bool(self.undone)

    @property
    def writes(self) -> list[Write]:
        return [write for step in self.asked if isinstance(step, Send) for write in step.writes]


def body(write: Write) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(write.body)
    return found


def put(verb: str, name: str = "web") -> Put:
    wish = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}
    return Put(verb, CONFIGMAPS, "shop", name, json.dumps(wish).encode(), True)


GET, PATCH = Get(CONFIGMAPS, "shop", "web"), Patch(CONFIGMAPS, "shop", "web", b'{"data":{"a":"b"}}')
DELETE = Delete(CONFIGMAPS, "shop", "web")


# -- whether the function runs -----------------------------------------------------------------------------------------


def test_what_has_gone_is_forgotten() -> None:
    play = Play(gone=True)
    assert (play.finish.verdict, play.ran) == (Verdict.GONE, False)


def test_nothing_runs_on_a_cache_that_lacks_our_writes() -> None:
    play = Play(min_rv="configmaps.v1=9")
    assert (play.finish.verdict, play.finish.changes, play.ran) == (Verdict.OK, (), False)


def test_the_finalizer_comes_before_the_first_run() -> None:
    play = Play(controller="held", answers=[[answer(rv="6")]], owner=own(metadata={"finalizers": ["a.b/c"]}))
    (write,) = play.writes
    assert (write.verb, write.resource, play.ran) == ("merge", SITES, False)
    meta = {"uid": "u-1", "resourceVersion": OWN_RV, "finalizers": ["a.b/c", FINALIZER]}
    assert body(write) == {"metadata": meta}
    assert play.finish.changes == (Change.min_rv(SITES, "6"),)


@pytest.mark.parametrize(
    ("code", "verdict"), [(409, Verdict.RETRY), (404, Verdict.OK), (TOO_LATE, Verdict.RETRY), (403, Verdict.RETRY)]
)
def test_a_finalizer_that_is_refused(code: int, verdict: Verdict) -> None:
    play = Play(controller="held", answers=[[answer(code)]])
    assert (play.finish.verdict, play.ran, bool(play.failure)) == (verdict, False, code == 403)


DELETING = {"deletionTimestamp": "2026-01-05T08:00:00Z"}


def test_what_is_being_deleted_is_undone_and_then_let_go_in_the_version_that_the_function_left() -> None:
    owner = own(metadata={**DELETING, "finalizers": [FINALIZER, "a.b/c"]})
    status = SetStatus(b'{"status":{"x":1}}')
    told = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"uid": "u-1", "name": "blog"}}
    play = Play(
        status, controller="held", owner=owner, answers=[[answer(rv="8", obj=told)], [answer(rv="9", obj=told)]]
    )
    assert play.undone == [True]
    assert body(play.writes[1]) == {"metadata": {"uid": "u-1", "resourceVersion": "8", "finalizers": ["a.b/c"]}}


def test_what_was_undone_is_not_undone_again_though_the_cache_shows_the_finalizer() -> None:
    """The answer to the patch that lets an object go has the version before it."""
    owner = own(metadata={**DELETING, "finalizers": [FINALIZER]})
    (note,) = [
        each
        for each in Play(controller="held", owner=owner, answers=[[answer()]]).finish.changes
        if each.name == UNDONE
    ]
    assert note == Change.set(UNDONE, "u-1")
    play = Play(controller="held", owner=owner, noted=(note.name, note.value))
    assert (play.ran, play.writes, play.finish.verdict) == (False, [], Verdict.OK)
    assert Play(controller="held", owner=owner, noted=(UNDONE, "u-0"), answers=[[answer()]]).ran


@pytest.mark.parametrize("code", [409, 403, NO_ANSWER])
def test_what_was_not_let_go_is_undone_once_more(code: int) -> None:
    owner = own(metadata={**DELETING, "finalizers": [FINALIZER]})
    play = Play(controller="held", owner=owner, answers=[[answer(code)]])
    assert (play.ran, UNDONE in {each.name for each in play.finish.changes}) == (True, False)


def test_what_is_not_undone_keeps_its_finalizer() -> None:
    owner = own(metadata={**DELETING, "finalizers": [FINALIZER]})
    play = Play(controller="held", owner=owner, raises=RuntimeError("down"))
    assert (play.writes, play.finish.verdict) == ([], Verdict.RETRY)


GOING = {**DELETING, "finalizers": [FINALIZER]}


def test_what_undoes_rawly_gets_the_object_as_the_api_has_it() -> None:
    """The cache has only the fields that the type names today."""
    meta = {"name": "blog", "namespace": "shop", "uid": "u-1", **GOING}
    live = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": meta, "spec": {"renamed": "since"}}
    play = Play(controller="rawly", owner=own(metadata=GOING), answers=[[answer(rv="5", obj=live)], [answer(rv="9")]])
    assert play.asked[0] == Read(SITES, "shop", ("blog",))
    assert (json.loads(play.given.body)["spec"], play.undone) == ({"renamed": "since"}, [True])
    assert body(play.writes[0])["metadata"]["finalizers"] == []


@pytest.mark.parametrize(
    ("code", "uid", "verdict"),
    [(404, "", Verdict.OK), (200, "u-2", Verdict.OK), (500, "", Verdict.RETRY), (NO_ANSWER, "", Verdict.RETRY)],
    ids=["gone", "another", "refused", "unanswered"],
)
def test_what_cannot_be_read_is_not_undone(code: int, uid: str, verdict: Verdict) -> None:
    live = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "blog", "uid": uid}}
    play = Play(controller="rawly", owner=own(metadata=GOING), answers=[[answer(code, obj=live)]])
    assert (play.ran, play.writes, play.finish.verdict) == (False, [], verdict)


def test_an_object_that_never_holds_is_told_of_again_and_again() -> None:
    """Nobody changes what is being deleted, and an event lasts an hour."""
    never = NeverAgain()
    owner = own(metadata=GOING)
    for turn in (1, 2, 3):
        play = Play(controller="held", owner=owner, raises=Never("it does not fit"), never=never)
        assert play.ran == (turn == 1)
        assert [(each.type, each.reason, each.message) for each in play.outcome.events] == [
            ("Warning", "Failed", "it does not fit")
        ]
        assert (play.finish.verdict, play.finish.delay_ms, play.writes) == (Verdict.OK, 600_000, [])
    assert Play(
        controller="held", owner=own("6", metadata={**GOING, "labels": {"a": "b"}}), never=never, answers=[[answer()]]
    ).ran


def test_what_undoes_rawly_and_never_will_is_asked_again_once_a_field_has_changed_that_is_not_cached() -> None:
    never, owner = NeverAgain(), own(metadata=GOING)

    def play(zone: str, raises: BaseException | None = None) -> Play:
        meta = {"name": "blog", "namespace": "shop", "uid": "u-1", **GOING}
        live = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": meta, "spec": {"zone": zone}}
        answers = [[answer(rv=OWN_RV, obj=live)], *([] if raises else [[answer(rv="9")]])]
        return Play(controller="rawly", owner=owner, raises=raises, never=never, answers=answers)

    assert play("", Never("it has no zone")).ran
    assert not play("", Never("it has no zone")).ran
    assert play("a").ran


def test_what_is_being_deleted_and_not_held_is_left_alone() -> None:
    for controller in ("held", "site"):
        assert not Play(controller=controller, owner=own(metadata={**DELETING, "finalizers": ["a.b/c"]})).ran


def test_an_index_function_that_failed_is_told_on_the_object() -> None:
    fine = own()
    faulty = msgspec.structs.replace(decode_whole(fine.blob), fault="site: names=f returned None")
    play = Play(owner=fine._replace(blob=codec.encode(faulty)))
    assert [(each.reason, each.message) for each in play.outcome.events] == [
        ("IndexFailed", "site: names=f returned None")
    ]
    assert play.ran


# -- requests ----------------------------------------------------------------------------------------------------------


def test_reads_come_from_the_cache_and_lists_from_the_claim() -> None:
    play = Play(
        GET, List(CONFIGMAPS), answers=[[cached(configmap())]], children=[cached(configmap("other", uid="c-2"))]
    )
    assert play.asked == [Look(CONFIGMAPS, ids=("shop/web",))]
    web, listed = play.run.answers
    assert json.loads(web)["metadata"]["name"] == "web"
    assert [json.loads(each)["metadata"]["name"] for each in listed] == ["other"]


def test_reads_and_lists_are_past_our_own_writes() -> None:
    made = {**configmap(), "data": {"a": "b"}}
    script = (put("apply"), GET, List(CONFIGMAPS), DELETE, GET, List(CONFIGMAPS))
    gone = Answer(200, b'{"kind":"Status","apiVersion":"v1","status":"Success"}')
    play = Play(*script, answers=[[], [answer(obj=made)], [gone]])
    kinds = [type(step).__name__ for step in play.asked]
    assert kinds == ["Look", "Send", "Send"]
    assert json.loads(play.run.answers[1])["data"] == {"a": "b"}
    assert len(play.run.answers[2]) == 1
    assert play.run.answers[3:] == [None, None, []]


def test_an_apply_of_what_is_not_there_is_not_forced_and_of_what_is_there_carries_its_version() -> None:
    play = Play(put("apply"), put("apply"), answers=[[], [answer(rv="20")], [answer(rv="21")]])
    first, second = play.writes
    assert (first.verb, first.force, first.manager) == ("apply", False, "oarlock-site")
    assert body(first)["metadata"] == {"name": "web", "namespace": "shop"}
    assert second.force
    assert (body(second)["metadata"]["uid"], body(second)["metadata"]["resourceVersion"]) == ("c-1", "20")
    assert play.finish.changes == (Change.min_rv(CONFIGMAPS, "20"), Change.min_rv(CONFIGMAPS, "21"))


def test_a_foreign_object_of_the_name_is_refused_without_a_request() -> None:
    for verb in ("create", "apply"):
        play = Play(put(verb), answers=[[cached(configmap(owner="another"))], 0])
        assert play.writes == []
        assert play.run.answers[0].code == 409
        assert "not controlled by shop/blog" in play.failure


def test_a_repeated_create_finds_its_own() -> None:
    play = Play(put("create"), answers=[[], [answer(4090)], [answer(rv="30")]])
    assert [type(step).__name__ for step in play.asked] == ["Look", "Send", "Read"]
    assert json.loads(play.run.answers[0])["metadata"]["uid"] == "c-1"
    assert play.finish.verdict is Verdict.OK
    foreign = Play(put("create"), answers=[[], [answer(4090)], [answer(obj=configmap(owner="another"))], 0])
    assert foreign.run.answers[0].code == 409


@pytest.mark.parametrize("request_", [PATCH, DELETE], ids=["patch", "delete"])
def test_changes_carry_uid_and_version_of_what_was_seen(request_: Request) -> None:
    (write,) = Play(GET, request_, answers=[[cached(configmap())], [answer()]]).writes
    if write.verb == "delete":
        assert (write.uid, write.rv, write.propagation) == ("c-1", "7", "Background")
    else:
        assert body(write) == {"data": {"a": "b"}, "metadata": {"uid": "c-1", "resourceVersion": "7"}}


@pytest.mark.parametrize("request_", [PATCH, DELETE], ids=["patch", "delete"])
def test_what_the_cache_lacks_is_read_before_it_is_changed(request_: Request) -> None:
    play = Play(request_, answers=[[], [answer(rv="40")], [answer(rv="41")]])
    assert play.asked[1] == Read(CONFIGMAPS, "shop", ("web",))
    (write,) = play.writes
    assert (write.rv or body(write)["metadata"]["resourceVersion"]) == "40"


def test_a_delete_of_nothing_is_done_and_a_patch_of_nothing_is_a_failure_with_an_event() -> None:
    assert Play(DELETE, answers=[[], [answer(404)]]).run.answers == [None]
    patched = Play(PATCH, answers=[[], [answer(404)], 0])
    assert (patched.run.answers[0].code, patched.run.answers[0].stale) == (404, False)
    assert [each.reason for each in patched.outcome.events] == ["Failed"]


@pytest.mark.parametrize("request_", [PATCH, DELETE, SetStatus(b'{"status":{}}')], ids=["patch", "delete", "status"])
def test_a_version_that_does_not_hold_any_more_is_no_failure(request_: Request) -> None:
    looks = [] if isinstance(request_, SetStatus) else [[cached(configmap())]]
    play = Play(request_, answers=[*looks, [answer(409)]])
    assert (play.finish.verdict, play.failure, play.outcome.events) == (Verdict.RETRY, "", [])


def test_what_could_not_be_sent_in_time_is_sent_again() -> None:
    play = Play(PATCH, answers=[[cached(configmap())], [answer(TOO_LATE)], [answer(TOO_LATE)], [answer()]])
    assert len(play.writes) == 3
    assert play.finish.verdict is Verdict.OK


def test_a_write_without_an_answer_is_an_error_of_the_function() -> None:
    play = Play(PATCH, answers=[[cached(configmap())], [answer(NO_ANSWER)], 0])
    assert isinstance(play.run.answers[0], ApiError)
    assert (play.finish.verdict, play.failure) == (Verdict.RETRY, "ApiError: configmaps.v1 shop/web: no answer")


def test_still_mine_asks_redis_and_events_wait_for_the_end() -> None:
    play = Play(StillMine(), Tell("Normal", "Made", "it"), answers=[[]])
    assert play.asked == [Announce("", ())]
    assert [(each.reason, each.message) for each in play.outcome.events] == [("Made", "it")]


# -- how it ends -------------------------------------------------------------------------------------------------------


def test_the_earlier_of_timer_and_again_counts() -> None:
    assert Play().finish.delay_ms == 600_000
    assert Play(LookAgain(5_000)).finish.delay_ms == 5_000
    assert Play(LookAgain(700_000)).finish.delay_ms == 600_000
    assert Play(controller="held", owner=own(metadata={"finalizers": [FINALIZER]})).finish.delay_ms is None


@pytest.mark.parametrize(("failures", "wait_ms"), [(0, 1_000), (3, 8_000), (6, 60_000), (5_000, 60_000)])
def test_back_off_is_the_controllers(failures: int, wait_ms: int) -> None:
    play = Play(raises=KeyError("x"), answers=[failures])
    assert play.asked == [Failures()]
    assert (play.finish.verdict, play.finish.delay_ms) == (Verdict.RETRY, wait_ms)
    assert play.finish.changes == (Change.again(60_000),)
    assert play.failure == "KeyError: 'x'"
    assert [each.type for each in play.outcome.events] == ["Warning"]


class Silent(Exception):
    """Its words cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_that_cannot_be_told_is_told_of_by_its_name() -> None:
    play = Play(raises=Silent(), answers=[0])
    assert play.failure == "Silent: (its __str__ raised RuntimeError)"
    assert [each.message for each in play.outcome.events] == [play.failure]


def test_a_controller_with_the_queues_own_back_off_asks_nothing() -> None:
    play = Play(controller="held", owner=own(metadata={"finalizers": [FINALIZER]}), raises=KeyError("x"))
    assert (play.asked, play.finish.delay_ms, play.finish.changes) == ([], None, ())


def test_later_is_no_failure() -> None:
    play = Play(raises=Later(seconds=30, reason="it is being made"))
    assert (play.finish.verdict, play.finish.delay_ms, play.failure) == (Verdict.OK, 30_000, "")
    assert [(each.type, each.message) for each in play.outcome.events] == [("Normal", "it is being made")]


def test_never_holds_as_long_as_the_object_is_what_it_was_but_for_its_status() -> None:
    never = NeverAgain()
    first = Play(raises=Never("no such region"), never=never)
    assert (first.finish.verdict, first.finish.delay_ms, first.failure) == (Verdict.OK, None, "")
    assert not Play(never=never).ran
    assert not Play(never=never, owner=own("6", status={"x": 1})).ran
    assert Play(never=never, owner=own("7", spec={"region": "eu"})).ran
    assert Play(never=never).ran  # it was forgotten


def test_the_oldest_of_too_many_hopeless_ones_is_tried_again() -> None:
    never = NeverAgain(most=2)
    owners = [own(metadata={"uid": f"u-{number}"}) for number in range(3)]
    for owner in owners:
        Play(raises=Never("no"), never=never, owner=owner)
    assert [Play(never=never, owner=owner).ran for owner in owners] == [True, False, False]


def test_a_turn_that_ends_before_its_function_abandons_it() -> None:
    run = Run([GET])
    claim = Claim("site", "shop/blog", "nonce", own(), [], None, "", False, 0)
    ctx = StepsContext(lambda whole, undo: run, NeverAgain())
    turn = custom_steps(claim, CONTROLLERS["site"], ctx, TurnOutcome(claim))
    assert isinstance(turn.send(None), Resume)
    turn.close()
    assert run.abandoned


def test_a_finalizer_that_nobody_would_remove_is_no_definition() -> None:
    @oarlock.steps(Site, finalizer=FINALIZER)
    def stuck(obj: Site, ctx: oarlock.Context) -> None: ...

    with pytest.raises(oarlock.BadDefinition, match="nothing would ever remove its finalizer"):
        entries_of([stuck])


def test_values_cross_as_structures_of_bytes_and_texts() -> None:
    """So that what a function changes afterwards changes no request."""
    for request in (GET, PATCH, DELETE, put("apply"), SetStatus(b"{}"), List("x")):
        assert all(isinstance(each, str | bytes | bool) for each in request)
    assert msgspec.json.encode(GET)


def test_a_function_that_writes_its_status_and_waits_comes_again_when_it_says() -> None:
    """A status such as "42 %" is another one each time. It is slowed down no further than to what Later asks for."""
    noted, rv, now_ms = "", int(OWN_RV), 10_000
    for _ in range(FREE + 5):
        told = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"uid": "u-1", "name": "blog"}}
        play = Play(
            SetStatus(b'{"status":{"x":1}}'),
            owner=own(str(rv)),
            raises=Later(1.5),
            answers=[[answer(rv=str(rv + 1), obj=told)]],
            noted=(REWRITTEN, noted) if noted else (),
            now_ms=now_ms,
        )
        noted, rv = next(each.value for each in play.finish.changes if each.name == REWRITTEN), rv + 1
        assert Rewritten.parse(noted).until_ms <= now_ms + 1_500
        now_ms += 1_500


def not_found(message: str, name: str = "") -> Answer:
    status = {"kind": "Status", "status": "Failure", "reason": "NotFound", "message": message, "code": 404}
    return Answer(404, json.dumps(status | {"details": {"name": name} if name else {}}).encode())


NOT_FOUND = not_found('sites.example.com "blog" not found', "blog")
OF_THE_PATH = not_found("the server could not find the requested resource")
THERE = Answer(200, b'{"kind":"Site","metadata":{"name":"blog","uid":"u-1"}}')
ANOTHER = Answer(200, b'{"kind":"Site","metadata":{"name":"blog","uid":"u-2"}}')


@pytest.mark.parametrize(
    ("said", "looks", "stale", "text"),
    [
        (NOT_FOUND, NOT_FOUND, True, "not found"),
        (NOT_FOUND, ANOTHER, True, "not found"),
        (NOT_FOUND, THERE, False, "its kind has no status subresource"),
        (OF_THE_PATH, THERE, False, "its kind has no status subresource"),
        (OF_THE_PATH, OF_THE_PATH, False, "could not find the requested resource"),
    ],
    ids=[
        "gone",
        "another",
        "no status of a custom kind",
        "no status of a kind of the server",
        "the kind is not served",
    ],
)
def test_a_status_that_was_not_found(said: Answer, looks: Answer, stale: bool, text: str) -> None:
    """Only an object that has gone lets the turn end in silence."""
    play = Play(SetStatus(b'{"status":{"x":1}}'), answers=[[said], [looks], *([] if stale else [0])])
    (error,) = play.run.answers
    assert (error.code, error.stale, text in str(error)) == (404, stale, True)
    assert [each.reason for each in play.outcome.events] == ([] if stale else ["Failed"])
    assert play.finish.verdict is Verdict.RETRY


def test_a_finalizer_of_a_kind_that_is_not_served_is_a_failure() -> None:
    play = Play(controller="held", answers=[[OF_THE_PATH]])
    assert (play.finish.verdict, play.failure) == (
        Verdict.RETRY,
        "finalizers of shop/blog: the server could not find the requested resource",
    )
