"""What keys remember, in memory: the triggers of ``scripts/lib/queue.lua``, and ``scripts/lib/history.lua`` in Python.

Not in the twin: that a server whose memory is nearly used up drops all histories.
"""

from __future__ import annotations

from oarlock.broker.memory.state import EpochState, Lock, split

BYTES_MAX, FLEET_BYTES_MAX, AGE_MAX_MS = 1_000, 64 << 20, 86_400_000
PERIOD_MS = 600_000
BLOCK_BYTES, OVERHEAD_BYTES = 64, 200
DROPPED_TOGETHER, TRIMMED_TOGETHER = 100, 200


def end_turn(state: EpochState, now: int, task: str, lock: Lock, verdict: str, did: str) -> None:
    """A turn is over: this was its lock."""
    queue, key = split(task)
    histories = state.queue(queue).history
    was = histories.get(key, "")
    lines, head = was.split("\n") if was else [], f"{verdict} {did or '-'} < "
    turns, ended_ms = 1, 0
    if lines and lines[0].startswith(head):
        turns_alike, ended, *_ = lines.pop(0).removeprefix(head).split()
        turns, ended_ms = int(turns_alike) + 1, int(ended)
    line = f"{head}{turns} {now} {lock.holder} since_ms={lock.since_ms} why={lock.why}"
    lines.insert(0, line)
    while len(lines) > 1 and len("\n".join(lines)) > BYTES_MAX:
        lines.pop()
    histories[key] = "\n".join(lines)[:BYTES_MAX]
    state.history_bytes += _size(task, histories[key]) - _size(task, was)
    if not ended_ms or ended_ms // PERIOD_MS != now // PERIOD_MS:
        state.histories[task] = now - now % PERIOD_MS


def keep_turns(state: EpochState) -> None:
    """What was written longest ago goes first where a fleet has too much of it."""
    while state.history_bytes > FLEET_BYTES_MAX and state.histories:
        _drop(state, _oldest(state)[:DROPPED_TOGETHER])


def lose_turn(state: EpochState, now: int, task: str, lock: Lock) -> None:
    """The holder of a lock is gone, or was too slow."""
    end_turn(state, now, task, lock, "lost", "")
    state.because(*split(task), f"lost {lock.holder} {lock.since_ms}", now)


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
    return OVERHEAD_BYTES + 3 * (len(task) - 1) + -(-len(text) // BLOCK_BYTES) * BLOCK_BYTES if text else 0
