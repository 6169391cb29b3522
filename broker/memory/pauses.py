"""Pauses in memory: ``scripts/steer.lua`` and ``scripts/lib/pauses.lua`` in Python."""

from __future__ import annotations

import re

from oarlock.broker.memory.state import EpochState
from oarlock.broker.pauses import SCOPES_MAX, scopes_over

AUDIT_MAX = 1_000
_RATE = re.compile(r" rate=(\d+(?:\.\d+)?)(?!\S)")


def steer(state: EpochState, now: int, act: str, scope: str, text: str) -> bool | None:
    """Whether that changed the pauses; None where so many are paused already."""
    there = scope in state.pauses
    match act:
        case "kept":
            state.pauses_kept = scope
            return False
        case "note":
            state.audit = [*state.audit, f"{scope}: {text}"][-AUDIT_MAX:]
            return False
        case "pause" | "limit" | "restore":
            if not there and len(state.pauses) >= SCOPES_MAX:
                return None
            state.pauses[scope] = text if act == "restore" else f"since_ms={now} {text}"
        case "resume":
            state.pauses.pop(scope, None)
            state.resuming |= {queue for queue in state.registered if state.queue(queue).held}
            state.hurry()
            state.wake(64, now)
        case _:
            raise ValueError(act)
    if act != "restore":
        state.audit = [*state.audit, f"{act} {scope}: {text}"][-AUDIT_MAX:]
    return there if act == "resume" else not there


def rate_set(state: EpochState, queue: str) -> float | None:
    """The rate that people have set for a queue."""
    found = _RATE.search(state.pauses.get(f"rate {queue}", ""))
    return float(found[1]) if found is not None and float(found[1]) > 0 else None


def hold_back(state: EpochState, queue: str, count: int) -> list[str]:
    """The first queued keys that no pause is over. What one is over is taken out of the stream, unless it is over the
    whole queue.
    """
    q, free = state.queue(queue), list[str]()
    if f"queue {queue}" in state.pauses:
        return []
    while not free and q.stream:
        for key in q.stream[:count]:
            if is_paused(state, queue, key):
                q.stream.remove(key)
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
            if not is_paused(state, queue, key):
                q.held.remove(key)
                state.because(queue, key, "resumed", now)
                state.append(queue, key)
                added += 1
    state.resuming.clear()
    return added
