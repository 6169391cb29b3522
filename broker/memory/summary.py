"""Counts of objects by class in memory: ``scripts/lib/summary.lua`` in Python."""

from __future__ import annotations

from collections.abc import Mapping

from oarlock.broker.memory.state import EpochState, Stored
from oarlock.broker.values.claims import NO_COUNTS
from oarlock.broker.values.events import kind_in

CLASSES_MAX = 32


def recount(state: EpochState, resource: str, gen: str, was: Stored | None, now: Stored | None) -> None:
    """An object is now another one; None: it is not there."""
    for stored, by in ((was, -1), (now, 1)):
        if stored is None or not stored.kind:
            continue
        place = resource, gen, stored.entries.split()[0]
        kinds = state.summary.setdefault(place, {})
        kinds[stored.kind] = kinds.get(stored.kind, 0) + by
        if not kinds[stored.kind]:
            del kinds[stored.kind]
        if not kinds:
            del state.summary[place]


def drop(state: EpochState, resource: str, gen: str, stored: Stored) -> bool:
    """Drop the count of an object's class. Whether it was there."""
    place = resource, gen, stored.entries.split()[0]
    kinds = state.summary.get(place, {})
    known = kinds.pop(stored.kind, None) is not None
    if not kinds:
        state.summary.pop(place, None)
    return known


def at_rest(state: EpochState, resource: str, gen: str, entry: str, asked: int) -> Mapping[bytes, int]:
    """How many objects of each kind are under an entry; nothing if some are not counted, or if not so many are asked
    for as are there.
    """
    kinds, objects = state.summary.get((resource, gen, entry), {}), state.index.get((resource, gen, entry), {})
    good = sum(count for kind, count in kinds.items() if kind.startswith(b"+"))
    whole = sum(kinds.values()) == len(objects) and len(kinds) <= CLASSES_MAX
    if not whole or good != asked:
        return NO_COUNTS
    found: dict[bytes, int] = {}
    for text, count in kinds.items():
        kind = kind_in(text)
        found[kind] = found.get(kind, 0) + count
    return found
