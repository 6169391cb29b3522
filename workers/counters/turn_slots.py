"""What each worker is doing right now, in memory it shares with its supervisor.

A worker writes its slot before every step that may hold a key. The supervisor reads it to notice a stall, and after a
death to know which key was being worked on. There are no locks: a reader that meets a half-written slot reads it again,
and a worker that died while writing blames no key.
"""

from __future__ import annotations

import mmap
import struct
from typing import NamedTuple

_SINCE, _LENGTH = struct.Struct("<q"), struct.Struct("<Q")
_LENGTH_AT, _PROVEN_AT = _SINCE.size, _SINCE.size + _LENGTH.size
_HEAD_BYTES = _PROVEN_AT + 8
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
        self._memory, self._offset, self._proven = memory, offset, False

    def begin(self, now_ms: int, task: str = "") -> None:
        """A step begins that holds keys, or may: a claim, the turn over ``task``, a finish."""
        text = task.encode()[:TASK_BYTES_MAX]
        start = self._offset + _HEAD_BYTES
        _SINCE.pack_into(self._memory, self._offset, 0)  # while it is being written it names no key
        self._memory[start : start + len(text)] = text
        _LENGTH.pack_into(self._memory, self._offset + _LENGTH_AT, len(text))
        _SINCE.pack_into(self._memory, self._offset, now_ms)
        if text and not self._proven:
            self._prove()

    def end(self) -> None:
        """No key is held."""
        _SINCE.pack_into(self._memory, self._offset, 0)
        if not self._proven:
            self._prove()

    def _prove(self) -> None:
        self._memory[self._offset + _PROVEN_AT], self._proven = 1, True

    def reset(self) -> None:
        """For the next worker. The supervisor's call, when the last one has ended."""
        _SINCE.pack_into(self._memory, self._offset, 0)
        self._memory[self._offset + _PROVEN_AT] = 0

    @property
    def proven(self) -> bool:
        """Whether the worker has come as far as a claim that was answered: it can work, however it ends."""
        return self._memory[self._offset + _PROVEN_AT] != 0

    def read(self) -> Doing:
        """What the worker does; idle where three readings differ (it is alive and quick then)."""
        for _ in range(3):
            (since_ms,) = _SINCE.unpack_from(self._memory, self._offset)
            (length,) = _LENGTH.unpack_from(self._memory, self._offset + _LENGTH_AT)
            start = self._offset + _HEAD_BYTES
            text = self._memory[start : start + min(length, TASK_BYTES_MAX)]
            if _SINCE.unpack_from(self._memory, self._offset)[0] == since_ms:
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
