"""Proves that the cache holds what the API has by now, without writing it anew.

After a drain the cache of each resource must hold every write that has landed. Where it was listed during the drain, a
second list is only compared with it: an object of the same resourceVersion is the same object. Where events go on, the
watermark passes the list's version at once, and the rest of the list need not be read.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from oarlock.broker.protocol import Broker
from oarlock.broker.values.events import Compared
from oarlock.broker.versions import newer
from oarlock.cluster.listing import Page
from oarlock.controllers.entries import Watched
from oarlock.workers.ingest.lister_watcher import Stream
from oarlock.workers.ingest.relist import ApiWentBack

ARRIVE_MS, LOOK_MS = 1_000, 50
"""How long events that the list shows may be on their way, and how often the watermark is looked at meanwhile."""
ATTEMPTS = 3


class Verdict(StrEnum):
    """What came of it."""

    HOLDS = "holds"
    UNPROVEN = "unproven"  # list anew


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Meta


_OBJECT = msgspec.json.Decoder(_Object)


class Verification:
    """Of one resource, from the time it is made on. Driven by steps, as a list is. A step that raised is repeated;
    where it may have moved the watermark, nothing is proved any more.

    ``pages``: begins a consistent list.
    """

    def __init__(self, resource: Watched[Any], broker: Broker, pages: Callable[[], Stream[Page]]) -> None:
        self._resource, self._broker, self._pages = resource, broker, pages
        self._stream: Stream[Page] | None = None
        self._page: Page | None = None
        self._rv, self._objects = "", 0
        self._first: Compared | None = None
        self._attempts, self._until_ms, self._due_ms = 0, 0, 0

    def close(self) -> None:
        """Stop reading."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def step(self, now_ms: int) -> tuple[Verdict | None, int]:
        """(the verdict, once there is one; ms until the next step is due).

        Raises ApiWentBack, and what the broker raises.
        """
        if now_ms < self._due_ms:
            return None, self._due_ms - now_ms
        if self._until_ms:
            return self._await_events(now_ms)
        if self._stream is None:
            return self._begin()
        if self._page is None:
            self._page = next(iter(self._stream.take(1)), None)
        if self._page is not None:
            return self._compare(self._page, now_ms)
        if self._stream.end() is not None:  # broken, or refused: a list tells why
            return Verdict.UNPROVEN, 0
        return None, ARRIVE_MS

    def _begin(self) -> tuple[None, int]:
        self._first = self._broker.compare(self._resource.resource, "", ())
        self._stream, self._page, self._rv, self._objects = self._pages(), None, "", 0
        self._attempts += 1
        return None, 0

    def _compare(self, page: Page, now_ms: int) -> tuple[Verdict | None, int]:
        """A page. The cache must not change from the first to the last, else it was never seen as a whole."""
        first = self._first
        assert first is not None
        if page.first:
            if newer(first.watermark, page.rv):
                raise ApiWentBack(self._resource.resource, page.rv, first.watermark)
            self._rv, self._objects = page.rv, 0
        versions = [self._version_of(raw) for raw in page.items]
        found = self._broker.compare(self._resource.resource, first.generation, versions)
        self._page = None
        self._objects += len(versions)
        if not newer(self._rv, found.watermark):
            return Verdict.HOLDS, 0
        still = (found.generation, found.watermark) == (first.generation, first.watermark)
        if still and found.same == len(versions):
            if not page.last:
                return None, 0
            complete = found.objects == self._objects
            if complete and self._broker.pass_to(self._resource.resource, first.watermark, self._rv):
                return Verdict.HOLDS, 0
        self.close()
        self._until_ms = now_ms + ARRIVE_MS
        return None, 0

    def _await_events(self, now_ms: int) -> tuple[Verdict | None, int]:
        """The list shows what the cache does not have, or the cache has changed: its watch will tell of the rest."""
        mark = self._broker.watermark(self._resource.resource)
        if mark is not None and not newer(self._rv, mark):
            return Verdict.HOLDS, 0
        if now_ms < self._until_ms:
            self._due_ms = now_ms + LOOK_MS
            return None, LOOK_MS
        self._until_ms = 0
        return (None, 0) if self._attempts < ATTEMPTS else (Verdict.UNPROVEN, 0)

    def _version_of(self, raw: bytes) -> tuple[str, str]:
        """Key and resourceVersion; of what cannot be read a key that the cache does not have."""
        try:
            meta = _OBJECT.decode(raw).metadata
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "", ""
        return f"{meta.namespace}/{meta.name}" if self._resource.namespaced else meta.name, meta.resource_version
