"""The object cache in memory: ``scripts/{ingest,stage,commit_list,republish,look}.lua`` and ``loading`` in Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from oarlock.broker.memory import changes, summary
from oarlock.broker.memory.state import EpochState, Job, Part, Stored, split
from oarlock.broker.steps.loading import with_children
from oarlock.broker.values.claims import Batch, Unloaded
from oarlock.broker.values.events import Compared, Event, Ingested
from oarlock.broker.values.objects import Cached, Delta, Page, PageLimits, PageMark
from oarlock.broker.versions import newer

LOCK_MAX_MS = 60_000


def stored(event: Event) -> Stored:
    """The object of an event, as it is stored."""
    entries, _, wakes = event.words.partition("\n")
    _, text = event.classed or ("", b"")
    return Stored(event.rv, event.uid, entries, wakes, event.blob or b"", event.signature, text)


def generation(state: EpochState, resource: str) -> str:
    return state.generation.get(resource, "0")


def indexed(entries: str) -> list[str]:
    """The entries that an object is indexed under. The others say where claim is to look for it."""
    return [entry for entry in entries.split() if entry[0] not in "?+*#="]


def reindex(state: EpochState, resource: str, gen: str, object_id: str, was: str, now: str) -> None:
    """Move an object from its old index entries to its new ones."""
    kept = set(indexed(now))
    for entry in set(indexed(was)) - kept:
        ids = state.index.get((resource, gen, entry), {})
        ids.pop(object_id, None)
        if not ids:
            state.index.pop((resource, gen, entry), None)
    for entry in kept:
        state.index.setdefault((resource, gen, entry), {})[object_id] = None


def recount_apart(state: EpochState, resource: str, gen: str, old: Stored | None, event: Event) -> None:
    """An object comes or goes: store the part that it names, and drop the one that no object names any more."""
    parts = state.apart.setdefault((resource, gen), {})
    if event.apart is not None and event.blob is not None:
        name, content = event.apart
        parts.setdefault(name, Part(content)).count += 1
    if old is not None and old.apart:
        parts[old.apart].count -= 1
        if not parts[old.apart].count:
            del parts[old.apart]


def readers(state: EpochState, resource: str, rv: str) -> list[str]:
    """The tasks that waited for the cache to pass ``rv``. They do so no longer."""
    waiting = state.unread.get(resource)
    if not waiting:
        return []
    passed = sorted(each for each in waiting if not newer(each[1], rv))
    waiting.difference_update(passed)
    return [task for _, _, task in passed]


def wake_readers(state: EpochState, now: int, resource: str, rv: str) -> int:
    """Add the keys that waited for the cache to pass ``rv``. Returns how many entered a stream."""
    return sum(state.add(*split(task), f"read {resource}", now) for task in readers(state, resource, rv))


def ingest(state: EpochState, now: int, resource: str, from_rv: str, to_rv: str, events: Sequence[Event]) -> Ingested:
    mark = state.watermark.get(resource)
    if mark is None:
        return Ingested("NEEDLIST")
    if newer(from_rv, mark):
        return Ingested("GAP", mark)
    gen, skipped, logged = generation(state, resource), 0, False
    objects = state.objects.setdefault((resource, gen), {})
    wakings: list[tuple[str, str, int]] = []
    for at, event in enumerate(events):
        if not newer(event.rv, mark):
            skipped += 1
            continue
        old, new = objects.get(event.id), stored(event)
        unchanged = (
            event.blob is not None
            and old is not None
            and (old.uid, old.blob, old.entries, old.wakes) == (new.uid, new.blob, new.entries, new.wakes)
        )
        if not unchanged:
            was = old.all_wakes if old is not None else ""
            woken = was.split() + (new.all_wakes.split() if new.all_wakes != was else [])
            wakings += [(task, event.trigger(resource, task), at) for task in woken]
            if changes.mirrored(old) or (event.blob is not None and changes.mirrored(new)):
                changes.log(state, resource, gen, event.id)
                logged = True
        gone = event.blob is None
        summary.recount(state, resource, gen, old, None if gone else new)
        reindex(state, resource, gen, event.id, old.entries if old else "", "" if gone else new.entries)
        if gone:
            objects.pop(event.id, None)
        else:
            objects[event.id] = new
        recount_apart(state, resource, gen, old, event)
    read = readers(state, resource, to_rv) if newer(to_rv, mark) else []
    woken_now = [(task, trigger) for task, trigger, _ in wakings] + [(task, f"read {resource}") for task in read]
    added = state.add_all(woken_now, now) if woken_now else 0
    told = tuple([(task, state.queued_since_ms(*split(task)), at) for task, _, at in wakings])
    if logged:
        changes.trim(state, resource, gen)
    if newer(to_rv, mark):
        state.watermark[resource] = mark = to_rv
    state.wake(now)
    if mark == to_rv:
        state.watermark_at[resource] = now
    return Ingested("OK", to_rv, added, skipped, told)


def compare(state: EpochState, resource: str, gen: str, versions: Sequence[tuple[str, str]]) -> Compared:
    read, objects = generation(state, resource), state.objects.get((resource, gen), {})
    same = sum(each in objects and objects[each].rv == rv for each, rv in versions) if read == gen else 0
    return Compared(read, state.watermark.get(resource, ""), len(objects), same)


def stage(state: EpochState, now: int, resource: str, gen: str, events: Sequence[Event], lock_ms: int) -> bool:
    holder, until_ms = state.staging.get(resource, (gen, 0))
    if gen == generation(state, resource) or gen in state.abandoned:
        return False
    if holder != gen:
        if now < until_ms <= now + max(lock_ms, LOCK_MAX_MS):
            return False
        state.abandoned.add(holder)
        state.republish.append(Job("sweep", resource, holder))
    state.staging[resource] = (gen, now + lock_ms)
    objects = state.objects.setdefault((resource, gen), {})
    for event in events:
        old, objects[event.id] = objects.get(event.id), stored(event)
        summary.recount(state, resource, gen, old, objects[event.id])
        recount_apart(state, resource, gen, old, event)
        reindex(state, resource, gen, event.id, "", objects[event.id].entries)
    return True


def commit_list(state: EpochState, now: int, resource: str, gen: str, rv: str) -> Ingested:
    if state.staging.get(resource, ("", 0))[0] != gen:
        return Ingested("BUSY", rv)
    del state.staging[resource]
    mark, old = state.watermark.get(resource), generation(state, resource)
    if mark is not None and newer(mark, rv):
        state.republish.append(Job("sweep", resource, gen))
        return Ingested("OLD", mark)
    state.republish.append(Job("keep", resource, gen))
    if old != "0":
        state.republish.append(Job("sweep", resource, old))
    wake_readers(state, now, resource, rv)
    state.wake(now)
    state.generation[resource] = gen
    state.watermark_at[resource] = now
    state.watermark[resource] = rv
    return Ingested("OK", rv)


def republish(state: EpochState, now: int, chunk: int) -> int:
    """The steps still to do; 0 when finished."""
    if not state.republish:
        return 0
    job, added = state.republish[0], 0
    objects = state.objects.get((job.resource, job.generation), {})
    if job.rest is None:
        job.rest = list(objects)
    step, job.rest = job.rest[:chunk], job.rest[chunk:]
    for each in (objects[object_id] for object_id in step if object_id in objects):
        wakes = each.all_wakes
        if job.mode == "sweep":
            for entry in indexed(each.entries):
                state.index.pop((job.resource, job.generation, entry), None)
            if each.kind and not summary.drop(state, job.resource, job.generation, each):
                wakes = ""  # the first object of the class has woken them
        added += sum(state.add(*split(task), f"list {job.resource}", now) for task in wakes.split())
    if not job.rest:
        state.republish.pop(0)
        if job.mode == "sweep":
            state.objects.pop((job.resource, job.generation), None)
            state.changes.pop((job.resource, job.generation), None)
            state.apart.pop((job.resource, job.generation), None)
    state.wake(now)
    return len(state.republish)


def look(state: EpochState, resource: str, ids: Sequence[str], index: Sequence[str]) -> tuple[str, list[Cached]]:
    gen = generation(state, resource)
    objects = state.objects.get((resource, gen), {})
    wanted = ids or list(dict.fromkeys(each for entry in index for each in state.index.get((resource, gen, entry), {})))
    return state.watermark.get(resource, ""), [objects[each].cached for each in wanted if each in objects]


def load(state: EpochState, batch: Batch) -> Batch:
    """The batch with what was left to be loaded."""
    read = {
        resource: changes.everything(state, resource, delta.version, generation(state, resource))
        for resource, delta in batch.local_caches.items()
        if delta.unread
    }
    if read:
        batch = replace(batch, local_caches={**batch.local_caches, **read})
    return with_children(batch, [_loaded(state, each) for claim in batch.claims for each in claim.unloaded])


def local_cache(state: EpochState, resource: str) -> Delta:
    """All mirrored objects of a resource."""
    return changes.since(state, resource, generation(state, resource), "", math.inf)


def _loaded(state: EpochState, unloaded: Unloaded) -> list[Cached]:
    if generation(state, unloaded.resource) != unloaded.generation:
        return look(state, unloaded.resource, (), (unloaded.entry,))[1]
    objects = state.objects.get((unloaded.resource, unloaded.generation), {})
    found = [objects[each] for each in map(bytes.decode, unloaded.ids) if each in objects]
    if any(each.kind and each.entries.split()[0] != unloaded.entry for each in found):
        return look(state, unloaded.resource, (), (unloaded.entry,))[1]  # another owner has one by now
    return [each.cached for each in found]


def page(
    state: EpochState, resource: str, entries: Sequence[str], mark: PageMark | None, limits: PageLimits
) -> Page | None:
    """In the order of entries and ids. The place is the last id given out, so it is good whatever comes and goes."""
    gen = generation(state, resource)
    if mark is not None and mark.generation != gen:
        return None
    objects = state.objects.get((resource, gen), {})
    nth, _, after = (mark.place if mark is not None else "0:").partition(":")
    waiting = [
        (n, each)
        for n, entry in enumerate(entries)
        for each in sorted(state.index.get((resource, gen, entry), {}))
        if each in objects and (n, each) > (int(nth), after)
    ]
    found: dict[str, Cached] = {}
    size = taken = 0
    while taken < len(waiting) and len(found) < max(1, limits.count_max) and size < max(1, limits.bytes_max):
        each = waiting[taken][1]
        size += objects[each].size if each not in found else 0
        found[each] = objects[each].cached
        taken += 1
    following = PageMark(gen, "{}:{}".format(*waiting[taken - 1])) if taken < len(waiting) else None
    return Page(state.watermark.get(resource, ""), list(found.values()), following)
