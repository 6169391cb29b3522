"""What a controller of one's own looks at beside its object, and the versions that stand for all of it; what a 404 says
of its object.
"""

from __future__ import annotations

from collections.abc import Sequence

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import Outcome, of_change
from oarlock.controllers.entries import CustomController
from oarlock.controllers.objects.whole import Whole, decode_whole
from oarlock.controllers.whole_routes import concerns_entry, named
from oarlock.workers.turn.steps import Look, Read, Steps

NO_STATUS = "its kind has no status subresource, so nobody can write its status: write none, or add it to the kind"


def versions_of_others(claim: Claim, watched: Sequence[tuple[str, Cached]]) -> list[str]:
    """Of the children and of what is watched, but the object itself, which a watch on its own kind may find. No two
    objects of a cluster have one resourceVersion.
    """
    assert claim.owner is not None
    own = claim.owner.uid
    found = [each.rv for each in claim.children]
    for others in claim.others.values():
        found += [each.rv for each in others]
    return found + [each.rv for _, each in watched if each.uid != own]


def watched_by(claim: Claim, controller: CustomController) -> Steps[list[tuple[str, Cached]]]:
    """The cached objects that the key's object names, and those that concern it."""
    assert claim.owner is not None
    owner, found = decode_whole(claim.owner.blob), []
    for resource in controller.watched:
        if resource in controller.names:
            keys = named(owner, controller.name, resource)
            cached: list[Cached] = (yield Look(resource, ids=keys)) if keys else []
        else:
            cached = yield Look(resource, entries=(concerns_entry(controller.queue, claim.key),))
        found += [(resource, each) for each in cached]
    return found


def of_status(answer: Answer, resource: str, own: Whole) -> Steps[tuple[Outcome, str]]:
    """Sort the answer to a write of our object's status, and say it for people.

    A kind without the status subresource answers 404 too, with the object's name if the kind is a custom one. So
    before an object counts as gone, it is looked for.
    """
    result = of_change(answer)
    if answer.code == 404 and result in (Outcome.GONE, Outcome.REFUSED):
        look: Answer
        (look,) = yield Read(resource, own.namespace, (own.name,))
        if look.ok and look.uid == own.uid:
            return Outcome.REFUSED, NO_STATUS
    return result, answer.message
