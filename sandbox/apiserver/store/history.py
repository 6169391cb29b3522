"""The bounded history of one kind: an append-only log that every watch of the kind reads.

A watcher holds a position, not a queue: an event is stored once however many watch, a slow watcher
costs nothing, and what piled up while it wrote goes out in one piece. Positions count events since the
start of the server, so they stay true when old events are dropped.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from typing import Final

from oarlock.sandbox.apiserver.store.events import Event

FRESH_S: Final = 75.0
EVENTS_MAX: Final = 102_400
"""What is younger is kept, but not more than so many (upstream: cacher/watch_cache.go, eventFreshDuration and
defaultUpperBoundCapacity)."""
LEAST_EVENTS: Final = 1_000
"""So many are kept, however old they are (upstream: defaultLowerBoundCapacity, 100). Each takes up to 15 KB."""


class Log:
    """The events of the last FRESH_S seconds, and at least the last LEAST_EVENTS; at most `events_max`.

    Dropping is rare and cheap, so there may be LEAST_EVENTS more.
    """

    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self.events_max = events_max
        self._least = min(events_max, LEAST_EVENTS)
        self._look_at = 2 * self._least  # so many events, and some may be too old
        self.events: list[Event] = []
        self.base = 0  # position of events[0]
        self.floor_rv = 0  # every event after this resourceVersion is still here
        self.cut_rv = 0  # what was before this is known to nobody
        self.cuts = 0  # how often the watches were ended: one begun before the last time must end
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def end(self) -> int:
        """The position after the last event."""
        return self.base + len(self.events)

    def append(self, event: Event) -> None:
        self.events.append(event)
        if len(self.events) >= self._look_at:
            self.trim(event.at_s)
        if self._waiters:
            self.wake()

    def trim(self, now_s: float) -> None:
        """Forget what is too old, or too much."""
        fresh = len(self.events) - bisect_left(self.events, now_s - FRESH_S, key=lambda event: event.at_s)
        kept = min(max(fresh, self._least), self.events_max)
        self._drop(max(0, len(self.events) - kept))
        self._look_at = len(self.events) + self._least

    def position_after(self, rv: int) -> int | None:
        """The position at which a client that has seen all up to `rv` goes on; None if it is no longer kept."""
        if rv < self.floor_rv:
            return None
        return self.base + bisect_right(self.events, rv, key=lambda event: event.rv)

    def since(self, position: int, count_max: int = 1_000) -> list[Event] | None:
        """The first events from `position` on; None if some of them are no longer kept."""
        if position < self.base:
            return None
        return self.events[position - self.base : position - self.base + count_max]

    def cut(self, rv: int) -> None:
        """Forget everything up to `rv`, the store's present resourceVersion, and end the running watches."""
        self._drop(len(self.events))
        self.floor_rv = self.cut_rv = rv
        self.cuts += 1
        self.wake()

    def end_watches(self) -> None:
        """End the running watches; what they have not seen stays for the next ones."""
        self.cuts += 1
        self.wake()

    def wake(self) -> None:
        """Let every waiter look again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def changed(self) -> asyncio.Future[None]:
        """A future of the caller's own that is done at the next event or `wake`."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    def _drop(self, count: int) -> None:
        if count:
            self.floor_rv = self.events[count - 1].rv
            del self.events[:count]
            self.base += count
