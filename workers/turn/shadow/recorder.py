"""Compares each decision of a dry run once, when its turn ends, and keeps the course of every owner in Redis."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from oarlock.broker.shadow_store import Difference, Kept
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.broker.versions import newer
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.process.log_line import line
from oarlock.workers.turn.engine.dry_run import Decision
from oarlock.workers.turn.shadow.course import NEWEST, Course, Step, begin, step
from oarlock.workers.turn.shadow.judge import Version
from oarlock.workers.turn.shadow.seen import seen
from oarlock.workers.turn.shadow.wanted import wanted

_VERSION = re.compile(rb'"gitVersion":\s*"v(\d+)\.(\d+)')

log = logging.getLogger("oarlock.worker")
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Course)


class Store(Protocol):
    """``broker.shadow_store.ShadowStore``."""

    def courses(self, queue: str, key_names: Sequence[str]) -> list[bytes | None]: ...
    def keep(self, queue: str, kept: Kept) -> bool: ...


def version_in(body: bytes) -> Version | None:
    """What an API server answers to /version."""
    found = _VERSION.search(body)
    return (int(found[1]), int(found[2])) if found is not None else None


def decoded(blob: bytes | None) -> Course | None:
    """A course as it is kept; None for what is none, such as one of another release."""
    try:
        return None if blob is None else _DECODER.decode(blob)
    except msgspec.MsgspecError:
        return None


class Recorder:
    """One worker's. ``version``: asks the API server; None while it does not say."""

    def __init__(self, store: Store, version: Callable[[], Version | None]) -> None:
        self._store, self._ask = store, version
        self._version: Version | None = None

    def __call__(self, ended: Sequence[tuple[Decision, Finish]]) -> None:
        """Turns that have come to their end, and whose keys are still ours. A turn that failed decided nothing."""
        self._version = self._version or self._ask()
        compared = [each for each in ended if each[0].claim.queue in CONTROLLERS and each[1].verdict != Verdict.RETRY]
        for queue in dict.fromkeys(decision.claim.queue for decision, _ in compared):
            self._of(queue, [each for each in compared if each[0].claim.queue == queue])

    def _of(self, queue: str, ended: Sequence[tuple[Decision, Finish]]) -> None:
        names = [decision.claim.key for decision, _ in ended]
        courses: dict[str, bytes | None] = {}
        windows: Counter[str] = Counter()
        differences: list[Difference] = []
        for key, (decision, finish), blob in zip(names, ended, self._store.courses(queue, names), strict=True):
            if decision.claim.owner is None:
                courses[key] = None
                continue
            taken = self._step(decision, finish, decoded(blob))
            if taken is None:
                continue
            courses[key] = _ENCODER.encode(taken.course)
            windows[taken.verdict] += bool(taken.verdict)
            differences += [Difference(each.at_ms, queue, key, each.reason, each.text) for each in taken.differences]
        if courses and not self._store.keep(queue, Kept(courses, +windows, differences)):
            log.warning(line("not recorded", queue=queue, keys=len(courses), why="Redis has no memory left"))

    def _step(self, decision: Decision, finish: Finish, course: Course | None) -> Step | None:
        """None: there is nothing new, or another turn has seen more already."""
        now_ms = decision.claim.now_ms
        saw, wants = seen(decision), wanted(decision)
        due_ms = now_ms + finish.delay_ms if finish.delay_ms is not None else 0
        if course is None or course.seen.uid != saw.uid:
            return Step(begin(saw, wants, now_ms, due_ms, self._version or NEWEST))
        if newer(course.seen.rv, saw.rv):
            return None
        return step(course, saw, wants, now_ms, due_ms, self._version or NEWEST)
