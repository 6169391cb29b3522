"""Slow starts as a judge sees them: what was announced, what was sent, and what is still expected afterwards.

A turn announces the creates of its later waves with those of the first one. So a turn that stops, or is killed, leaves
names that nobody has sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.turns import Entry
from oarlock.workers.turn.steps import Write
from tests.simulation.violation import Violation
from tests.simulation.world import NAMESPACE


@dataclass(slots=True)
class Pace:
    """The creates of one turn. Of those announced ``unsent`` were not sent, ``unanswered`` got no answer. ``sent``:
    how many, in all its waves.
    """

    named: set[str] = field(default_factory=set)
    unsent: set[str] = field(default_factory=set)
    unanswered: set[str] = field(default_factory=set)
    sent: int = 0


@dataclass
class SlowStarts:
    """I5 no create is sent that its turn has not announced; a wave has at most one more than were sent before it; what
    a turn announced and did not send is not expected once the turn has ended, and what it sent without an answer is.
    ``count``: of opportunities.
    """

    count: Callable[[str], None]
    by_holder: dict[tuple[str, str], Pace] = field(default_factory=dict)
    by_nonce: dict[tuple[str, str], Pace] = field(default_factory=dict)
    never_sent: dict[str, set[str]] = field(default_factory=dict)
    """By key: announced by turns that have ended since."""
    unanswered: dict[str, set[str]] = field(default_factory=dict)
    """By key: of the last turn that has ended."""

    def begun(self, holder: str, batch: Batch) -> None:
        """A worker was handed keys."""
        for claim in batch.claims:
            record = claim.expectations
            opened = {_name(target) for target in record.creates} if record is not None else set()
            forgotten = self.unanswered.pop(claim.key, set()) - opened
            if forgotten:
                raise Violation(f"{sorted(forgotten)} of {claim.key} may still land, and are not expected")
            kept = opened & self.never_sent.get(claim.key, set())
            if kept:
                raise Violation(f"{sorted(kept)} of {claim.key} were never sent, and are expected")
            if any(opened & pace.unsent for (key, _), pace in self.by_nonce.items() if key == claim.key):
                self.count("announced, and never sent by the dead")
            pace = Pace()
            self.by_holder[claim.key, holder] = self.by_nonce[claim.key, claim.nonce] = pace

    def announced(self, claim: Claim, entries: Sequence[Entry]) -> None:
        """Writes were entered in a record."""
        names = {_name(entry.target) for entry in entries if entry.verb == "create"}
        pace = self.by_nonce[claim.key, claim.nonce]
        pace.named |= names
        pace.unsent |= names
        self.never_sent.get(claim.key, set()).difference_update(names)

    def sent(self, holder: str, writes: Sequence[Write]) -> None:
        """A wave leaves a worker."""
        names = {write.name for write in writes if write.verb == "create" and write.resource == "pods"}
        if not names:
            return
        key = f"{NAMESPACE}/{min(names).rpartition('-')[0]}"
        pace = self.by_holder[key, holder]
        pace.unanswered -= names
        if not names <= pace.named:
            raise Violation(f"I5: {sorted(names - pace.named)} of {key} are sent, but not announced")
        if len(names) > pace.sent + 1:
            raise Violation(f"a wave of {len(names)} for {key} after {pace.sent} creates")
        pace.unsent -= names
        pace.sent += len(names)

    def no_answer(self, holder: str, write: Write) -> None:
        """A request has none in time."""
        if write.verb == "create" and write.resource == "pods":
            self.by_holder[f"{NAMESPACE}/{write.name.rpartition('-')[0]}", holder].unanswered.add(write.name)

    def new_epoch(self) -> None:
        """Redis is lost: nothing is expected any more."""
        self.never_sent.clear()
        self.unanswered.clear()

    def ended(self, key: str, nonce: str) -> None:
        """A turn's end was accepted."""
        pace = self.by_nonce.pop((key, nonce), Pace())
        self.unanswered[key] = pace.unanswered
        if pace.unsent:
            self.count("announced, and never sent by the living")
            self.never_sent.setdefault(key, set()).update(pace.unsent)


def _name(target: str) -> str:
    return target.partition("/")[2]
