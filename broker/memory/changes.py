"""The change log of mirrored objects in memory: ``scripts/lib/changes.lua`` in Python."""

from __future__ import annotations

from oarlock.broker.memory.state import ChangeLog, EpochState, Stored
from oarlock.broker.steps.loading import MIRROR
from oarlock.broker.values.objects import Delta

MIRROR_MAX = 1_000


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


def since(state: EpochState, resource: str, gen: str, known: str, most: float) -> Delta:
    """The changes since a version; all objects where it is unknown, of another generation, or too old. Of more than
    ``most`` none are handed over: all there is is left to be loaded.
    """
    if resource not in state.watermark:
        return Delta("")
    changes = state.changes.get((resource, gen), ChangeLog())
    of, _, number = known.rpartition(":")
    seq = int(number) if number.isdecimal() else -1
    objects = state.objects.get((resource, gen), {})
    version = f"{gen}:{changes.seq}"
    mirror = state.index.get((resource, gen, MIRROR), {})
    full = of != gen or not changes.floor <= seq <= changes.seq
    ids = [] if full else [object_id for object_id, at in changes.changed.items() if at > seq]
    if len(mirror if full else ids) > most:
        return Delta(version, unread=True)
    if full:
        return Delta(version, True, [(each, objects[each].cached) for each in mirror], [])
    changed = [(each, objects[each].cached) for each in ids if each in mirror]
    return Delta(version, False, changed, [each for each in ids if each not in mirror])


def everything(state: EpochState, resource: str, version: str, gen: str) -> Delta:
    """What ``since`` left to be loaded; nothing is known if a list was committed meanwhile."""
    if version.rpartition(":")[0] != gen:
        return Delta("")
    objects = state.objects.get((resource, gen), {})
    return Delta(version, True, [(each, objects[each].cached) for each in state.index.get((resource, gen, MIRROR), {})])
