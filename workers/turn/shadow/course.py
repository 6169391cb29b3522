"""The course of one owner, turn by turn: what was wanted, what upstream did about it, and what came of each window.

A window opens when something is wanted, or when upstream acts, and closes when nothing is wanted any more. It has every
finding about what upstream did meanwhile. The course holds what is needed to judge the next turn, so each decision is
compared once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from oarlock.workers.turn.shadow.acts import between
from oarlock.workers.turn.shadow.judge import (
    OUTSIDE,
    SAME,
    UNEXPLAINED,
    Earlier,
    Finding,
    Moment,
    Version,
    excuses,
    findings,
)
from oarlock.workers.turn.shadow.seen import Seen
from oarlock.workers.turn.shadow.wanted import Wanted

NEWEST: Version = (99, 0)
"""Where the version is unknown, nothing is explained by an old one."""
LAG_MS = 5_000
"""For so long after a window upstream may still act on what it saw in it."""
PATIENCE_MS = 60_000
"""What is wanted for longer, while nothing happens, is not merely on its way."""
SLOW = "upstream-slow"
EARLY_MS = 1_500
"""Times in the API are whole seconds, so upstream's moment may be so much earlier than ours."""
TOLD_MAX = 5


class Doubt(msgspec.Struct, frozen=True, array_like=True):
    """A finding that nothing explains yet. Each resource has a watch of its own, so why upstream acted may be seen
    later than what it did: for so long it is a doubt.
    """

    at_ms: int
    text: str
    needs: int = 0


class Told(msgspec.Struct, frozen=True, array_like=True):
    """A difference, for people."""

    at_ms: int
    reason: str
    text: str


class Course(msgspec.Struct, frozen=True, array_like=True):
    """``wanted_ms``: since when just this is wanted and nothing has happened. ``opened_ms``: of the window, 0 if none
    is open. ``closed_ms``: of the last one. ``due_ms``: when it is to be looked at again; 0: not by time. ``reasons``:
    of the window, how often each. ``windows``: by verdict, which is SAME, UNEXPLAINED or a reason. ``told``: the last
    differences without a reason. ``version``: of the API server.
    """

    seen: Seen
    wanted: Wanted
    wanted_ms: int
    opened_ms: int = 0
    closed_ms: int = 0
    due_ms: int = 0
    earlier: Earlier = Earlier()
    reasons: Mapping[str, int] = {}
    windows: Mapping[str, int] = {}
    told: tuple[Told, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    version: Version = NEWEST

    def doubted(self, now_ms: int) -> tuple[Doubt, ...]:
        """Doubts that nothing has dispelled in time."""
        return tuple(each for each in self.doubts if each.at_ms + LAG_MS < now_ms)


class Step(NamedTuple):
    """``course``: from now on. ``differences``: those found just now. ``verdict``: of a window that closed."""

    course: Course
    differences: tuple[Told, ...] = ()
    verdict: str = ""


def begin(seen: Seen, wanted: Wanted, now_ms: int, due_ms: int = 0, version: Version = NEWEST) -> Course:
    """Of an owner that is seen for the first time: nothing is known of what upstream did before."""
    opened_ms = 0 if wanted.nothing else now_ms
    earlier = Earlier().and_also(wanted)
    return Course(seen, wanted, now_ms, opened_ms, due_ms=due_ms, earlier=earlier, version=version)


def step(course: Course, seen: Seen, wanted: Wanted, now_ms: int, due_ms: int, version: Version) -> Step:
    """The next turn. ``seen`` is of the same owner and shows no less."""
    acts = between(course.seen, seen)
    is_time = 0 < course.due_ms <= now_ms + EARLY_MS
    moment = Moment(course.seen, seen, course.wanted, wanted, course.earlier, acts, is_time, now_ms, version)
    late = course.doubted(now_ms)
    open_doubts = [each for each in course.doubts if each not in late]
    found = [Finding(UNEXPLAINED, each.text) for each in late]
    found += [Finding(OUTSIDE, each.text) for each in open_doubts if excuses(acts, each.needs)]
    new = list(findings(moment))
    found += [each for each in new if each.reason != UNEXPLAINED]
    doubts = [each for each in open_doubts if not excuses(acts, each.needs)]
    doubts += [Doubt(now_ms, each.text, each.needs) for each in new if each.reason == UNEXPLAINED]
    happened = acts.any or acts.by_others
    if acts.any and course.wanted_ms + PATIENCE_MS < now_ms and not course.wanted.nothing:
        found.append(Finding(SLOW, f"upstream took {(now_ms - course.wanted_ms) // 1000} s"))
    differences = tuple(Told(now_ms, each.reason, each.text) for each in found if each.reason != SAME)
    reasons = dict(course.reasons)
    for each in found:
        reasons[each.reason] = reasons.get(each.reason, 0) + 1
    opened_ms = course.opened_ms or (now_ms if new or not wanted.nothing else 0)
    forgets = not course.opened_ms and now_ms > course.closed_ms + LAG_MS
    verdict = _verdict(reasons) if opened_ms and wanted.nothing and not doubts else ""
    windows = dict(course.windows)
    if verdict:
        windows[verdict] = windows.get(verdict, 0) + 1
    bad = [each for each in differences if each.reason == UNEXPLAINED]
    return Step(
        Course(
            seen,
            wanted,
            course.wanted_ms if wanted == course.wanted and not happened else now_ms,
            0 if verdict else opened_ms,
            now_ms if verdict else course.closed_ms,
            due_ms,
            (Earlier() if forgets else course.earlier).and_also(wanted),
            {} if verdict else reasons,
            windows,
            (*course.told, *bad)[-TOLD_MAX:],
            tuple(doubts),
            version,
        ),
        differences,
        verdict,
    )


def _verdict(reasons: Mapping[str, int]) -> str:
    """The worst of a window's; of reasons that explain, the most frequent one."""
    if UNEXPLAINED in reasons:
        return UNEXPLAINED
    explained = {reason: count for reason, count in reasons.items() if reason != SAME}
    return max(explained, key=lambda reason: (explained[reason], reason)) if explained else SAME
