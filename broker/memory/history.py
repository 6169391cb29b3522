"""What keys remember, in memory: the triggers of ``scripts/lib/queue.lua``, and ``scripts/lib/history.lua`` in Python.

Not in the twin: that a server whose memory is nearly used up drops all histories.
"""

from __future__ import annotations

import re

from oarlock.broker.memory.state import EpochState, Lock, split

LINES_MAX, BYTES_MAX, FLEET_BYTES_MAX, AGE_MAX_MS = 20, 1_000, 64 << 20, 86_400_000
OVERHEAD_BYTES = 200
DROPPED_TOGETHER, TRIMMED_TOGETHER = 100, 200

_LINE = re.compile(r"\d+ \S+ \S+ ([a-z]+)\*?(\d*) ([^\n]*?) < [^\n]*\n?(.*)", re.DOTALL)


def end_turn(state: EpochState, now: int, task: str, lock: Lock, verdict: str, did: str) -> None:
    """A turn is over: this was its lock."""
    queue, key = split(task)
    histories = state.queue(queue).history
    was = text = histories.get(key, "")
    queued_ms, _, why = lock.why.partition(" ")
    did, turns = did or "-", 1
    last = _LINE.fullmatch(text)
    if last is not None and (last[1], last[3]) == (verdict, did):
        turns, text = int(last[2] or 1) + 1, last[4]
    times = f"{max(0, lock.since_ms - int(queued_ms))}+{max(0, now - lock.since_ms)}"
    line = f"{now} {lock.holder} {times} {verdict}{f'*{turns}' if turns > 1 else ''} {did} < {why}"
    lines = [line, *text.split("\n")][:LINES_MAX] if text else [line]
    while len(lines) > 1 and len("\n".join(lines)) > BYTES_MAX:
        lines.pop()
    histories[key] = "\n".join(lines)[:BYTES_MAX]
    state.histories[task] = now
    state.history_bytes += _size(task, histories[key]) - _size(task, was)


def keep_turns(state: EpochState) -> None:
    """What was written longest ago goes first where a fleet has too much of it."""
    while state.history_bytes > FLEET_BYTES_MAX and state.histories:
        _drop(state, _oldest(state)[:DROPPED_TOGETHER])


def lose_turn(state: EpochState, now: int, task: str, lock: Lock) -> None:
    """The holder of a lock is gone, or was too slow."""
    end_turn(state, now, task, lock, "lost", "")
    state.because(*split(task), f"lost {lock.holder}", now)


def trim(state: EpochState, now: int) -> None:
    """Drop those of keys without a turn for a day."""
    _drop(state, [task for task in _oldest(state) if state.histories[task] <= now - AGE_MAX_MS][:TRIMMED_TOGETHER])


def _oldest(state: EpochState) -> list[str]:
    return sorted(state.histories, key=lambda task: (state.histories[task], task))


def _drop(state: EpochState, tasks: list[str]) -> None:
    for task in tasks:
        queue, key = split(task)
        state.history_bytes = max(0, state.history_bytes - _size(task, state.queue(queue).history.pop(key, "")))
        del state.histories[task]


def _size(task: str, text: str) -> int:
    return OVERHEAD_BYTES + 3 * (len(task) - 1) + len(text) if text else 0
