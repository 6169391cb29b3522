"""finish in memory: ``scripts/finish.lua`` in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oarlock.broker.memory import history
from oarlock.broker.memory.state import CLOCK_JUMP_MS, EXPECTATIONS_TTL_MS, EpochState, ExpectHash, is_open, timed
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.broker.versions import latest, newer


def finish(state: EpochState, now: int, turns: Sequence[Finish]) -> list[int]:
    """For each: failed turns in a row, or -1 where the claim was no longer ours."""
    locked: set[str] = set()
    ours = []
    for turn in turns:
        lock, task = state.queue(turn.queue).locks.get(turn.key), f"{turn.queue}:{turn.key}"
        ours.append(lock is not None and lock.nonce == turn.nonce and task not in locked)
        if ours[-1]:
            locked.add(task)
    reply = []
    for turn, mine in zip(turns, ours, strict=True):
        queue, key = turn.queue, turn.key
        q = state.queue(queue)
        if not mine:
            reply.append(-1)
            continue
        lock = q.locks[key]
        state.unlock(queue, key, lock.holder)
        dirty = q.state.pop(key, "") == "running+"
        q.crashes.pop(key, None)
        settled = _settle(state, turn, now)
        open_writes = _open_writes(state, queue, key, now)
        if settled and open_writes == _OpenWrites():
            q.unsettled.pop(key, None)
        if dirty:
            state.append(queue, key, now)
        if turn.verdict is Verdict.RETRY or open_writes.at_once:
            pause_ms = state.back_off_ms(queue, key, now)
            if open_writes.at_once:
                pause_ms = min(pause_ms, OPEN_AGAIN_MS)
            delay: int | None = max(pause_ms, turn.delay_ms or 0)
        else:
            q.failures.pop(key, None)
            delay = turn.delay_ms
        if delay is not None:
            state.add_after(queue, key, delay, now)
        again = [change.value for change in turn.changes if change.op == "again" and turn.verdict is not Verdict.GONE]
        if again:
            state.add_after(queue, key, int(again[-1]), now)
        if open_writes.wait_ms is not None:
            state.add_after(queue, key, open_writes.wait_ms, now)
        state.keep_expectations(queue, key, delay or 0, now)
        history.end_turn(state, now, f"{queue}:{key}", lock, turn.verdict, turn.did)
        reply.append(q.failures.get(key, 0))
    history.keep_turns(state)
    state.wake(now)
    return reply


def _settle(state: EpochState, turn: Finish, now: int) -> bool:
    """Apply a turn's changes. Returns whether all it announced is accounted for."""
    q, key = state.queue(turn.queue), turn.key
    if turn.verdict is Verdict.GONE:
        q.expectations.pop(key, None)
        q.min_rv.pop(key, None)
        q.unsettled.pop(key, None)
        return False
    known = q.expected(key, now)
    settled = known is not None and "owner" in known.fields  # without its owner it was made anew, after a loss
    for change in turn.changes:
        expected = q.expected(key, now)
        if change.op == "drop" and expected is not None:
            expected.fields.pop(change.name, None)
            if not expected.fields:
                del q.expectations[key]
        elif change.op == "set":
            q.expectations.setdefault(key, ExpectHash({}, now + EXPECTATIONS_TTL_MS)).fields[change.name] = change.value
        elif change.op == "settled":
            settled = True
        elif change.op == "need":
            min_rv = q.min_rv.setdefault(key, {})
            min_rv[change.name] = latest(min_rv.get(change.name, ""), change.value)
    if any(change.op == "need" for change in turn.changes):
        for resource, rv in q.min_rv[key].items():
            if resource not in state.watermark or newer(rv, state.watermark[resource]):
                state.unread.setdefault(resource, set()).add((len(rv), rv, f"{turn.queue}:{key}"))
    return settled


OPEN_AGAIN_MS = 10_000
WAIT_MAX_MS = 60_000


class _OpenWrites(NamedTuple):
    """Whether a write is open whose time has not begun or is over, and ms until the first time ends."""

    at_once: bool = False
    wait_ms: int | None = None


def _open_writes(state: EpochState, queue: str, key: str, now: int) -> _OpenWrites:
    """The writes of a key that are still open. Expectations with nothing but their owner are dropped."""
    expected = state.queue(queue).expected(key, now)
    if expected is None:
        return _OpenWrites()
    if set(expected.fields) == {"owner"}:
        del state.queue(queue).expectations[key]
    times = [timed(value)[1] for name, value in expected.fields.items() if is_open(name, value)]
    first = min((until_ms for until_ms in times if until_ms is not None), default=None)
    wait_ms = None if first is None else min(first - now, WAIT_MAX_MS) if first > now else CLOCK_JUMP_MS
    return _OpenWrites(None in times, wait_ms)
