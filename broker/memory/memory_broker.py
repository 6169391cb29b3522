"""The broker in memory: the same steps, results and exceptions as ``RedisBroker``, for tests and simulations.

One ``MemoryStore`` stands for the Redis server; a ``MemoryBroker`` is one process's view of one epoch of it, so that a
handle of an earlier epoch is refused as it would be there. Time is the store's clock. Not for threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from oarlock.broker.expectations import NOTES, OpenWrite
from oarlock.broker.memory import cache, claim, finish
from oarlock.broker.memory.state import (
    CAP_PAGE,
    CLOCK_JUMP_MS,
    EXPECTATIONS_TTL_MS,
    PARKED_MAX_MS,
    SILENT_MS,
    WAITER_MS,
    EpochState,
    ExpectHash,
    split,
)
from oarlock.broker.values import (
    Batch,
    Cached,
    Claim,
    ClaimLimits,
    ClaimLost,
    Entry,
    EpochOver,
    Event,
    Finish,
    Idle,
    Ingested,
    LoadSpec,
    NameTaken,
    Page,
    PageMark,
)


class MemoryStore:
    """What a Redis server would hold. ``clock`` gives ms; it may jump, as Redis's own can."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.epoch = 0
        self.state = EpochState()

    def bootstrap(self, number: int) -> None:
        """Begin an epoch: empty, phase DRAIN. Handles of another epoch get EpochOver from now on."""
        self.epoch, self.state = number, EpochState()

    def flush(self) -> None:
        """Lose everything, as FLUSHALL, a restart or a failover to nothing would."""
        self.epoch, self.state = 0, EpochState()


class MemoryBroker:
    """``broker.protocol.Broker`` on a ``MemoryStore``."""

    def __init__(self, store: MemoryStore, epoch: int) -> None:
        self.epoch = epoch
        self.store = store

    def _enter(self, step: str) -> tuple[EpochState, int]:
        if self.store.epoch != self.epoch:
            raise EpochOver(f"{step}: epoch {self.epoch} is over")
        return self.store.state, self.store.clock()

    # -- the work queue ------------------------------------------------------------------------------------------

    def add(self, queue: str, key_names: Iterable[str], *, unpark: bool = False) -> int:
        state, now = self._enter("add")
        q, added = state.queue(queue), 0
        for key in key_names:
            if unpark and q.parked.pop(key, None) is not None:
                q.state.pop(key, None)
                q.crashes.pop(key, None)
            added += state.add(queue, key)
        state.wake(added, now)
        return added

    def add_after(self, queue: str, key: str, delay_ms: int) -> None:
        state, now = self._enter("add_after")
        state.wake(state.add_after(queue, key, delay_ms, now), now)

    def add_rate_limited(self, queue: str, key: str) -> int:
        state, now = self._enter("add_after")
        delay_ms = state.back_off_ms(queue, key, now)
        state.wake(state.add_after(queue, key, delay_ms, now), now)
        return delay_ms

    def forget(self, queue: str, key: str) -> None:
        state, _ = self._enter("forget")
        state.queue(queue).failures.pop(key, None)

    def num_requeues(self, queue: str, key: str) -> int:
        return self.store.state.queue(queue).failures.get(key, 0) if self.store.epoch == self.epoch else 0

    def register(self, holder: str, supervisor: str, queues: Sequence[str]) -> None:
        state, now = self._enter("register")
        state.holders[holder], state.seen[holder] = (supervisor, now), now
        state.registered.update(queues)

    def claim(self, holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits) -> Batch | Idle:
        return claim.claim(*self._enter("claim"), holder, nonce, specs, limits)

    def announce(self, claim: Claim, owner_uid: str, entries: Sequence[Entry], *, lease_ms: int) -> list[NameTaken]:
        state, now = self._enter("announce")
        q = state.queue(claim.queue)
        lock = q.locks.get(claim.key)
        if lock is None or lock.nonce != claim.nonce:
            raise ClaimLost(f"{claim.queue}:{claim.key}")
        namespace = claim.key[: claim.key.rfind("/") + 1]
        record = q.expected(claim.key, now)
        borne, fields = [], {"owner": owner_uid}
        for entry in entries:
            if entry.verb == "create" and (record is None or entry.field not in record.fields):
                resource, _, name = entry.target.partition("/")
                objects = state.objects.get((resource, cache.generation(state, resource)), {})
                if namespace + name in objects:
                    borne.append(NameTaken(entry.target, objects[namespace + name].cached))
            known = record.fields.get(entry.field, "") if record is not None else ""
            fields[entry.field] = entry.detail if entry.verb in NOTES else _pending(entry, known, now)
        if borne:
            return borne
        state.leases[f"{claim.queue}:{claim.key}"] = now + lease_ms
        if entries:
            record = q.expectations.setdefault(claim.key, ExpectHash({}, now + EXPECTATIONS_TTL_MS))
            record.fields |= fields
            if any(entry.verb not in NOTES for entry in entries):
                q.unsettled.setdefault(claim.key, now)
            state.keep_expectations(claim.queue, claim.key, 0, now)
        return []

    def finish(self, turns: Sequence[Finish]) -> list[int]:
        return finish.finish(*self._enter("finish"), turns)

    def release(self, holder: str, *, blamed: str = "") -> list[str]:
        state, now = self._enter("release")
        state.strike_off(holder)
        added, tasks = 0, sorted(state.tasks_of.get(holder, ()))
        for task in tasks:
            queue, key = split(task)
            state.unlock(queue, key, holder)
            if task == blamed:
                added += state.requeue_crashed(queue, key, now)
            else:
                state.append(queue, key)
                added += 1
        state.wake(max(added, 1), now)
        return tasks

    def reclaim(self, limit: int = 200) -> list[str]:
        state, now = self._enter("reclaim")
        tick = now if state.tick is None else state.tick
        if not 0 <= now - tick <= CLOCK_JUMP_MS or now < state.no_reclaim_until:
            return []
        ended = sorted((end, task) for task, end in state.leases.items() if end <= now)
        tasks, added = [task for _, task in ended[:limit]], 0
        silent = sorted((at, holder) for holder, at in state.seen.items() if at <= now - SILENT_MS)[:limit]
        for task in tasks:
            queue, key = split(task)
            q = state.queue(queue)
            state.unlock(queue, key, q.locks[key].holder)
            if key in q.crashes:
                added += state.requeue_crashed(queue, key, now)
            else:
                q.crashes[key] = 0
                state.append(queue, key)
                added += 1
        for _, holder in silent:
            if holder not in state.tasks_of:
                state.strike_off(holder)
        state.wake(added, now)
        return tasks

    def renew(self, holders: Sequence[str], *, lease_ms: int) -> list[str]:
        state, now = self._enter("renew")
        state.waiters = {holder: until for holder, until in state.waiters.items() if until >= now}
        tick = now if state.tick is None else state.tick
        if not 0 <= now - tick <= CLOCK_JUMP_MS:
            state.no_reclaim_until = now + lease_ms
            state.capping = dict.fromkeys(_timed(state, now, lease_ms), math.inf)
            state.hurry()
        for name, (entries, latest) in _timed(state, now, lease_ms).items():
            if name in state.capping and _cap_page(state, name, entries, latest):
                state.hurry()
        state.tick = now
        for holder in holders:
            if holder in state.holders:
                state.seen[holder] = now
                state.leases |= dict.fromkeys(state.tasks_of.get(holder, ()), now + lease_ms)
        if any(state.queue(queue).stream for queue in state.registered):
            state.wake(1, now)
        return [holder for holder in holders if holder not in state.holders]

    def due(self, limit: int = 500) -> tuple[int, int | None]:
        state, now = self._enter("due")
        moved, added = 0, 0
        waiting: list[int] = []
        for queue in sorted(state.registered):
            q = state.queue(queue)
            for entries in (q.delayed, q.parked):
                ready = sorted((at, key) for key, at in entries.items() if at <= now)[:limit]
                for _, key in ready:
                    del entries[key]
                    if entries is q.parked:
                        q.state.pop(key, None)
                    added += state.add(queue, key)
                moved += len(ready)
                waiting += entries.values()
        state.wake(added, now)
        return moved, max(0, min(waiting) - now) if waiting else None

    def wait(self, list_name: str = "wake", timeout_s: float = 1.0) -> bool:
        """Take a token if one lies there. It never blocks: what moves the clock decides when to ask again."""
        state, _ = self._enter("wait")
        if list_name == "timer":
            found, state.timer_tokens = state.timer_tokens > 0, max(0, state.timer_tokens - 1)
        else:
            found, state.wake_tokens = state.wake_tokens > 0, max(0, state.wake_tokens - 1)
        return found

    # -- the object cache ----------------------------------------------------------------------------------------

    def ingest(self, resource: str, from_rv: str, to_rv: str, events: Sequence[Event]) -> Ingested:
        return cache.ingest(*self._enter("ingest"), resource, from_rv, to_rv, events)

    def stage(self, resource: str, generation: str, events: Sequence[Event], *, lock_ms: int = 30_000) -> bool:
        return cache.stage(*self._enter("stage"), resource, generation, events, lock_ms)

    def commit_list(self, resource: str, generation: str, rv: str) -> Ingested:
        return cache.commit_list(*self._enter("commit_list"), resource, generation, rv)

    def republish(self, chunk: int = 500) -> int:
        return cache.republish(*self._enter("republish"), chunk)

    def open(self, resources: Sequence[str]) -> str:
        state, now = self._enter("open")
        for resource in resources:
            if resource not in state.watermark:
                return resource
        state.phase = "HELD" if state.pause_reason else "OPEN"
        state.wake(64, now)
        return ""

    def pause(self, reason: str) -> str:
        state, now = self._enter("pause")
        state.pause_reason = reason
        if reason and state.phase == "OPEN":
            state.phase = "HELD"
        elif not reason and state.phase == "HELD":
            state.phase = "OPEN"
            state.wake(64, now)
        return state.phase

    def look(self, resource: str, *, ids: Sequence[str] = (), index: Sequence[str] = ()) -> tuple[str, list[Cached]]:
        return cache.look(self._enter("look")[0], resource, ids, index)

    def page(
        self,
        resource: str,
        entries: Sequence[str],
        mark: PageMark | None = None,
        *,
        count_max: int = 500,
        bytes_max: int = 262_144,
    ) -> Page | None:
        return cache.page(self._enter("page")[0], resource, entries, mark, count_max, bytes_max)

    def watermark(self, resource: str) -> str | None:
        return self.store.state.watermark.get(resource) if self.store.epoch == self.epoch else None


def _pending(entry: Entry, known: str, now: int) -> str:
    """The text of an announced write. ``known``: what its entry says so far."""
    since_ms, tries = now, 1
    if known.startswith("pending ") and (entry.verb == "create" or entry.detail in known):
        before = OpenWrite.parse(known)
        since_ms, tries = before.since_ms or now, before.tries + 1
    text = f"pending since_ms={since_ms} sent_ms={now} tries={tries}"
    return f"{text} {entry.detail}" if entry.detail else text


def _timed(state: EpochState, now: int, lease_ms: int) -> dict[str, tuple[dict[str, int], int]]:
    """What waits for a time, and how far away that may be at most."""
    found = {
        "leases": (state.leases, now + lease_ms),
        "seen": (state.seen, now),
        "waiters": (state.waiters, now + WAITER_MS),
    }
    for queue in state.registered:
        found[f"{queue}:delayed"] = state.queue(queue).delayed, now
        found[f"{queue}:parked"] = state.queue(queue).parked, now + PARKED_MAX_MS
    return found


def _cap_page(state: EpochState, name: str, entries: dict[str, int], latest: int) -> bool:
    """Bring a page of the latest times down to what they may be at most. Returns whether there were any."""
    above = sorted(((at, each) for each, at in entries.items() if latest < at <= state.capping[name]), reverse=True)
    page = above[:CAP_PAGE]
    for _, each in page:
        entries[each] = latest
    if len(page) < CAP_PAGE:
        del state.capping[name]
    else:
        state.capping[name] = page[-1][0]
    return bool(page)
