"""A ListerWatcher as one shard sees it: its own namespaces' objects, and of all others only that time has passed.

What belongs to another shard is recognised by the namespace in its JSON and never decoded further. A run of such events
becomes one bookmark at its end, so the shard's watermark moves with the API's although nothing of its own happened;
where nothing else is to be said, four times a second at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.listing import Page
from oarlock.workers.ingest.lister_watcher import End, ListerWatcher, Stream
from oarlock.workers.process.shards import shard_of

PROGRESS_EVERY_MS = 250
"""A bookmark that tells of foreign events alone costs a call to Redis, as a batch of our own does."""
LOOKED_AT_ONCE = 2_000
"""Foreign events passed over in one step: some ms of work."""


class _Meta(msgspec.Struct, gc=False):
    namespace: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_OBJECT = msgspec.json.Decoder(_Object)


def namespace_of(raw: bytes) -> str:
    """The namespace of an object's JSON; "" where it has none, or where it cannot be read, which others say."""
    try:
        return _OBJECT.decode(raw).metadata.namespace
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


class Ours:
    """Which objects one shard sees."""

    def __init__(self, shard: str, shards: int) -> None:
        self._shard, self._shards = shard, shards

    def __call__(self, raw: bytes) -> bool:
        """Whether this one."""
        namespace = namespace_of(raw)
        return not namespace or shard_of(namespace, self._shards) == self._shard


class ShardListerWatcher:
    """``inner``, seen by a shard; ``mono_ms``: the process's clock."""

    def __init__(self, inner: ListerWatcher, ours: Ours, mono_ms: Callable[[], int]) -> None:
        self._inner, self._ours, self._mono_ms = inner, ours, mono_ms

    def watch(self, rv: str) -> Stream[WatchEvent]:
        return _Events(self._inner.watch(rv), self._ours, self._mono_ms)

    def pages(self, limit: int) -> Stream[Page]:
        return _Pages(self._inner.pages(limit), self._ours)

    def heard_ms(self) -> int:
        return self._inner.heard_ms()


class _Events:
    """Watch events of a shard. ``_passed``: the last foreign one that was not told of yet."""

    def __init__(self, inner: Stream[WatchEvent], ours: Ours, mono_ms: Callable[[], int]) -> None:
        self._inner, self._ours, self._mono_ms = inner, ours, mono_ms
        self._passed: WatchEvent | None = None
        self._told_ms = -PROGRESS_EVERY_MS

    def take(self, most: int) -> Sequence[WatchEvent]:
        """At most so many; a run of foreign events counts as one."""
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
                    self._passed = None  # what comes after it moves the watermark past it
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


class _Pages:
    """Pages of a shard: as many, with fewer objects."""

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
