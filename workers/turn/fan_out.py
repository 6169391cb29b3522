"""The other kind of turn: it writes nothing, but wakes the owners that its object concerns."""

from __future__ import annotations

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.controllers.entries import FanOut, ReferenceFanOut
from oarlock.controllers.objects.codec import decode_pod
from oarlock.controllers.ownership.orphans import EVERY_OWNER
from oarlock.controllers.registry import WATCHED
from oarlock.controllers.whole_routes import names_entry
from oarlock.workers.turn import blob_memo
from oarlock.workers.turn.steps import Look, Turn, Wake
from oarlock.workers.turn.turn_outcome import TurnOutcome


def fan_out(claim: Claim, via: FanOut, outcome: TurnOutcome) -> Turn:
    """Wake the keys of ``via.target`` that the object of this key concerns, as it is now or because it has gone.

    The owners are looked at after the claim that brought the object. An owner that changes later is queued by that.
    """
    obj = None if claim.owner is None else WATCHED[via.resource].decode(claim.owner.blob)
    pods = [decode_pod(child.blob) for child in claim.children]
    cached: list[Cached] = yield Look(via.owners, entries=(EVERY_OWNER,), shared=True, paged=True)
    keys = via.concerned(claim.key, obj, pods, blob_memo.owners(via.owners).decode(cached))
    if keys:
        yield Wake(via.target, tuple(keys))
    return outcome.finish()


def reference_fan_out(claim: Claim, via: ReferenceFanOut, outcome: TurnOutcome) -> Turn:
    """Wake the keys of ``via.target`` whose objects name the object of this key, which may have gone.

    An object that begins to name it later is queued by its own event.
    """
    entry = names_entry(via.target, via.resource, claim.key)
    cached: list[Cached] = yield Look(via.owners, entries=(entry,), paged=True)
    keys = tuple([WATCHED[via.owners].decode(each.blob).key for each in cached])
    if keys:
        yield Wake(via.target, keys)
    return outcome.finish()
