"""What keys remember, in memory: the triggers of ``scripts/lib/queue.lua``, and ``scripts/lib/history.lua`` in Python.

Not in the twin: that a server whose memory is nearly used up drops all histories.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from oarlock.broker.memory.state import EpochState, Lock, split

BYTES_MAX, DID_BYTES_MAX = 1_000, 300
TURNS_BYTES = 144
TOLD_MS, TOLD_TURNS, TOLD_TURNS_MAX = 10_000, 10, 100
"""Of turns alike, one is told anew after ten of them and so many ms, or after a hundred."""
BYTES_KEPT, QUIET_KEPT, NAMES_BYTES_MAX = 600, 4, 200
FLEET_BYTES_MAX, AGE_MAX_MS, PERIOD_MS = 64 << 20, 86_400_000, 600_000
BLOCK_BYTES, OVERHEAD_BYTES = 64, 150
DROPPED_TOGETHER, TRIMMED_TOGETHER = 100, 200
_FIRST = re.compile(r"(\d+)(?: (\d+) x(\d+))?((?: \S+)*)")
_LINE = re.compile(r"(.*? < [a-z]* ?)(\d+)x?(\d*) (\d+\+\d+) (\d+)/(\S*) (.*)")
_SET = re.compile(r"(\d+ )set (\S+)\Z")
_QUIET = ("- < ", "status < ", "quiet < ")


@dataclass(slots=True)
class _Line:
    """A turn, or several alike. ``name`` counts the names of the first line from 1; ``part`` ends a worker's name."""

    head: str
    after_ms: int
    turns: int
    times: str
    name: int
    part: str
    triggers: str

    def __str__(self) -> str:
        turns = f"x{self.turns}" if self.turns > 1 else ""
        return f"{self.head}{self.after_ms}{turns} {self.times} {self.name}/{self.part} {self.triggers}"


def end_turn(state: EpochState, now: int, task: str, lock: Lock, verdict: str, did: str) -> None:
    """A turn is over: this was its lock."""
    if not state.remembers:
        return
    queue, key = split(task)
    texts = state.queue(queue).turns
    was = texts.get(key, "")
    told_ms, ended_ms, more, names, older = _parsed(was)
    head = f"{(did or '-')[:DID_BYTES_MAX]} < {'' if verdict == 'ok' else f'{verdict} '}"
    if older and older[0].head == head and _repeats(told_ms, more + 1, now):
        texts[key] = was.replace(_first(told_ms, ended_ms, more), _first(told_ms, now, more + 1), 1)
        return
    if older:
        older[0].after_ms += ended_ms - told_ms
        older[0].turns += more
    why_ms, triggers = lock.why.split(" ", 1)
    name, dash, part = lock.holder.rpartition("-")
    line = _Line(
        head,
        max(0, now - ended_ms) if older else 0,
        1,
        f"{max(0, lock.since_ms - int(why_ms))}+{max(0, now - lock.since_ms)}",
        1,
        part if dash else "",
        _SET.sub(r"\1\2", triggers.split(",")[0]).replace(f"/{key}", "/%", 1),
    )
    if older and older[0].head == line.head:
        alike = older.pop(0)
        line.turns, line.after_ms = alike.turns + 1, line.after_ms + alike.after_ms
    own = name + dash or part
    names = list(dict.fromkeys([*names, own])) if older else [own]
    line.name = names.index(own) + 1
    text = _text(_first(now, now), names, [line, *older])
    if len(text) > TURNS_BYTES and len(text) > len(was):
        line.name = 1
        text = _text(_first(now, now), [own], [line])[:BYTES_MAX]
        _pack(state, task, names, older, now - line.after_ms, max(0, BYTES_MAX - max(TURNS_BYTES, len(text))))
    texts[key] = text
    state.history_bytes += _size(task, text) - _size(task, was)
    if not was or ended_ms // PERIOD_MS != now // PERIOD_MS:
        state.histories[task] = now - now % PERIOD_MS


def _repeats(told_ms: int, more: int, now: int) -> bool:
    """Whether one more turn that ended like the newest line is counted with it, and not told anew."""
    told_anew = more >= TOLD_TURNS and (now - told_ms >= TOLD_MS or more >= TOLD_TURNS_MAX)
    return now - now % PERIOD_MS <= told_ms <= now and not told_anew


def _first(told_ms: int, ended_ms: int, more: int = 0) -> str:
    return f"{told_ms} {ended_ms} x{more:02}"


def _pack(
    state: EpochState, task: str, names: list[str], moved: list[_Line], moved_ended_ms: int, bytes_max: int
) -> None:
    """Move lines of the newest turns, with their names, into the history of their key."""
    queue, key = split(task)
    histories = state.queue(queue).history
    was = histories.get(key, "")
    _, ended_ms, _, known, lines = _parsed(was)
    ended_ms = moved_ended_ms if moved else ended_ms
    known = _renumbered(moved, names, known)
    lines = [*moved, *lines]
    text = _text(ended_ms, known, lines) if lines else ""
    if len(text) > bytes_max:
        text = _shortened(ended_ms, known, lines, bytes_max)
    if text != was:
        histories[key] = text
        state.history_bytes += _size(task, text) - _size(task, was)


def _renumbered(lines: list[_Line], before: list[str], names: list[str]) -> list[str]:
    """Let lines that count names as they were before count these, with those that they add. Returns them."""
    names = list(dict.fromkeys([*names, *(before[line.name - 1] for line in lines)]))
    for line in lines:
        line.name = names.index(before[line.name - 1]) + 1
    return names


def _parsed(text: str) -> tuple[int, int, int, list[str], list[_Line]]:
    """When the newest line was told, when the last turn like it ended, how many these are, names, lines."""
    first, *lines = text.split("\n")
    head = _FIRST.fullmatch(first)
    if head is None:
        return 0, 0, 0, [], []
    ended_ms = int(head[2] or head[1])
    return (
        int(head[1]),
        ended_ms,
        int(head[3] or 0),
        head[4].split(),
        [_Line(*found) for found in map(_fields, lines) if found is not None],
    )


@lru_cache(4_096)
def _fields(line: str) -> tuple[str, int, int, str, int, str, str] | None:
    """Those of a ``_Line``. A line is read with every turn of its key."""
    m = _LINE.fullmatch(line)
    return None if m is None else (m[1], int(m[2]), int(m[3] or 1), m[4], int(m[5]), m[6], m[7])


def _text(first: str | int, names: list[str], lines: list[_Line]) -> str:
    return "\n".join([" ".join([str(first), *names]), *map(str, lines)])


def _shortened(ended_ms: int, names: list[str], lines: list[_Line], bytes_max: int) -> str:
    """Of a text that has become too long: without its oldest quiet lines, and if need be without its oldest ones."""
    size, quiet = len(_text(ended_ms, names, lines)), sum(line.head in _QUIET for line in lines)
    sizes = [len(str(line)) + 1 for line in lines]
    for at in range(len(lines) - 1, 0, -1):
        if size > BYTES_KEPT and quiet > QUIET_KEPT and lines[at].head in _QUIET:
            gone, above = lines.pop(at), lines[at - 1]
            above.after_ms += gone.after_ms
            if above.head in _QUIET:
                above.head, above.turns = "quiet < ", above.turns + gone.turns
            size, quiet = size - sizes[at], quiet - 1
    if len(_text(ended_ms, names, [])) > NAMES_BYTES_MAX:
        names = _renumbered(lines, names, [])
    while len(_text(ended_ms, names, lines)) > bytes_max and len(lines) > 1:
        lines.pop()
    return _text(ended_ms, names, lines)[:bytes_max]


def keep_turns(state: EpochState) -> None:
    """What was written longest ago goes first where a fleet has too much of it."""
    while state.history_bytes > FLEET_BYTES_MAX and state.histories:
        _drop(state, _oldest(state.histories)[:DROPPED_TOGETHER])


def lose_turn(state: EpochState, now: int, task: str, lock: Lock, ended: str = "") -> None:
    """The holder of a lock is gone, or was too slow. ``ended``: how, if that is known."""
    end_turn(state, now, task, lock, "lost", ended)
    state.because(*split(task), f"lost {lock.holder} {lock.since_ms}", now)


def trim(state: EpochState, now: int) -> None:
    """Drop those of keys without a turn for a day."""
    old = {task: at for task, at in state.histories.items() if at <= now - AGE_MAX_MS}
    _drop(state, _oldest(old)[:TRIMMED_TOGETHER])


def _oldest(histories: Mapping[str, int]) -> list[str]:
    return sorted(histories, key=lambda task: (histories[task], task))


def _drop(state: EpochState, tasks: list[str]) -> None:
    for task in tasks:
        queue, key = split(task)
        of = state.queue(queue)
        dropped = _size(task, of.turns.pop(key, "")) + _size(task, of.history.pop(key, ""))
        state.history_bytes = max(0, state.history_bytes - dropped)
        del state.histories[task]


def _size(task: str, text: str) -> int:
    return OVERHEAD_BYTES + 2 * (len(task) - 1) + -(-len(text) // BLOCK_BYTES) * BLOCK_BYTES if text else 0
