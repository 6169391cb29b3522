"""How far a ReplicaSet gets while some of its writes are refused for ever: as far as if only these were missing."""

from __future__ import annotations

from itertools import islice

from oarlock.controllers.pods.slots import slots_of
from tests.simulation.refusals import Refusals
from tests.simulation.world import World

STAGES = {"as it is": 300_000, "scaled to 0": 20_000, "scaled up": 300_000, "scaled down": 20_000}
"""What is asked of the owners one after the other, and how soon it must have been done, in ms.

More pods than names that are refused take until these are passed over: their last send, D and a look, half a minute. An
owner may meet several such names one after the other, as some faults end and others begin.
"""
OBSERVED_MS = 150_000
"""How soon a status must have observed it: not before it is certain that no create of more pods may still land."""


def stalled(world: World, refusals: Refusals) -> str:
    """What an owner has not done though nothing keeps it from it; empty where that is all.

    Usual owners take other names. Strict ones stay short by the names that are refused, if these are the next to be
    taken. What cannot be deleted stays beside.
    """
    for _, owner in world.owners.values():
        active, wanted = world.active(owner.uid), owner.replicas
        if owner.status.replicas != len(active):
            return f"{owner.name}: {len(active)} are active, its status says {owner.status.replicas}"
        stuck = {pod.name for pod in active} & refusals.undone(owner.name, "delete")
        if len(active) - wanted > len(stuck):
            return f"{owner.name}: {len(active)} are active of {wanted}, only {stuck} cannot be deleted"
        if len(active) < wanted and not owner.strict:
            return f"{owner.name}: {len(active)} are active of {wanted}"
        borne = set(world.pods)
        names = islice(slots_of(owner.name, owner.uid).free(borne), max(0, wanted - len(world.existing(owner.uid))))
        if owner.strict and (free := set(names) - refusals.undone(owner.name, "create")):
            return f"{owner.name}: {free} are missing though nobody refuses them"
    return ""


def unobserved(world: World) -> str:
    """An owner whose status is of a former generation; empty where there is none."""
    for _, owner in world.owners.values():
        if owner.status.observed_generation != owner.generation:
            return f"{owner.name}: generation {owner.generation}, {owner.status.observed_generation} is observed"
    return ""
