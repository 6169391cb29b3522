"""A bounded buffer from the I/O loop to the main thread. A full one stops whoever fills it, and so its socket."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from oarlock.workers.ingest.lister_watcher import End

T = TypeVar("T")


class StreamBuffer(Generic[T]):
    """Filled on ``loop``, taken from on one other thread.

    ``ring`` tells the taker that something has come. ``capacity`` items may lie here before a ``put`` waits, so what it
    holds is less than ``capacity`` plus one put; the filler goes on when half of that has been taken.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None], capacity: int) -> None:
        self._loop, self._ring, self._capacity = loop, ring, capacity
        self._items: deque[T] = deque()
        self._end: End | None = None
        self._room = asyncio.Event()
        self._waiting = False
        self._cancel: Callable[[], object] = lambda: None

    def __len__(self) -> int:
        return len(self._items)

    def filled_by(self, cancel: Callable[[], object]) -> None:
        """``cancel`` ends the task that fills it."""
        self._cancel = cancel

    # -- on the loop -----------------------------------------------------------------------------------------------

    async def put(self, items: Sequence[T]) -> None:
        """Hand over, in order, once there is room."""
        while len(self._items) >= self._capacity:
            self._room.clear()
            self._waiting = True  # said before looking again: the taker looks for it after taking
            if len(self._items) >= self._capacity:
                await self._room.wait()
        self._items.extend(items)
        self._ring()

    def finish(self, end: End) -> None:
        """Nothing follows."""
        self._end = end
        self._ring()

    # -- on the taker's thread -------------------------------------------------------------------------------------

    def take(self, most: int) -> list[T]:
        """What is there, at most so many."""
        items = self._items
        taken = [items.popleft() for _ in range(min(most, len(items)))]
        if self._waiting and len(items) <= self._capacity // 2:
            self._waiting = False
            self._loop.call_soon_threadsafe(self._room.set)
        return taken

    def end(self) -> End | None:
        """How it ended, once it is empty."""
        end = self._end  # read first: what was put before the end is then in the buffer already
        return end if end is not None and not self._items else None

    def close(self) -> None:
        """Stop the filler."""
        self._cancel()
