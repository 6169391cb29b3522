"""Slows down a controller that writes its status in every turn though nothing else has changed.

A status with a clock in it does so: each write wakes the next turn. The first writes are free, as a function may come
to its end in several statuses. After them the turns wait, each time twice as long. The count is in the expectations of
the key, so that all workers share it; it ends with the first turn that finds the status as it is wanted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b

import orjson

from oarlock.broker.expectations import REWRITTEN, Rewritten
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import Change
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.pods.events import WARNING, Event
from oarlock.workers.process.log_line import line
from oarlock.workers.turn.turn_outcome import TurnOutcome

log = logging.getLogger("oarlock.worker")

FREE = 5
FIRST_MS, LONGEST_MS = 1_000, 300_000
_TOLD = (
    "the status is written in every turn though nothing else has changed, and each write wakes the next turn: turns are"
    " slowed down; leave times and random values out of the status"
)


def but_status(own: Whole) -> bytes:
    """All that an object says beside its status."""
    body = orjson.loads(own.body)
    body.pop("status", None)
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)


class Rewrites:
    """Of one turn. ``versions``: of what else the controller looks at."""

    def __init__(self, claim: Claim, own: Whole, versions: Sequence[str]) -> None:
        self._claim, self._own, self._versions = claim, own, versions
        self._stored = claim.expectations.rewritten if claim.expectations is not None else None
        known = self._stored
        self._last = known if known is not None and known.inputs == self._inputs else Rewritten()

    @cached_property
    def _inputs(self) -> str:
        words = (self._own.uid.encode(), but_status(self._own), *(each.encode() for each in self._versions))
        return blake2b(b"\n".join(words), digest_size=12).hexdigest()

    def hold(self, outcome: TurnOutcome) -> bool:
        """Whether the turn is to end here, and to come again later. A time that is too far away is none of ours."""
        assert self._claim.owner is not None
        left_ms = self._last.until_ms - self._claim.now_ms
        if self._last.times <= FREE or not 0 < left_ms <= LONGEST_MS or self._last.rv != self._claim.owner.rv:
            return False  # the last: somebody else wrote the object, if only its status
        outcome.due_in(left_ms)
        return True

    def none(self, outcome: TurnOutcome) -> None:
        """The status is as it is wanted."""
        if self._stored is not None:
            outcome.changes.append(Change.drop(REWRITTEN))

    def one(
        self, before: str, after: str, outcome: TurnOutcome, every_ms: int | None, later_ms: int | None = None
    ) -> None:
        """The status was written. ``before``, ``after``: resourceVersions; if they are equal, nothing has changed.

        The next turn does not wait for longer than ``every_ms`` or ``later_ms``, nor than until what is due already.
        """
        if before == after:
            self.none(outcome)
            return
        times = self._last.times + 1 if self._last.rv == before else 1
        wait_ms = min(FIRST_MS * 2 ** min(times - FREE - 1, 20), LONGEST_MS) if times > FREE else 0
        wait_ms = min(each for each in (wait_ms, every_ms, later_ms, outcome.due_ms) if each is not None)
        if wait_ms:
            outcome.due_in(wait_ms)
        noted = Rewritten(times, after, self._inputs, self._claim.now_ms + wait_ms)
        outcome.changes.append(Change.set(REWRITTEN, noted.text))
        if times == FREE + 1:
            outcome.events.append(Event(WARNING, "StatusRewritten", _TOLD))
            log.warning(line("status_rewritten", queue=self._claim.queue, key=self._claim.key, times=times))
