"""One heap of moments for everything that waits, instead of a task or a timer for each."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

T = TypeVar("T")


class Timers(Generic[T]):
    """Things due at moments in milliseconds; equal moments in order of entry. Entries are never removed:
    the caller that pops one checks whether it still applies.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._entered = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, due_ms: float, thing: T) -> None:
        self._entered += 1
        heapq.heappush(self._heap, (due_ms, self._entered, thing))

    def next_ms(self) -> float | None:
        """When the first is due."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: float, count_max: int) -> list[T]:
        """Take out what is due, at most `count_max`, earliest first."""
        due: list[T] = []
        while self._heap and self._heap[0][0] <= now_ms and len(due) < count_max:
            due.append(heapq.heappop(self._heap)[2])
        return due
