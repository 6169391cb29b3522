"""The bounded history of one kind: an append-only log that every watch of the kind reads.

A watcher holds a position, not a queue: an event is stored once however many watch, a slow watcher
costs nothing, and what piled up while it wrote goes out in one piece. Positions count events since the
start of the server, so they stay true when old events are dropped.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right

from oarlock.sandbox.apiserver.store.events import Event


class Log:
    """At least the last `events_max` events; at most twice as many, so that dropping is rare and cheap."""

    def __init__(self, events_max: int) -> None:
        self.events_max = events_max
        self.events: list[Event] = []
        self.base = 0  # position of events[0]
        self.floor_rv = 0  # every event after this resourceVersion is still here
        self.cuts = 0  # how often the watches were ended: one begun before the last time must end
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def end(self) -> int:
        """The position after the last event."""
        return self.base + len(self.events)

    def append(self, event: Event) -> None:
        self.events.append(event)
        if len(self.events) >= 2 * self.events_max:
            self._drop(len(self.events) - self.events_max)
        if self._waiters:
            self.wake()

    def position_after(self, rv: int) -> int | None:
        """The position at which a client that has seen all up to `rv` goes on; None if it is no longer kept."""
        if rv < self.floor_rv:
            return None
        return self.base + bisect_right(self.events, rv, key=lambda event: event.rv)

    def since(self, position: int) -> list[Event] | None:
        """The events from `position` on; None if some of them are no longer kept."""
        if position < self.base:
            return None
        return self.events[position - self.base :]

    def cut(self, rv: int) -> None:
        """Forget everything up to `rv`, the store's present resourceVersion, and end the running watches."""
        self._drop(len(self.events))
        self.floor_rv = rv
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
