"""A live look at the owner of a key, past the cache: before adopting for it, and before its spec is written down."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from oarlock.cluster.answer import Answer
from oarlock.controllers.entries import Controller
from oarlock.controllers.objects.wire import WireError
from oarlock.controllers.ownership import claim as claims
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.registry import WATCHED
from oarlock.workers.turn.steps import Read, Step


class LiveOwner(NamedTuple):
    """What the API says. ``error``: why it could not be read, or is not the owner any more, or is being deleted; the
    other fields are of no use then. ``gone``: it is no more, for certain, and the cache is yet to hear of it.
    """

    error: str
    gone: bool = False
    rv: str = ""
    owner: Any = None
    raw: bytes = b""


def look_at(owner: Claimer, controller: Controller) -> Generator[Step, Any, LiveOwner]:
    """Read the owner live, and hold it against the one the cache has."""
    (answer,) = yield Read(controller.resource, owner.namespace, (owner.name,))
    assert isinstance(answer, Answer)
    if not answer.ok:
        return LiveOwner(answer.message, gone=answer.code == 404 and answer.status is not None)
    try:
        rv, live = WATCHED[controller.resource].from_json(answer.body)
    except WireError as unreadable:
        return LiveOwner(str(unreadable))
    error = claims.gate_error(owner, controller.flavour.kind, live.uid, live.deleting_ms)
    return LiveOwner(error, live.uid != owner.uid, rv, live, answer.body)
