"""How leases go on and end, in memory: ``scripts/{release,reclaim,renew,report}.lua`` in Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oarlock.broker.memory import history
from oarlock.broker.memory.state import CAP_PAGE, CLOCK_JUMP_MS, PARKED_MAX_MS, SILENT_MS, WAITER_MS, EpochState, split


def release(state: EpochState, now: int, holder: str, blamed: str, ended: str) -> list[str]:
    """The tasks given back."""
    state.strike_off(holder)
    tasks = sorted(state.tasks_of.get(holder, ()))
    for task in tasks:
        queue, key = split(task)
        lock = state.queue(queue).locks[key]
        state.unlock(queue, key, holder)
        history.lose_turn(state, now, task, lock, ended)
        if task == blamed:
            state.requeue_crashed(queue, key, now)
        else:
            state.append(queue, key, now)
    history.keep_turns(state)
    state.wake_for_queued()
    state.wake(now)
    return tasks


def reclaim(state: EpochState, now: int, limit: int) -> list[str]:
    """The tasks given back."""
    tick = now if state.tick is None else state.tick
    if not 0 <= now - tick <= CLOCK_JUMP_MS or now < state.no_reclaim_until:
        return []
    ended = sorted((end, task) for task, end in state.leases.items() if end <= now)
    tasks = [task for _, task in ended[:limit]]
    silent = sorted((at, holder) for holder, at in state.seen.items() if at <= now - SILENT_MS)[:limit]
    for task in tasks:
        queue, key = split(task)
        q = state.queue(queue)
        lock = q.locks[key]
        state.unlock(queue, key, lock.holder)
        history.lose_turn(state, now, task, lock)
        if key in q.crashes:
            state.requeue_crashed(queue, key, now)
        else:
            q.crashes[key] = 0
            state.append(queue, key, now)
    for _, holder in silent:
        if holder not in state.tasks_of:
            state.strike_off(holder)
    history.keep_turns(state)
    state.wake(now)
    return tasks


def renew(state: EpochState, now: int, holders: Sequence[str], lease_ms: int) -> list[str]:
    """The holders that are not registered."""
    state.waiters = {holder: until for holder, until in state.waiters.items() if until >= now}
    tick = now if state.tick is None else state.tick
    if not 0 <= now - tick <= CLOCK_JUMP_MS:
        state.no_reclaim_until = now + lease_ms
        state.capping = dict.fromkeys(_timed(state, now, lease_ms), math.inf)
        state.hurry()
    if state.capping:
        for name, (entries, latest) in _timed(state, now, lease_ms).items():
            if name in state.capping and _cap_page(state, name, entries, latest):
                state.hurry()
    state.tick = now
    for holder in holders:
        if holder in state.holders:
            state.seen[holder] = now
            state.leases |= dict.fromkeys(state.tasks_of.get(holder, ()), now + lease_ms)
    history.trim(state, now)
    state.wake_for_queued()
    state.wake(now)
    return [holder for holder in holders if holder not in state.holders]


def report(state: EpochState, now: int, ingestor: str, text: str) -> None:
    """``scripts/report.lua``: what an ingestor hears; "": it leaves."""
    state.ingestors = {name: told for name, told in state.ingestors.items() if abs(now - told[0]) <= SILENT_MS}
    state.ingestors.pop(ingestor, None)
    if text:
        state.ingestors[ingestor] = now, text


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
