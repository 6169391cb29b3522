"""Windows: when they open and close, what comes of them, and what stands."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from oarlock.workers.turn.shadow import standing
from oarlock.workers.turn.shadow.course import LAG_MS, PATIENCE_MS, SLOW, Course, begin, step
from oarlock.workers.turn.shadow.judge import LATE, OUTSIDE, SAME, UNEXPLAINED
from oarlock.workers.turn.shadow.recorder import decoded
from oarlock.workers.turn.shadow.seen import Seen
from oarlock.workers.turn.shadow.wanted import NOTHING, Wanted
from tests.workers.turn.shadow.test_judge import A, B, C, pod, saw

T0 = 1_000_000
VERSION = (1, 30)


class Play:
    """Turns over one owner, one after the other."""

    def __init__(self, seen: Seen, wanted: Wanted = NOTHING) -> None:
        self.course, self.now_ms, self.verdicts = begin(seen, wanted, T0), T0, list[str]()
        self.reasons: list[str] = []

    def turn(self, seen: Seen, wanted: Wanted = NOTHING, after_ms: int = 10, due_ms: int = 0) -> Play:
        self.now_ms += after_ms
        taken = step(self.course, seen, wanted, self.now_ms, due_ms, VERSION)
        self.course = decoded(msgspec.msgpack.encode(taken.course)) or self.course  # as Redis keeps it
        assert self.course == taken.course
        self.verdicts += [taken.verdict] if taken.verdict else []
        self.reasons += [each.reason for each in taken.differences]
        return self


def want(count: int) -> Wanted:
    return Wanted(creates={"": count}) if count else NOTHING


def test_a_window_in_which_upstream_did_what_was_decided() -> None:
    play = Play(saw()).turn(saw(spec="t"), want(3)).turn(saw(A, spec="t"), want(2)).turn(saw(A, B, C, spec="t"))
    assert play.verdicts == [SAME]
    assert play.course.opened_ms == 0
    assert play.reasons == []


def test_nothing_is_said_of_what_happened_before_the_first_look() -> None:
    assert Play(saw(A), want(1)).turn(saw(A, B)).verdicts == [SAME]


def test_a_pod_too_many_is_a_doubt_first_and_then_unexplained() -> None:
    play = Play(saw()).turn(saw(spec="t"), want(1)).turn(saw(A, B, spec="t"))
    assert play.verdicts == []
    assert len(play.course.doubts) == 1
    assert play.course.doubted(play.now_ms + LAG_MS + 1)
    play.turn(saw(A, B, spec="t"), after_ms=LAG_MS + 1)
    assert play.verdicts == [UNEXPLAINED]
    assert play.course.told[0].text == "upstream created 2, 1 was to be created"


def test_why_upstream_acted_may_be_seen_later_than_what_it_did() -> None:
    play = Play(saw()).turn(saw(A)).turn(saw(A, spec="t"))
    assert play.verdicts == [OUTSIDE]


def test_what_changed_for_another_reason_dispels_no_doubt() -> None:
    play = Play(saw()).turn(saw(A)).turn(saw(pod("a", digest="b")), after_ms=LAG_MS + 1)
    assert play.verdicts == [UNEXPLAINED]


def test_upstream_finishes_what_it_began() -> None:
    """It creates three pods for the size that there was, though one is wanted by now."""
    play = (
        Play(saw(), want(3)).turn(saw(spec="t"), want(1)).turn(saw(A, B, C, spec="t"), Wanted(deletes=frozenset("ab")))
    )
    assert play.reasons == [LATE]
    assert play.turn(saw(C, spec="t")).verdicts == [LATE]


def test_of_an_earlier_window_little_is_remembered() -> None:
    play = Play(saw(), want(3)).turn(saw(A, B, C)).turn(saw(A, B, C), after_ms=LAG_MS + 1)
    play.turn(saw(A, B, C, pod("d"))).turn(saw(A, B, C, pod("d")), after_ms=LAG_MS + 1)
    assert play.verdicts == [SAME, UNEXPLAINED]


def test_upstream_may_take_its_time() -> None:
    play = Play(saw(), want(1)).turn(saw(A), after_ms=PATIENCE_MS + 1)
    assert play.verdicts == [SLOW]


def test_other_kinds_of_writes_are_compared_at_rest() -> None:
    status = Wanted(status='{"replicas":1}')
    play = Play(saw(A), status)
    assert play.turn(saw(A)).verdicts == [SAME]


@pytest.mark.parametrize(
    ("seen", "wanted", "version", "refused", "why"),
    [
        (saw(refused=True), want(1), VERSION, False, standing.REFUSED),
        (saw(), want(1), VERSION, True, standing.REFUSED),
        (saw(), want(1), VERSION, False, ""),
        (saw(A, refused=True), Wanted(deletes=frozenset("a")), VERSION, False, ""),
        (saw(pod("a", "finished"), nodes="1"), Wanted(deletes=frozenset("a")), VERSION, False, standing.BACK_OFF),
        (saw(A, nodes="1"), Wanted(deletes=frozenset("a")), VERSION, False, ""),
        (
            saw(pod("a", "ending", like=(True, "Succeeded x", 0)), nodes="1"),
            Wanted(creates={"n1": 1}),
            (1, 20),
            False,
            standing.HELD,
        ),
        (
            saw(pod("a", "ending", like=(True, "Succeeded x", 0)), nodes="1"),
            Wanted(creates={"n1": 1}),
            VERSION,
            False,
            "",
        ),
        (
            saw(pod("a", "finished", like=(True, "Succeeded x", 0)), nodes="1"),
            Wanted(deletes=frozenset("a")),
            (1, 20),
            False,
            standing.SUCCEEDED,
        ),
        (saw(), Wanted(status="{}"), VERSION, True, ""),
    ],
)
def test_what_stands(seen: Seen, wanted: Wanted, version: Any, refused: bool, why: str) -> None:
    course = begin(seen, wanted, T0, version=version)
    assert standing.reason_of(course, told_refused=refused) == why
    assert standing.told(course)


def test_a_course_that_cannot_be_read_begins_anew() -> None:
    assert decoded(None) is None
    assert decoded(b"\xff") is None
    assert decoded(msgspec.msgpack.encode(["other"])) is None
    assert isinstance(decoded(msgspec.msgpack.encode(begin(saw(A), NOTHING, T0))), Course)
