"""Deletes of children that an earlier turn announced and nobody has answered.

Such a delete may still land, up to D after it was sent. It names the UID and resourceVersion of the child, so it can
land only while the child is as it was. If the child is wanted again by then, the turn changes it: then the delete
cannot land any more. Without this a delete that a dead worker sent could take a child that is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import Change, Entry
from oarlock.broker.versions import newer
from oarlock.cluster.outcome import Outcome
from oarlock.controllers.wanted import Live
from oarlock.workers.turn.turn_outcome import TurnOutcome

CERTAINLY_NOT = (Outcome.REFUSED, Outcome.THROTTLED, Outcome.NOT_SENT, Outcome.TOO_LATE)


class OpenDeletes:
    """Of one key. ``uids``: the children that one may still take."""

    def __init__(self, claim: Claim, owned: Iterable[Live], outcome: TurnOutcome) -> None:
        """Ends those that the cache shows to have landed, or to be unable to. ``owned``: from the claim."""
        self._outcome = outcome
        self._fields: dict[str, str] = {}
        self.lost = claim.unsettled and claim.expectations is None
        """The announcements are gone, so nobody knows what may be under way: then it may be any child: `assume`."""
        children = {live.obj.uid: live for live in owned}
        self.uids = set(children) if self.lost else set()
        for each in claim.expectations.deletes if claim.expectations is not None else ():
            live = children.get(each.uid)
            landed = live is None or bool(live.obj.deleting_ms) or newer(live.rv, each.rv)
            if landed or each.answered or each.open.over:
                outcome.changes.append(Change.drop(each.field))
            else:
                self.uids.add(each.uid)
                self._fields[each.uid] = each.field
                outcome.open.add(each.field)

    def assume(self, owned: Iterable[Live]) -> tuple[Entry, ...]:
        """After a loss: what is to be announced in place of what was, a delete of each child, though none is sent.

        Each ends by itself then, as its child is changed. A turn may not get through all of them.
        """
        left = [live for live in owned if not live.obj.deleting_ms]
        self._fields = {live.obj.uid: entry_of(live).field for live in left}
        self._outcome.changes.append(Change.settled())
        return tuple(map(entry_of, left))

    def changed(self, live: Live) -> None:
        """The child has another resourceVersion now."""
        field = self._fields.pop(live.obj.uid, "")
        if field:
            self._outcome.changes.append(Change.drop(field))
            self._outcome.open.discard(field)

    def answered(self, live: Live, result: Outcome) -> None:
        """A delete was answered. A refusal says nothing about an earlier request for the same."""
        if result in (Outcome.DONE, Outcome.GONE) or (result in CERTAINLY_NOT and live.obj.uid not in self.uids):
            field = entry_of(live).field
            self._outcome.changes.append(Change.drop(field))
            self._outcome.open.discard(field)


def entry_of(live: Live) -> Entry:
    """The announcement of a delete."""
    return Entry("delete", f"{live.resource}/{live.obj.key}", live.obj.uid, live.rv)
