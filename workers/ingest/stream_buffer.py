"""A bounded buffer from the I/O loop to the main thread. A full buffer stops its filler, and with it the socket."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from oarlock.workers.ingest.lister_watcher import End

T = TypeVar("T")


class StreamBuffer(Generic[T]):
    """A task on ``loop`` fills it; one other thread takes from it.

    ``wake`` tells the taker that something has come. ``put`` waits while ``capacity`` items lie here, so the buffer
    holds less than ``capacity`` plus one put. The filler goes on when half of the items have been taken.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None], capacity: int) -> None:
        self._loop, self._wake, self._capacity = loop, wake, capacity
        self._items: deque[T] = deque()
        self._end: End | None = None
        self._room = asyncio.Event()
        self._waiting = False
        self.awaited = True
        """Whether somebody waits for what comes next, as the taker said."""
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
            self._waiting = True  # set before the second look: the taker reads it after taking
            if len(self._items) >= self._capacity:
                await self._room.wait()
        self._items.extend(items)
        self._wake()

    def finish(self, end: End) -> None:
        """Nothing follows."""
        self._end = end
        self._wake()

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

    def pace(self, awaited: bool) -> None:
        """Say whether somebody waits for what comes next; the filler may look at it."""
        self.awaited = awaited

    def close(self) -> None:
        """Stop the filler."""
        self._cancel()
