"""A staged list of one resource: pages go into a generation that nobody reads, which then becomes the cache at once."""

from __future__ import annotations

import secrets
from base64 import b32encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from redis.exceptions import RedisError

from oarlock.broker.protocol import Broker
from oarlock.broker.values.errors import BrokerFull, BrokerUnreachable, EpochOver
from oarlock.broker.values.events import Event
from oarlock.broker.versions import newer
from oarlock.cluster.listing import Page
from oarlock.workers.ingest.lister_watcher import Ending, Stream
from oarlock.workers.ingest.projection import Projector

STAGING_LOCK_MS = 5_000
"""A dead stager blocks the others for this long. A living one renews the lock while it waits for a page."""
KEEP_LOCK_MS = STAGING_LOCK_MS // 4
OWN_LOCK_GONE_MS = 5
"""After this our own lock of 1 ms has expired, so a list that begins afresh may stage another generation."""
OBJECTS_AT_ONCE = 200
BEFORE_ALL = "1"
"""A resourceVersion before that of any object: where a watch begins of a kind that was never there."""
BYTES_AT_ONCE = 1 << 20


def new_generation() -> str:
    """A name that no other list of the epoch has: 40 random bits. It is short, as it is in the key of every index."""
    return b32encode(secrets.token_bytes(5)).decode().lower()


class ApiWentBack(Exception):
    """The API shows an earlier resourceVersion than before: it was restored from a backup."""

    def __init__(self, resource: str, listed: str, known: str) -> None:
        super().__init__(f"a consistent list of {resource} is of {listed}, but {known} was seen before")


@dataclass(frozen=True, slots=True)
class Listed:
    """The cache now holds this list or a newer state. ``rv``: where to watch from."""

    rv: str


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Nothing was committed. ``busy``: because another ingestor stages this resource."""

    why: str
    busy: bool = False


class Relist:
    """One attempt. While a page is staged, the next one is prepared. Repeating a step that got no answer is harmless.

    ``not_before``: a resourceVersion that existed before the list was asked for, or "". ``nonce`` gives generations.
    """

    def __init__(
        self,
        projector: Projector,
        broker: Broker,
        pages: Stream[Page],
        nonce: Callable[[], str],
        not_before: str,
    ) -> None:
        self._projector, self._broker, self._pages = projector, broker, pages
        self._resource = projector.resource.resource
        self._nonce, self._not_before = nonce, not_before
        self._generation = nonce()
        self._chunks: list[list[Event]] = []
        """Of the page that was read last, if it is not being staged yet."""
        self._going: list[list[Event]] = []
        self._gone: Callable[[], bool] | None = None
        """Of the page that is being staged, and what tells whether it is."""
        self._staged = False
        self._last: Page | None = None
        self._kept_ms: int | None = None
        self._abandoned = ""
        self._free_at_ms = 0
        self.objects = 0
        self.absent = False
        """The server has no such kind: what is committed is an empty list."""

    def step(self, now_ms: int) -> tuple[Listed | Unlisted | None, bool]:
        """(the outcome, once there is one; whether something was done). Raises ApiWentBack."""
        if self._abandoned:
            self._await_stage()
            self._broker.stage(self._resource, self._abandoned, [], lock_ms=1)
            self._abandoned, self._free_at_ms = "", now_ms + OWN_LOCK_GONE_MS
        if now_ms < self._free_at_ms:
            return None, False
        if self._gone is not None:
            page = next(iter(self._pages.take(1)), None) if not self._chunks and self._last is None else None
            if page is None:
                return self._after_stage(now_ms), True
            self._open(page)
            return None, True
        if self._chunks:
            self._begin_stage()
            return None, True
        if self._last is not None and self._staged:
            return self._commit(self._last), True
        if self._last is not None:
            return self._stage_nothing(now_ms), True  # an empty list is staged, too: committing needs the lock
        page = next(iter(self._pages.take(1)), None)
        if page is not None:
            self._open(page)
            return None, True
        end = self._pages.end()
        if end is not None and end.ending is Ending.ABSENT and self._projector.resource.whole:
            # Its definition is not there (any more), and so none of its objects is. The list is not of a later moment
            # than the cache, so that nothing is missed where the kind comes again.
            self.absent = True
            self._open(Page(self._not_before or BEFORE_ALL, (), first=True, last=True))
            return None, True
        if end is not None:
            return Unlisted(end.text if end.ending is not Ending.CLOSED else "the list broke off"), True
        if self._kept_ms is not None and now_ms - self._kept_ms >= KEEP_LOCK_MS:
            return self._stage_nothing(now_ms), True
        return None, False

    def close(self) -> None:
        """Stop reading pages."""
        self._pages.close()
        self._await_stage()

    def _open(self, page: Page) -> None:
        if newer(self._not_before, page.rv):
            raise ApiWentBack(self._resource, page.rv, self._not_before)
        if page.first and (self._staged or self.objects):  # the snapshot of the earlier pages is gone
            self._abandoned = self._generation if self._staged or self._gone is not None else ""
            self._generation, self._staged, self.objects = self._nonce(), False, 0
            self._chunks.clear()
        events = self._projector.listed(page.items)
        self.objects += len(events)
        chunk: list[Event] = []
        size = 0
        for event in events:
            chunk.append(event)
            size += event.size
            if len(chunk) >= OBJECTS_AT_ONCE or size >= BYTES_AT_ONCE:
                self._chunks.append(chunk)
                chunk, size = [], 0
        if chunk:
            self._chunks.append(chunk)
        if page.last:
            self._last = page

    def _begin_stage(self) -> None:
        """The whole page, in calls that keep nobody else waiting for long."""
        parts = self._chunks
        self._gone = self._broker.send_stage(self._resource, self._generation, parts, lock_ms=STAGING_LOCK_MS)
        self._going, self._chunks = parts, []

    def _after_stage(self, now_ms: int) -> Unlisted | None:
        """Wait until the page is staged. If it has no answer, it is staged again."""
        assert self._gone is not None
        gone, going, self._gone, self._going = self._gone, self._going, None, []
        try:
            staged = gone()
        except BaseException:
            self._chunks = going + self._chunks
            raise
        if not staged:
            # The other may have gone between two parts, and then the lock is ours. Whatever comes of this, the list
            # has a hole: it must not go on.
            with suppress(BrokerUnreachable, BrokerFull):
                self._broker.stage(self._resource, self._generation, [], lock_ms=1)
        return self._kept(staged, now_ms)

    def _stage_nothing(self, now_ms: int) -> Unlisted | None:
        """Keep the lock."""
        staged = self._broker.stage(self._resource, self._generation, [], lock_ms=STAGING_LOCK_MS)
        return self._kept(staged, now_ms)

    def _kept(self, staged: bool, now_ms: int) -> Unlisted | None:
        if not staged:
            return Unlisted("another ingestor stages it", busy=True)
        self._staged, self._kept_ms = True, now_ms
        return None

    def _await_stage(self) -> None:
        """Of a generation that is given up: nothing of it may come later, and it does not matter what came of it."""
        gone, self._gone, self._going = self._gone, None, []
        if gone is not None:
            with suppress(BrokerUnreachable, BrokerFull, EpochOver, RedisError):
                gone()

    def _commit(self, last: Page) -> Listed | Unlisted:
        result = self._broker.commit_list(self._resource, self._generation, last.rv)
        match result.verdict:
            case "OK" | "OLD":
                return Listed(result.watermark)
            case _:
                return Unlisted("the staging lock went to another ingestor", busy=True)
