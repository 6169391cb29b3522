"""The other kind of turn: it writes nothing, but wakes the owners that its object concerns."""

from __future__ import annotations

from oarlock.broker.values import Cached, Claim
from oarlock.controllers.entries import FanOut
from oarlock.controllers.objects.codec import decode_pod
from oarlock.controllers.ownership.orphans import EVERY_OWNER
from oarlock.controllers.registry import WATCHED
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
