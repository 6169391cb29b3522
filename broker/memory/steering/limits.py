"""Limits of namespaces in memory: ``scripts/lib/limits.lua`` in Python."""

from __future__ import annotations

import math
from collections.abc import MutableMapping

from oarlock.broker.memory.state import EpochState, namespace_of, split
from oarlock.broker.memory.steering.scopes import number_in

LATE_MS = 200
LOOK_MS = 20
LIMIT = "rate namespace "
Beginning = MutableMapping[str, int]
"""Namespace -> how many of its keys a claim lets begin."""


def may_begin(state: EpochState, task: str, now: int, beginning: Beginning) -> bool:
    """Whether the turn of a queued key may begin. Else it is in line."""
    namespace = namespace_of(split(task)[1])
    rate = _rate(state, namespace)
    if rate is None:
        return True
    next_ms, filled_ms = _pace(state, namespace, rate, now)
    some, line = beginning.get(namespace, 0), state.lines.setdefault(namespace, {})
    free = math.floor((now - filled_ms) * rate / 1000 + 1e-6) > some
    waiting = any(place > 0 for place in line.values())
    if task not in line:
        free = free and not line and next_ms <= now
        place = 1 + max(map(abs, line.values()), default=0)
        if free:
            _keep(state, namespace, max(next_ms, now) + 1000 / rate, filled_ms)
    else:
        place = abs(line[task])
        if line[task] < 0 and not free:  # it comes back as soon as the bucket has a turn for it
            _keep(state, namespace, min(next_ms, filled_ms + (some + 1) * 1000 / rate), filled_ms)
        free = free and line[task] < 0
    if free:
        beginning[namespace] = some + 1
    elif not waiting:
        state.hurry()
    line[task] = -place if free else place
    return free


def waits_in_line(state: EpochState, task: str) -> bool:
    namespace = namespace_of(split(task)[1])
    return _rate(state, namespace) is not None and state.lines.get(namespace, {}).get(task, 0) > 0


def turn_begins(state: EpochState, task: str, now: int) -> None:
    namespace = namespace_of(split(task)[1])
    rate = _rate(state, namespace)
    if rate is not None:
        next_ms, filled_ms = _pace(state, namespace, rate, now)
        state.lines[namespace].pop(task)
        _keep(state, namespace, next_ms, filled_ms + 1000 / rate)


def limit_changed(state: EpochState, scope: str) -> bool:
    """What stands under a scope has changed. Returns whether that ended a limit."""
    namespace = scope.removeprefix(LIMIT)
    if scope.startswith(LIMIT):
        state.limits.pop(namespace, None)
    if not scope.startswith(LIMIT) or _rate(state, namespace) is not None:
        return False
    state.lines.pop(namespace, None)
    return True


def advance_lines(state: EpochState, now: int, count: int) -> tuple[int, list[int]]:
    """Queue the keys whose time has come. Returns how many, and of each line when its next one may go."""
    limited = sorted(scope.removeprefix(LIMIT) for scope in state.pauses if scope.startswith(LIMIT))
    added, times = 0, []
    for namespace in limited if "all" not in state.pauses else ():
        rate, line = _rate(state, namespace), state.lines.get(namespace, {})
        if rate is None or not _waiting(line):
            continue
        next_ms, filled_ms = _pace(state, namespace, rate, now)
        next_ms = max(next_ms, now - LATE_MS)
        if next_ms <= now:
            first = _waiting(line)[: min(count, math.floor((now - next_ms) * rate / 1000) + 1)]
            for task in first:
                queue, key = split(task)
                line[task] = -line[task]
                state.queue(queue).held.discard(key)
                if state.queue(queue).state.get(key) == "held":
                    state.append(queue, key, now)
                    added += 1
            next_ms += len(first) * 1000 / rate
            _keep(state, namespace, next_ms, filled_ms)
        if _waiting(line):
            times.append(math.ceil(max(next_ms, now + LOOK_MS)))
    return added, times


def _waiting(line: dict[str, int]) -> list[str]:
    return sorted((task for task, place in line.items() if place > 0), key=lambda task: line[task])


def _rate(state: EpochState, namespace: str) -> float | None:
    return number_in(state.pauses.get(LIMIT + namespace), "rate")


def _pace(state: EpochState, namespace: str, rate: float, now: int) -> tuple[float, float]:
    """When the next key may leave the line, and since when the bucket of the turns would be filled."""
    each_ms = 1000 / rate
    next_ms, filled_ms = state.limits.get(namespace, (now, 0))
    if next_ms > now + each_ms + 2 or filled_ms > now + 2:  # the clock went back: wait for no time to come again
        del state.limits[namespace]
        next_ms, filled_ms = now, 0
    return next_ms, max(filled_ms, now - max(each_ms, 1000))


def _keep(state: EpochState, namespace: str, next_ms: float, filled_ms: float) -> None:
    state.limits[namespace] = float(f"{next_ms:.3f}"), float(f"{filled_ms:.3f}")
