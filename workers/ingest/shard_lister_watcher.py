"""A ListerWatcher as one shard sees it: the objects of its namespaces, and bookmarks for all others.

An object of another shard is recognised by the namespace in its JSON and decoded no further. A run of such events
becomes one bookmark at its end, so the shard's watermark follows the API though nothing of its own happens. Bookmarks
without events of the shard come at most four times a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.listing import Page
from oarlock.workers.ingest.lister_watcher import End, ListerWatcher, Stream, WatchStream
from oarlock.workers.ingest.projection import place_of
from oarlock.workers.process.shards import shard_of

PROGRESS_EVERY_MS = 250
"""A bookmark costs a call to Redis, as a batch of our own events does."""
LOOKED_AT_ONCE = 2_000
"""Foreign events skipped in one step: a few ms of work."""


class Ours:
    """Tells which objects one shard sees."""

    def __init__(self, shard: str, shards: int) -> None:
        self._shard, self._shards = shard, shards

    def __call__(self, raw: bytes) -> bool:
        """Whether the shard sees this object."""
        namespace, _ = place_of(raw)  # "" if it cannot be read, which the projector reports
        return not namespace or shard_of(namespace, self._shards) == self._shard


class ShardListerWatcher:
    """The objects of ``inner`` that belong to a shard. ``mono_ms``: the process's clock."""

    def __init__(self, inner: ListerWatcher, ours: Ours, mono_ms: Callable[[], int]) -> None:
        self._inner, self._ours, self._mono_ms = inner, ours, mono_ms

    def watch(self, rv: str) -> WatchStream:
        return _Events(self._inner.watch(rv), self._ours, self._mono_ms)

    def pages(self, limit: int) -> Stream[Page]:
        return _Pages(self._inner.pages(limit), self._ours)

    def heard_ms(self) -> int:
        return self._inner.heard_ms()


class _Events:
    """Watch events of a shard. ``_passed``: the last foreign event that no bookmark covers yet."""

    def __init__(self, inner: WatchStream, ours: Ours, mono_ms: Callable[[], int]) -> None:
        self._inner, self._ours, self._mono_ms = inner, ours, mono_ms
        self._passed: WatchEvent | None = None
        self._told_ms = -PROGRESS_EVERY_MS

    def take(self, most: int) -> Sequence[WatchEvent]:
        """At most ``most`` events; a run of foreign events counts as one."""
        found: list[WatchEvent] = []
        looked = 0
        while len(found) < most - 1 and looked < LOOKED_AT_ONCE:  # one is left for a bookmark
            events = self._inner.take(most - 1 - len(found))
            if not events:
                break
            looked += len(events)
            for event in events:
                if event.type == "BOOKMARK" or self._ours(event.object):
                    found.append(event)
                    self._passed = None  # this later event moves the watermark past the foreign ones
                else:
                    self._passed = event
        now_ms = self._mono_ms()
        if self._passed is not None and (found or looked >= LOOKED_AT_ONCE or self._is_due(now_ms)):
            found.append(WatchEvent("BOOKMARK", self._passed.rv, b""))
            self._passed = None
        if found:
            self._told_ms = now_ms
        return found

    def _is_due(self, now_ms: int) -> bool:
        return now_ms - self._told_ms >= PROGRESS_EVERY_MS or self._inner.end() is not None

    def end(self) -> End | None:
        return None if self._passed is not None else self._inner.end()

    def close(self) -> None:
        self._inner.close()

    def pace(self, awaited: bool) -> None:
        self._inner.pace(awaited)


class _Pages:
    """As many pages, without the objects of other shards."""

    def __init__(self, inner: Stream[Page], ours: Ours) -> None:
        self._inner, self._ours = inner, ours

    def take(self, most: int) -> Sequence[Page]:
        return [
            Page(page.rv, tuple(filter(self._ours, page.items)), page.first, page.last)
            for page in self._inner.take(most)
        ]

    def end(self) -> End | None:
        return self._inner.end()

    def close(self) -> None:
        self._inner.close()
