"""Size writes: what becomes of each announced one, by the cache, by an answer, or by D and a look."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from oarlock.broker.expectations import Expectations
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.cluster.answer import NO_ANSWER, Answer
from oarlock.controllers.deployment.plan import SizeWrite, Update
from oarlock.controllers.objects.model import ReplicaSet
from oarlock.workers.turn.size_writes import Known, carry_out, resolve
from oarlock.workers.turn.steps import Announce, Grant, Read, Reserve, Send
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.controllers.deployment.sizes_builders import sized
from tests.simulation.traffic import refusal

FIELD = "scale replicasets/a"
PENDING = "pending since_ms=1 sent_ms=1 tries=1 uid=uid-a rv=5 low=1 high=3"
OPEN, OVER, ANSWERED = f"{PENDING} until_ms=9", f"{PENDING} over", "answered uid=uid-a low=1 high=3"
CLAIM = Claim("deployment", "default/web", "nonce", Cached("4", "uid-web", b""), [], None, "", False, 0)
OBSERVED, BEHIND = sized("a", 1), sized("a", 1, generation=2)
"""Its status has observed its size, or not yet."""
OTHER = sized("a", 1, uid="uid-b")
GONE = refusal(404, "NotFound")
NOTHING = Answer(NO_ANSWER, error="no answer")
ENDED, KEPT = ("drop", FIELD, ""), ("set", FIELD, ANSWERED)
CLOSED, STILL_OPEN = {"uid-a": SizeWrite(1, 3)}, {"uid-a": SizeWrite(1, 3, open=True)}


def live(rv: str, uid: str = "uid-a") -> Answer:
    return Answer(200, orjson.dumps({"metadata": {"uid": uid, "resourceVersion": rv}}))


def changes(outcome: TurnOutcome) -> list[tuple[str, str, str]]:
    return [(each.op, each.name, each.value) for each in outcome.changes]


def must_pass(rv: str) -> tuple[str, str, str]:
    return ("need", "replicasets", rv)


CASES: list[Any] = [
    pytest.param(OPEN, ("5", OBSERVED), None, [], STILL_OPEN, True, id="may land: counts both ways"),
    pytest.param(OPEN, ("5", BEHIND), None, [], STILL_OPEN, True, id="may land, an earlier one is not observed"),
    pytest.param(OPEN, ("6", BEHIND), None, [KEPT], CLOSED, True, id="a newer version decides it"),
    pytest.param(OPEN, ("6", OBSERVED), None, [ENDED], {}, True, id="decided and observed"),
    pytest.param(OPEN, None, None, [must_pass("5")], {}, False, id="made a moment ago, not in the cache yet"),
    pytest.param(OPEN, ("7", OTHER), None, [ENDED], {}, True, id="another of its name"),
    pytest.param(ANSWERED, ("6", BEHIND), None, [], CLOSED, True, id="answered, to be observed"),
    pytest.param(ANSWERED, ("6", OBSERVED), None, [ENDED], {}, True, id="answered and observed"),
    pytest.param(ANSWERED, None, None, [ENDED], {}, True, id="answered, and gone since"),
    pytest.param(OVER, ("5", OBSERVED), live("5"), [ENDED], {}, True, id="D: never landed, nothing to observe"),
    pytest.param(OVER, ("5", BEHIND), live("5"), [KEPT], CLOSED, True, id="D: never landed, an earlier one is open"),
    pytest.param(OVER, ("5", OBSERVED), live("8"), [KEPT, must_pass("8")], STILL_OPEN, False, id="D: it has changed"),
    pytest.param(OVER, ("5", OBSERVED), live("8", "uid-b"), [KEPT, must_pass("8")], STILL_OPEN, False, id="D: another"),
    pytest.param(OVER, ("5", OBSERVED), GONE, [KEPT], STILL_OPEN, False, id="D: gone"),
    pytest.param(OVER, ("5", OBSERVED), NOTHING, [], STILL_OPEN, True, id="D: a look that proves nothing"),
]


@pytest.mark.parametrize(("text", "cached", "look", "changed", "writes", "read"), CASES)
def test_what_is_still_open(
    text: str,
    cached: tuple[str, ReplicaSet] | None,
    look: Answer | None,
    changed: list[Any],
    writes: dict[str, SizeWrite],
    read: bool,
) -> None:
    outcome = TurnOutcome(CLAIM)
    announced = Expectations.parse(["owner", "uid-web", FIELD, text])
    steps = resolve("default", announced, {"a": cached} if cached else {}, "4", outcome)
    try:
        assert next(steps) == Read("replicasets", "default", ("a",))
        assert look is not None
        steps.send([look])
    except StopIteration as end:
        known: Known = end.value
    assert changes(outcome) == changed
    assert (known.writes, known.read) == (writes, read)
    assert outcome.retry == (look in (GONE, NOTHING))


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("create pods/a", PENDING),
        ("delete pods/a", "answered uid=u rv=5"),
        ("reserved pods/a", "over"),
        ("passed pods/a", "until_ms=5"),
        ("scale pods/a", ANSWERED),
        ("scale replicasets/a", "answered low=1 high=3"),
        ("status replicasets/a", "pending since_ms=5"),
    ],
)
def test_what_no_turn_announces_ends(field: str, text: str) -> None:
    """Nothing else would end it; somebody is told."""
    outcome = TurnOutcome(CLAIM)
    with pytest.raises(StopIteration):
        next(resolve("default", Expectations.parse(["owner", "u", field, text]), {}, "4", outcome))
    assert ("drop", field, "") in changes(outcome)
    assert outcome.error


UP = Update(sized("a", 1), 3, 1, 3)
NOTE = Update(sized("a", 1), 1, 1, 1, {"revision": "2"})


@pytest.mark.parametrize(
    ("answer", "look", "again", "changed", "retry", "is_open"),
    [
        (live("6"), None, False, [KEPT, must_pass("6")], False, False),
        (GONE, None, False, [KEPT], True, False),
        (NOTHING, None, False, [], True, True),
        (refusal(500, "InternalError"), None, False, [], True, True),
        (refusal(403, "Forbidden"), None, False, [KEPT], True, False),
        (refusal(403, "Forbidden"), None, True, [], True, True),
        (refusal(409, "Conflict"), live("6"), True, [KEPT, must_pass("6")], True, False),
        (refusal(409, "Conflict"), live("5"), False, [KEPT], True, False),
        (refusal(409, "Conflict"), live("5"), True, [], True, True),
        (refusal(409, "Conflict"), GONE, True, [KEPT], True, False),
        (refusal(409, "Conflict"), NOTHING, False, [], True, True),
    ],
)
def test_answers(
    answer: Answer, look: Answer | None, again: bool, changed: list[Any], retry: bool, is_open: bool
) -> None:
    """``again``: the same was sent before, so that only a change of the ReplicaSet proves that it cannot land."""
    outcome = TurnOutcome(CLAIM)
    steps = carry_out("uid-web", (UP,), {"uid-a": "5"}, Known(open={"uid-a": "5"} if again else {}), outcome)
    assert next(steps) == Reserve(1)
    announced = steps.send(Grant(1, 0))
    assert isinstance(announced, Announce)
    assert [(each.field, each.detail) for each in announced.entries] == [(FIELD, "uid=uid-a rv=5 low=1 high=3")]
    sent = steps.send([])
    assert isinstance(sent, Send)
    assert orjson.loads(sent.writes[0].body)["metadata"] == {"uid": "uid-a", "resourceVersion": "5"}
    try:
        assert steps.send([answer]) == Read("replicasets", "default", ("a",))
        assert look is not None
        steps.send([look])
    except StopIteration:
        pass
    assert changes(outcome) == changed
    assert (outcome.retry, FIELD in outcome.open) == (retry, is_open)
    proves_nothing = answer is NOTHING or answer.code == 500
    assert outcome.said == (f"patch replicasets/a: {answer.message}" if proves_nothing else ""), "for people"


def test_a_change_of_annotations_is_not_announced() -> None:
    """It raises no generation, so there is nothing to observe; it is for one version all the same."""
    outcome = TurnOutcome(CLAIM)
    steps = carry_out("uid-web", (NOTE,), {"uid-a": "5"}, Known(), outcome)
    next(steps)
    assert isinstance(steps.send(Grant(1, 0)), Send)
    with pytest.raises(StopIteration):
        steps.send([live("6")])
    assert changes(outcome) == [must_pass("6")]


def test_what_the_rate_limit_puts_off_is_neither_announced_nor_sent() -> None:
    outcome = TurnOutcome(CLAIM)
    steps = carry_out("uid-web", (UP,), {"uid-a": "5"}, Known(), outcome)
    next(steps)
    with pytest.raises(StopIteration):
        steps.send(Grant(0, 70))
    assert (changes(outcome), outcome.again_ms) == ([], 70)
