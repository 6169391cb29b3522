"""A turn that writes nothing: it looks at its object and tells the owners whom it concerns."""

from __future__ import annotations

from broker.values import Cached, Claim
from controllers.codec import decode_pod
from controllers.registry import RESOURCES, Relay
from workers.known_owners import EVERY_OWNER
from workers.ledger import Ledger
from workers.steps import Look, Turn, Wake


def relay(claim: Claim, via: Relay, ledger: Ledger) -> Turn:
    """Wake the keys of ``via.target`` whom the object of this key concerns, as it stands or now that it has gone."""
    obj = None if claim.owner is None else RESOURCES[via.resource].decode(claim.owner.blob)
    pods = [decode_pod(child.blob) for child in claim.children]
    cached: list[Cached] = yield Look(via.owners, entries=(EVERY_OWNER,))
    decode = RESOURCES[via.owners].decode
    keys = via.concerned(claim.key, obj, pods, [decode(each.blob) for each in cached])
    if keys:
        yield Wake(via.target, tuple(keys))
    return ledger.finish()
