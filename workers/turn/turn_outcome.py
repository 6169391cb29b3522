"""The outcome of a turn, put together while it goes on: answered writes, errors, when to look again."""

from __future__ import annotations

from collections.abc import Iterable

from oarlock.broker.expectations import NOTES, ExpectedDelete
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import OK, RETRY, Change, Entry, Finish, Verdict
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import UNKNOWN, Outcome, delay_s
from oarlock.controllers.pods.events import Event
from oarlock.workers.turn.steps import TurnFailed, Write
from oarlock.workers.turn.turn_note import TurnNote

SAID_MAX = 300
"""Characters kept of an answer."""
READ_AGAIN_MS = 1_000
"""Until a turn that waits for the cache comes again, if nothing wakes it before."""
PASSED_MAX = 8
"""Names of an owner that are passed over at the same time."""
REFUSED_MS = 30_000
"""How long other names come before one that was refused for certain."""


class TurnOutcome:
    """``finish`` makes it the one call that ends the turn.

    ``error``: why creating or deleting failed, for the status; the first error counts. ``retry``: again with back-off
    though nothing failed. ``followed``: another turn is guaranteed soon: our creates and deletes will produce events,
    or the rest is still to be done. ``again_ms``: look again after so long; the earliest counts; after a failure the
    back-off counts instead. ``due_ms``: the same for what time alone will change; no failure puts it off.
    ``attempted``: a create or delete was sent, so without an ``error`` all that were sent succeeded. ``age_ratios``: of
    the ranked pods that are to go, for the metric. ``open``: announced writes without an answer, as fields of the
    expectations. ``said``: the last answer to one of these, which proved nothing. ``note``: for people.
    """

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self.note = TurnNote()
        self.changes: list[Change] = []
        self.events: list[Event] = []
        self.error = ""
        self.retry = False
        self.followed = False
        self.attempted = False
        self.age_ratios: list[int] = []
        self.again_ms: int | None = None
        self.due_ms: int | None = None
        self.least_wait_ms = 0
        self.open: set[str] = set()
        self.said = self._said_before = ""
        self._passed = 0

    @property
    def now_ms(self) -> int:
        """When the turn's key was claimed, by Redis's clock."""
        return self._claim.now_ms

    def again_in(self, delay_ms: int) -> None:
        """Look again after ``delay_ms``; the earliest of several counts."""
        self.again_ms = delay_ms if self.again_ms is None else min(self.again_ms, delay_ms)

    def due_in(self, delay_ms: int) -> None:
        """As ``again_in``, but at that moment even if the turn is to be retried later."""
        self.due_ms = delay_ms if self.due_ms is None else min(self.due_ms, delay_ms)

    def read_again(self) -> None:
        """Nothing is decided until the cache has come further. That wakes the key; but it may happen while the turn
        runs, by an event that wakes others only, such as one of a pod that was let go. So the key comes back by itself.
        """
        self.again_in(READ_AGAIN_MS)

    def failed(self, error: str) -> None:
        """Creating or deleting failed: the turn is retried, the status says why."""
        self.error = self.error or error
        self.retry = True

    def cache_must_pass(self, resource: str, rv: str) -> None:
        """The cache has to pass this write of ours before the key is acted on again."""
        if rv:
            self.changes.append(Change.min_rv(resource, rv))

    def open_since_before(self, said: str, fields: Iterable[str], passed: int) -> None:
        """What earlier turns left open, and the last answer to it. ``passed``: how many names are passed over."""
        self.said = self._said_before = said
        self.open.update(fields)
        self._passed = passed

    def refused(self, write: Write) -> None:
        """The name was refused for certain: for a while other names come first, so that it does not hold them up."""
        if self._passed < PASSED_MAX:
            self._passed += 1
            until_ms = self._claim.now_ms + REFUSED_MS
            self.changes.append(Change.set(f"passed {write.target}", f"until_ms={until_ms}"))

    @property
    def standing(self) -> str:
        """Why something is not done, as long as it is not done: also in a turn that did not try it again."""
        return self.error or (self.said if self.open or self._passed else "")

    def answered(self, write: Write) -> None:
        """The write has an answer: it is expected no longer."""
        self.over(f"{write.verb} {write.target}")

    def over(self, field: str) -> None:
        """The write that the field tells of was answered, or was announced by this turn and not sent: it is expected no
        longer.
        """
        self.open.discard(field)
        self.changes.append(Change.drop(field))

    def delete_answered(self, write: Write) -> None:
        """The pod is deleted, by us or not. The cache may still show it: until then it must not count again."""
        field = f"delete {write.target}"
        self.open.discard(field)
        self.attempted = True
        self.changes.append(Change.set(field, f"answered uid={write.uid} rv={write.rv}"))

    def deletes_seen(self, deletes: Iterable[ExpectedDelete], present: set[str]) -> bool:
        """Whether the cache shows every answered delete. ``present``: UIDs of pods neither terminating nor gone."""
        all_seen = True
        for each in deletes:
            if each.answered and each.uid in present:
                all_seen = False
            elif each.answered:
                self.changes.append(Change.drop(each.field))
        return all_seen

    def announced(self, entries: Iterable[Entry]) -> None:
        """They are announced now. Changes meant for earlier entries of the same names must not hit the new ones."""
        fields = {entry.field for entry in entries}
        self.open |= {entry.field for entry in entries if entry.verb not in NOTES}
        self.changes = [each for each in self.changes if each.name not in fields]

    def heed_throttling(self, answer: Answer) -> None:
        """If the answer is 429, wait for as long as the server asked."""
        if answer.code == 429:
            self.least_wait_ms = max(self.least_wait_ms, int(delay_s(answer) * 1000))

    def sort(self, write: Write, answer: Answer, result: Outcome, *, again: bool = False) -> None:
        """Enter what is the same for every verb.

        ``again``: an earlier request for the same may be under way, so a refusal of this one is no answer.
        """
        self.attempted = self.attempted or result.was_sent
        self.heed_throttling(answer)
        if result is UNKNOWN:
            self.proves_nothing(write, answer)
        elif not again:
            self.answered(write)

    def proves_nothing(self, write: Write, answer: Answer) -> None:
        """The write stays open; the answer is kept for people."""
        self.said = " ".join(f"{write.verb} {write.target}: {answer.message}".split())[:SAID_MAX]

    def finish(self, verdict: Verdict | None = None, failure: str = "") -> Finish:
        """The end of the turn, as the queue takes it."""
        claim, did = self._claim, self.note.text(failure or self.error)
        if verdict is None:
            verdict = RETRY if self.retry else OK
        changes, due_ms = (*self.changes, *self._said_change()), self.due_ms
        if verdict is RETRY:
            if due_ms is not None:
                changes += (Change.again(max(due_ms, self.least_wait_ms)),)
            return Finish(claim.queue, claim.key, claim.nonce, verdict, self.least_wait_ms or None, changes, did)
        wait_ms = self.again_ms
        if due_ms is not None and (wait_ms is None or due_ms < wait_ms):
            wait_ms = due_ms
        return Finish(claim.queue, claim.key, claim.nonce, verdict, wait_ms, changes, did)

    def _said_change(self) -> tuple[Change, ...]:
        if self.open and self.said != self._said_before:
            return (Change.set("said", self.said),)
        over = self._said_before and not self.open and not self._passed
        return (Change.drop("said"),) if over else ()

    def failure(self, reason: str) -> TurnFailed:
        """The turn ends here and is retried; what has an answer by now keeps it."""
        return TurnFailed(reason, self.finish(Verdict.RETRY, reason))
