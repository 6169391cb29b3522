"""Pauses in memory: ``scripts/steer.lua`` and ``scripts/lib/pauses.lua`` in Python."""

from __future__ import annotations

import re

from oarlock.broker.memory.state import EpochState
from oarlock.broker.memory.steering.limits import Beginning, limit_changed, may_begin, waits_in_line
from oarlock.broker.pauses import SCOPES_MAX, scopes_over

AUDIT_MAX = 1_000
_UNTIL = re.compile(r"since_ms=\d+ until_ms=(\d+)")


def steer(state: EpochState, now: int, act: str, scope: str, text: str, for_ms: int | None = None) -> bool | None:
    """Whether that changed the pauses; None where so many are paused already."""
    there = scope in state.pauses
    match act:
        case "kept":
            state.pauses_kept = scope
            return False
        case "note":
            audit(state, scope, text)
            return False
        case "pause" | "limit" | "set" | "restore":
            if not there and len(state.pauses) >= SCOPES_MAX:
                return None
            until = "" if for_ms is None else f"until_ms={now + for_ms} "
            state.pauses[scope] = text if act == "restore" else f"since_ms={now} {until}{text}"
            if limit_changed(state, scope):
                _begin_return(state, now)
            state.hurry()
        case "resume":
            state.pauses.pop(scope, None)
            limit_changed(state, scope)
            _begin_return(state, now)
        case _:
            raise ValueError(act)
    if act != "restore":
        audit(state, f"{act} {scope}", text)
    return there if act == "resume" else not there


def audit(state: EpochState, act: str, text: str) -> None:
    """A line for people."""
    state.audit = [*state.audit, f"{act}: {text}"][-AUDIT_MAX:]
    state.acts += 1


def acts(state: EpochState, limit: int) -> list[str]:
    """The lines that were not handed over yet."""
    first = max(0, state.acts_told - (state.acts - len(state.audit)))
    found = state.audit[first : first + limit]
    if found:
        state.acts_told = state.acts - len(state.audit) + first + len(found)
    return found


def end_pauses(state: EpochState, now: int) -> list[int]:
    """End those whose time is over. Returns when the others end that have one."""
    ends = {scope: int(found[1]) for scope, text in state.pauses.items() if (found := _UNTIL.match(text))}
    over = sorted(scope for scope, at in ends.items() if at <= now)
    for scope in over:
        del state.pauses[scope]
        limit_changed(state, scope)
        audit(state, f"resume {scope}", "by=oarlock its time is over")
    if over:
        _begin_return(state, now)
    return [at for at in ends.values() if at > now]


def _begin_return(state: EpochState, now: int) -> None:
    state.resuming |= {queue for queue in state.registered if state.queue(queue).held}
    state.hurry()
    state.wake_all(now)


def hold_back(state: EpochState, queue: str, count: int, now: int, beginning: Beginning) -> list[str]:
    """The first queued keys that no pause is over and that may begin. The others are taken out of the stream, unless
    the pause is over the whole queue.
    """
    q = state.queue(queue)
    free: list[str] = []
    if f"queue {queue}" in state.pauses:
        return []
    while not free and (first := q.first(count)):
        for key in first:
            if is_paused(state, queue, key) or not may_begin(state, f"{queue}:{key}", now, beginning):
                q.stream = [each for each in q.stream if each != key]
                q.backlog.pop(key, None)
                q.state[key] = "held"
                q.held.add(key)
            else:
                free.append(key)
    return free


def is_paused(state: EpochState, queue: str, key: str) -> bool:
    return not state.pauses.keys().isdisjoint(scopes_over(queue, key))


def return_held(state: EpochState, now: int) -> int:
    """Queue the keys whose pause is over. Returns how many."""
    added = 0
    for queue in sorted(state.resuming):
        q = state.queue(queue)
        for key in sorted(q.held):
            if not is_paused(state, queue, key) and not waits_in_line(state, f"{queue}:{key}"):
                q.held.remove(key)
                state.because(queue, key, "resumed", now)
                state.append(queue, key, now)
                added += 1
    state.resuming.clear()
    return added
