"""The turn of a controller that says what is wanted, by hand: the moments that a cluster shows seldom."""

from __future__ import annotations

import json
import logging
from asyncio import CancelledError
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

import oarlock
from oarlock.broker.expectations import Expectations
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Change, Entry, Finish, Verdict
from oarlock.cluster.answer import Answer
from oarlock.controllers.entries import DesiredController
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.whole import reader
from oarlock.controllers.wanted import CHANGED, UserError
from oarlock.sdk.entries import entries_of
from oarlock.workers.process.exit_code import ForcedStop
from oarlock.workers.turn.custom.desired import DesiredContext, desired
from oarlock.workers.turn.steps import Announce, Grant, Read, Reserve, Send, TurnFailed, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

MAPS = "configmaps.v1"
SITE = oarlock.Kind("example.com/v1", "Site")
calls: list[str] = []


def wish(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": "1"}}


@oarlock.desired(SITE, children=["v1 ConfigMap"])
def site(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    calls.append("site")
    return oarlock.Result([wish("a"), wish("b")])


@oarlock.desired(SITE, children=["v1 ConfigMap"], every_s=60)
def clock(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    calls.append("clock")
    return oarlock.Result()


@oarlock.desired(SITE)
def telling(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    return oarlock.Result(status={"ready": True})


@oarlock.desired(SITE, children=["v1 ConfigMap"], every_s=60)
def raising(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    raise raised[-1]


raised: list[BaseException] = []
CONTROLLERS = {
    each.name: each for each in entries_of([site, clock, telling, raising]) if isinstance(each, DesiredController)
}


def cached(obj: dict[str, Any], rv: str, fault: str = "") -> Cached:
    obj["metadata"]["resourceVersion"] = rv
    _, whole = reader(obj["apiVersion"], obj["kind"])(json.dumps(obj).encode())
    return Cached(rv, whole.uid, codec.encode(msgspec.structs.replace(whole, fault=fault)))


def owner(fault: str = "") -> Cached:
    meta = {"name": "blog", "namespace": "shop", "uid": "o-1"}
    return cached({"apiVersion": SITE.api_version, "kind": SITE.kind, "metadata": meta}, "5", fault)


def as_applied(write: Write, uid: str, rv: str) -> dict[str, Any]:
    obj: dict[str, Any] = json.loads(write.body)
    obj["metadata"] |= {"uid": uid, "resourceVersion": rv}
    return obj


def not_found(message: bytes, details: bytes = b"{}") -> Answer:
    said = b'{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"%s","details":%s}'
    return Answer(404, said % (message, details))


NOT_FOUND = not_found(b'sites.example.com \\"blog\\" not found', b'{"name":"blog"}')
OF_THE_PATH = not_found(b"the server could not find the requested resource")
THERE = Answer(200, b'{"kind":"Site","metadata":{"name":"blog","uid":"o-1"}}')


class Play:
    """Turns of one worker. ``writes``: all that it sent; ``granted``: of the rate limit, turn by turn; ``looks``: what
    it sees of its object, live.
    """

    def __init__(self, controller: str = "site", looks: Answer = NOT_FOUND) -> None:
        self._controller, self._looks = CONTROLLERS[controller], looks
        self._ctx, self.writes = DesiredContext.of(self._controller), list[Write]()
        self.announced = list[Entry]()

    def over(self, **changed: Any) -> None:
        """The same controller, but for this."""
        self._ctx = DesiredContext.of(msgspec.structs.replace(self._controller, **changed))

    def turn(
        self,
        children: Sequence[Cached] = (),
        *,
        unsettled: bool = False,
        granted: int = 256,
        answers: Iterable[Answer | None] = (),
        fault: str = "",
        noted: Sequence[str] = (),
    ) -> Finish:
        expectations = Expectations.parse(noted) if noted else None
        claim = Claim("site", "shop/blog", "nonce", owner(fault), list(children), expectations, "", unsettled, 0)
        self.outcome, given = TurnOutcome(claim), iter(answers)
        steps, result = desired(claim, self._ctx, self.outcome), None
        try:
            while True:
                step: Any = steps.send(result)
                match step:
                    case Reserve(wanted=wanted):
                        result = Grant(min(granted, wanted), 40)
                    case Announce(entries=entries):
                        self.announced += entries
                        result = []
                    case Send(writes=writes):
                        self.writes += writes
                        result = [next(given, None) or self._done(each) for each in writes]
                    case Read():
                        result = [self._looks]
                    case _:
                        result = []
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        except TurnFailed as failed:
            return failed.finish

    def _done(self, write: Write) -> Answer:
        if write.verb == "delete":
            return Answer(200, b"{}")
        rv = str(20 + len(self.writes))
        return Answer(200, json.dumps(as_applied(write, f"u-{write.name}", rv)).encode())

    def children(self) -> list[Cached]:
        return [
            cached(as_applied(each, f"u-{each.name}", f"{20 + n}"), f"{20 + n}") for n, each in enumerate(self.writes)
        ]


CONFLICT = Answer(409, b'{"kind":"Status","status":"Failure","reason":"Conflict","code":409}')
NOT_ALL: dict[str, dict[str, Any]] = {
    "the rate limit left one over": {"granted": 1},
    "one had changed meanwhile": {"answers": [None, CONFLICT]},
}


@pytest.mark.parametrize("case", NOT_ALL)
def test_after_a_loss_a_child_that_was_not_changed_stays_at_risk(case: str) -> None:
    """A delete of a dead worker may be meant for that one."""
    play = Play()
    play.turn()
    children, before = play.children(), len(play.writes)
    unwanted = {**wish("c"), "metadata": {**json.loads(play.writes[0].body)["metadata"], "name": "c", "uid": "u-c"}}
    finish = play.turn([*children, cached(unwanted, "30")], unsettled=True, **NOT_ALL[case])
    assert CHANGED in play.writes[before].body.decode()
    fields = {f"delete {MAPS}/shop/{name}" for name in "abc"}
    dropped = {each.name for each in finish.changes if each.op == "drop"}
    assert {entry.field for entry in play.announced} == fields
    assert f"delete {MAPS}/shop/a" in dropped
    assert f"delete {MAPS}/shop/b" in fields - dropped == play.outcome.open


def test_a_function_with_a_timer_is_asked_again_though_nothing_has_changed() -> None:
    play = Play("clock")
    calls.clear()
    play.turn()
    play.turn()
    assert calls == ["clock", "clock"]


@pytest.mark.parametrize(("every_ms", "due_ms"), [(60_000, 60_000), (500, 1_000), (None, 600_000)])
def test_a_failed_turn_comes_again_by_every_s_at_the_latest_and_by_base_s_at_the_earliest(
    every_ms: int | None, due_ms: int
) -> None:
    def fails(*given: Any) -> Any:
        raise UserError("down")

    play = Play()
    play.over(want=fails, every_ms=every_ms, retry_base_ms=1_000, retry_max_ms=600_000)
    finish = play.turn()
    assert (finish.verdict, finish.delay_ms, finish.changes) == (Verdict.RETRY, 1_000, (Change.again(due_ms),))


def test_a_function_without_one_is_not() -> None:
    play = Play()
    play.turn()
    children = play.children()
    calls.clear()
    play.turn(children)
    play.turn(children)
    assert calls == ["site"]


def test_a_child_that_does_not_fit_its_schema_is_told_of() -> None:
    """The API server answers 500, which by itself would be tried again without a word."""
    message = b"failed to create typed patch object (shop/a; v1, Kind=ConfigMap): .dta: field not declared in schema"
    play = Play()
    status = b'{"kind":"Status","status":"Failure","message":"%s","code":500}' % message
    play.turn(answers=[Answer(500, status)])
    assert "field not declared" in play.outcome.error
    assert [each.reason for each in play.outcome.events] == ["ApplyFailed", "Created"]


def test_the_event_of_a_refused_child_has_the_reason_and_no_values() -> None:
    """A server repeats what it refuses: a secret, or so much that the reason would be cut off."""
    message = f'ConfigMap "a" is invalid: data: Invalid value: {{"a":"{"secret" * 300}"}}: field is immutable'
    play = Play()
    status = msgspec.json.encode({"kind": "Status", "status": "Failure", "message": message, "code": 422})
    play.turn(answers=[Answer(422, status)])
    told = 'ConfigMap a: ConfigMap "a" is invalid: data: Invalid value: ...: field is immutable'
    assert (play.outcome.events[0].message, play.outcome.error) == (told, told)


def test_an_index_function_that_failed_is_told_on_the_object() -> None:
    play = Play()
    play.turn(fault="site: names=secret_of returned None")
    told = [(each.reason, each.message) for each in play.outcome.events]
    assert told[0] == ("IndexFailed", "site: names=secret_of returned None")


class Silent(Exception):
    """Its words cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


SILENT = "raising: Silent: (its __str__ raised RuntimeError)"
RAISED: list[tuple[BaseException, Verdict, int | None, tuple[str, ...]]] = [
    (oarlock.Later(seconds=5, reason="it comes"), Verdict.OK, 5_000, ("Normal", "Waiting", "it comes")),
    (oarlock.Later(seconds=90), Verdict.OK, 60_000, ()),
    (oarlock.Never("no such region"), Verdict.OK, 60_000, ("Warning", "ReconcileFailed", "no such region")),
    (KeyError("x"), Verdict.RETRY, 5, ("Warning", "ReconcileFailed", "raising: KeyError: 'x'")),
    (Silent(), Verdict.RETRY, 5, ("Warning", "ReconcileFailed", SILENT)),
    (SystemExit("bad input"), Verdict.RETRY, 5, ("Warning", "ReconcileFailed", "raising: SystemExit: bad input")),
    (SystemExit(), Verdict.RETRY, 5, ("Warning", "ReconcileFailed", "raising: SystemExit: ")),
    (CancelledError(), Verdict.RETRY, 5, ("Warning", "ReconcileFailed", "raising: CancelledError: ")),
    (KeyboardInterrupt(), Verdict.RETRY, 5, ("Warning", "ReconcileFailed", "raising: KeyboardInterrupt: ")),
]


def test_a_second_request_to_stop_is_no_failure_of_the_function() -> None:
    raised.append(ForcedStop())
    with pytest.raises(ForcedStop):
        Play("raising").turn()


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit("bad input")], ids=repr)
def test_a_function_that_failed_is_logged_with_its_controller_and_key(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    raised.append(error)
    with caplog.at_level(logging.WARNING, "oarlock"):
        Play("raising").turn()
    (said,) = caplog.records
    assert said.getMessage().startswith("event=function_failed controller=raising key=")
    assert said.exc_info is not None
    assert said.exc_info[1] is error  # with the traceback of the user's code


@pytest.mark.parametrize(("error", "verdict", "wait_ms", "told"), RAISED, ids=[repr(each[0]) for each in RAISED])
def test_what_a_function_raises(error: BaseException, verdict: Verdict, wait_ms: int, told: tuple[str, ...]) -> None:
    raised.append(error)
    play = Play("raising")
    finish = play.turn()
    assert (finish.verdict, finish.delay_ms, play.writes) == (verdict, wait_ms, [])
    assert [(each.type, each.reason, each.message) for each in play.outcome.events] == ([told] if told else [])


@pytest.mark.parametrize("error", [oarlock.Later(3_600), oarlock.Never("no such region"), KeyError("x")])
def test_a_delete_that_can_land_no_more_ends_though_the_function_wants_nothing(error: Exception) -> None:
    """Else the queue would bring the key again every ten seconds, for as long as the function waits."""
    raised.append(error)
    field = f"delete {MAPS}/shop/c"
    noted = ["owner", "o-1", field, "pending since_ms=1 sent_ms=1 tries=1 uid=u-c rv=9 over"]
    finish = Play("raising").turn([cached(wish("c") | {"metadata": {"name": "c", "uid": "u-c"}}, "9")], noted=noted)
    assert Change.drop(field) in finish.changes


NO_STATUS = "its kind has no status subresource, so nobody can write its status: write none, or add it to the kind"


@pytest.mark.parametrize(
    ("answer", "looks", "verdict", "told"),
    [
        (NOT_FOUND, NOT_FOUND, Verdict.OK, []),
        (NOT_FOUND, THERE, Verdict.RETRY, [("StatusFailed", NO_STATUS)]),
        (OF_THE_PATH, THERE, Verdict.RETRY, [("StatusFailed", NO_STATUS)]),
        (
            OF_THE_PATH,
            OF_THE_PATH,
            Verdict.RETRY,
            [("StatusFailed", "the server could not find the requested resource")],
        ),
    ],
    ids=["gone", "no status of a custom kind", "no status of a kind of the server", "the kind is not served"],
)
def test_a_status_that_was_not_found(
    answer: Answer, looks: Answer, verdict: Verdict, told: list[tuple[str, str]]
) -> None:
    play = Play("telling", looks)
    assert play.turn(answers=[answer]).verdict is verdict
    assert [(each.reason, each.message) for each in play.outcome.events] == told
