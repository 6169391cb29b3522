"""What each worker is doing right now, in memory it shares with its supervisor.

A worker writes its slot before every step that may hold a key. The supervisor reads it to notice a stall, and after a
death to know which key was being worked on. There are no locks. A number that is odd while the slot is being written
(a seqlock) tells a reader to read again, and a worker that died while writing blames no key.
"""

from __future__ import annotations

import mmap
from typing import NamedTuple

_WORD_BYTES = 8
_LENGTH, _WRITTEN, _PROVEN = 1, 2, 3
_HEAD_BYTES = 4 * _WORD_BYTES
SLOT_BYTES = 1024
TASK_BYTES_MAX = SLOT_BYTES - _HEAD_BYTES
assert TASK_BYTES_MAX > 63 + 1 + 253 + 1 + 253, "a queue, a namespace and a name must fit"


class Doing(NamedTuple):
    """``since_ms``: CLOCK_BOOTTIME at which the step began, 0 when idle. ``task``: "queue:key", "" between turns."""

    since_ms: int
    task: str


class TurnSlot:
    """One worker's slot."""

    def __init__(self, memory: mmap.mmap, offset: int) -> None:
        self._memory, self._start, self._proven = memory, offset + _HEAD_BYTES, False
        # Stored in one piece each; struct.pack_into would write zeroes first, which another process may read.
        self._words = memoryview(memory)[offset : self._start].cast("q")

    def begin(self, now_ms: int, task: str = "") -> None:
        """A step begins that holds keys, or may: a claim, the turn over ``task``, a finish."""
        text, words, start = task.encode()[:TASK_BYTES_MAX], self._words, self._start
        written = words[_WRITTEN] | 1  # it is odd already where the last worker died while writing
        words[_WRITTEN] = written
        self._memory[start : start + len(text)] = text
        words[_LENGTH] = len(text)
        words[0] = now_ms
        words[_WRITTEN] = written + 1
        if text and not self._proven:
            self._prove()

    def end(self) -> None:
        """No key is held."""
        self._words[0] = 0
        if not self._proven:
            self._prove()

    def leave(self) -> None:
        """The worker is about to end and holds no key, perhaps because no claim was ever answered."""
        self._words[0] = 0

    def _prove(self) -> None:
        self._words[_PROVEN], self._proven = 1, True

    def reset(self) -> None:
        """For the next worker. The supervisor's call, when the last one has ended."""
        self._words[0] = self._words[_PROVEN] = 0

    @property
    def proven(self) -> bool:
        """Whether the worker has come as far as a claim that was answered: it can work, however it ends."""
        return self._words[_PROVEN] != 0

    def read(self) -> Doing:
        """What the worker does; idle where it writes whenever it is read (it is alive and quick then)."""
        words, start = self._words, self._start
        for _ in range(3):
            written, since_ms, length = words[_WRITTEN], words[0], words[_LENGTH]
            text = self._memory[start : start + min(length, TASK_BYTES_MAX)]
            if written % 2 == 0 and words[_WRITTEN] == written:
                return Doing(since_ms, text.decode(errors="replace") if since_ms else "")
        return Doing(0, "")

    def stalled(self, now_ms: int, stall_ms: int) -> bool:
        """Whether the step has lasted longer than ``stall_ms``."""
        since_ms = self.read().since_ms
        return since_ms != 0 and now_ms - since_ms > stall_ms


class TurnSlots:
    """Slots for ``count`` workers, in anonymous memory that forked processes share."""

    def __init__(self, count: int) -> None:
        self._memory = mmap.mmap(-1, count * SLOT_BYTES)
        self.count = count

    def __getitem__(self, index: int) -> TurnSlot:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return TurnSlot(self._memory, index * SLOT_BYTES)
