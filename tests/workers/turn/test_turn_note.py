"""What is said of a turn, in a line for people."""

from __future__ import annotations

import pytest

from oarlock.broker.looks.history import past_turns
from oarlock.cluster.answer import NO_ANSWER, PAST_DEADLINE, Answer
from oarlock.workers.turn.steps import Write
from oarlock.workers.turn.turn_note import LINE_MAX, TurnNote, one_line

DONE = Answer(201, b"{}")
QUOTA = Answer(
    403, b'{"kind":"Status","message":"pods \\"web-1\\" is forbidden: exceeded quota: few, requested: pods=1"}'
)
OTHER = Answer(
    403, b'{"kind":"Status","message":"pods \\"web-2\\" is forbidden: exceeded quota: few, requested: pods=1"}'
)
TAKEN = Answer(409, b'{"kind":"Status","message":"already exists"}')
BUSY = Answer(429, b'{"kind":"Status","message":"the server has received too many requests and has asked us to wait"}')
MODIFIED = Answer(
    409,
    b'{"kind":"Status","message":"Operation cannot be fulfilled on replicasets.apps \\"web\\": the object has been'
    b' modified; please apply your changes to the latest version and try again"}',
)
SILENCE = Answer(NO_ANSWER, error="the connection was closed")
LATE = PAST_DEADLINE
WOKE = "daemonset"

QUOTA_SAID = ": 403 " + 'pods "web-1" is forbidden: exceeded quota: few, requested: pods=1'

CASES = [
    pytest.param([], "", "", id="nothing"),
    pytest.param([("create", "pods", DONE)], "", "create pods", id="a write"),
    pytest.param([("create", "pods", DONE)] * 3, "", "create pods x3", id="three alike"),
    pytest.param(
        [("create", "pods", DONE), ("delete", "pods", DONE), ("status", "replicasets", DONE), ("create", "pods", DONE)],
        "",
        "create pods x2, delete pods, status",
        id="in the order of the first of a sort",
    ),
    pytest.param(
        [("create", "pods", DONE), ("create", "pods", QUOTA), ("create", "pods", OTHER)],
        "exceeded quota",
        f"create pods, create pods x2{QUOTA_SAID}",
        id="refused: the first answer, and the error is no news",
    ),
    pytest.param(
        [("create", "pods", QUOTA), ("create", "pods", TAKEN)],
        "",
        f"create pods{QUOTA_SAID}, create pods: 409 already exists",
        id="refused in two ways",
    ),
    pytest.param([("delete", "pods", SILENCE)], "", "delete pods: no answer the connection was closed", id="silence"),
    pytest.param(
        [("status", "pods", LATE)],
        "",
        "status: too late to send its deadline passed before it could be sent",
        id="late",
    ),
    pytest.param(
        [("create", "pods", BUSY), ("create", "pods", BUSY), ("delete", "pods", BUSY), ("status", "replicasets", BUSY)],
        "",
        "create pods x2: 429 too many requests, delete pods: the same, status: the same",
        id="a server that refuses everything",
    ),
    pytest.param(
        [("status", "replicasets", MODIFIED)], "", "status: 409 the object has been modified", id="a version too late"
    ),
    pytest.param([("wake", WOKE, 3)], "", "wake daemonset x3", id="keys woken"),
    pytest.param([], "no view of the pods", "failed: no view of the pods", id="failed before a write"),
    pytest.param([("create", "pods", DONE)], "bug", "create pods, failed: bug", id="failed after a write"),
    pytest.param([], "two\nlines  and < sign", "failed: two lines and <sign", id="one line"),
]


@pytest.mark.parametrize(("done", "error", "line"), CASES)
def test_a_line(done: list[tuple[str, str, Answer | int]], error: str, line: str) -> None:
    note = TurnNote()
    for verb, resource, answer in done:
        if isinstance(answer, int):
            note.woke(resource, answer)
        else:
            note.wrote(Write(verb, resource, "ns", "name"), answer)
    assert note.text(error) == line
    if line:
        (read,) = past_turns("", f"5 w-\n{line} < 0 1+2 1/1 1 asked", "ns/name")
        assert read.did == line


def test_it_is_never_long() -> None:
    note = TurnNote()
    for n in range(100):
        note.wrote(Write("create", f"things{n}", "ns", "name"), QUOTA)
    assert len(note.text()) == LINE_MAX
    assert len(one_line("x" * 1_000)) == LINE_MAX
    assert one_line("\u00fc" * 1_000) == "\u00fc" * (LINE_MAX // 2)  # bytes count


def test_it_repeats_no_value_of_a_field() -> None:
    invalid = Answer(
        422, b'{"kind":"Status","message":"Pod \\"a\\" is invalid: spec.x: Invalid value: \\"CANARY\\": no"}'
    )
    note = TurnNote()
    note.wrote(Write("create", "pods", "ns", "a"), invalid)
    assert note.text() == 'create pods: 422 Pod "a" is invalid: spec.x: Invalid value: ...: no'
    assert TurnNote().text('spec.x: Invalid value: "CANARY": no') == "failed: spec.x: Invalid value: ...: no"


def test_redis_takes_it_whatever_an_exception_says() -> None:
    """A name of a file that is no UTF-8 has such letters."""
    assert TurnNote().text("no file x\udcff") == r"failed: no file x\udcff"
    assert one_line("x\udcff") == r"x\udcff"
