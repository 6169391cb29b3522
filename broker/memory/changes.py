"""The change log of mirrored objects in memory: ``scripts/lib/changes.lua`` in Python."""

from __future__ import annotations

from oarlock.broker.memory.state import ChangeLog, EpochState, Stored
from oarlock.broker.values import Delta

MIRROR = "mirror"
"""Index entry of an object that its readers keep in memory."""


def mirrored(stored: Stored | None) -> bool:
    return stored is not None and MIRROR in stored.entries.split(" ")


def log(state: EpochState, resource: str, gen: str, object_id: str) -> None:
    """Enter a change."""
    changes = state.changes.setdefault((resource, gen), ChangeLog())
    changes.seq += 1
    changes.changed[object_id] = changes.seq


def trim(state: EpochState, resource: str, gen: str) -> None:
    """Bound the log, which also has ids whose objects are gone."""
    changes = state.changes[resource, gen]
    living = len(state.index.get((resource, gen, MIRROR), {}))
    if len(changes.changed) <= 2 * living + 1_000:
        return
    oldest = sorted(changes.changed, key=changes.changed.__getitem__)[: -living - 500]
    changes.floor = changes.changed[oldest[-1]]
    for object_id in oldest:
        del changes.changed[object_id]


def since(state: EpochState, resource: str, gen: str, known: str) -> Delta:
    """The changes since a version; all objects where it is unknown, of another generation, or too old."""
    if resource not in state.watermark:
        return Delta("")
    changes = state.changes.get((resource, gen), ChangeLog())
    of, _, number = known.rpartition(":")
    seq = int(number) if number.isdecimal() else -1
    objects = state.objects.get((resource, gen), {})
    version = f"{gen}:{changes.seq}"
    mirror = state.index.get((resource, gen, MIRROR), {})
    if of != gen or not changes.floor <= seq <= changes.seq:
        return Delta(version, True, [(each, objects[each].cached) for each in mirror], [])
    ids = [object_id for object_id, at in changes.changed.items() if at > seq]
    changed = [(each, objects[each].cached) for each in ids if each in mirror]
    return Delta(version, False, changed, [each for each in ids if each not in mirror])
