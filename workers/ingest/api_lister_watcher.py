"""Lists and watches of the Kubernetes API: each is a task on the I/O loop that fills a bounded buffer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.listing import PAGE_TIMEOUT_S, ListError, Page
from oarlock.cluster.reader import Reader
from oarlock.cluster.watch import IDLE_S, Broken, Deaf, Expired
from oarlock.controllers.entries import Watched
from oarlock.workers.ingest.applier import BATCH_EVENTS
from oarlock.workers.ingest.lister_watcher import End, Ending
from oarlock.workers.ingest.stream_buffer import StreamBuffer
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.kinds import cluster_resource
from oarlock.workers.process.log_line import line

EVENTS_MAX = 1_000
"""Watch events that may wait for the main thread: about 2 MB of pods."""
PAGES_MAX = 2
PROBE_TIMEOUT_S = 10.0
"""For a page of one object. A probe over a connection that was lost without a word is not to wait as long as a page of
a large cluster may take: nothing is watched meanwhile.
"""
NOT_FOUND = 404
BREATH_S, BREATH_MAX_S = 0.004, 0.012
"""Between handing over events and the next read, so that events gather: a call of the broker costs more than ten events
do. The first event after a pause is handed over at once. While reads bring MANY events, breaths grow."""
FIRST_BREATH_S, PAUSE_MS = 0.001, 20
"""The breath after a pause of so long. What ends a pause is often what a turn has made and changes at once, such as a
new ReplicaSet and its size."""
MANY, FULL = 4, BATCH_EVENTS
"""After a FULL read, which is enough for a call of the broker, there is no breath: more is there already."""
UNAWAITED_S = 0.028
"""The longest breath while few wait for events, if anybody: those before have queued no key, as their owners are queued
or in work already; or nobody takes them, as another ingestor is ahead and this one rests."""

log = logging.getLogger("oarlock.ingest")
T = TypeVar("T")


class ApiListerWatcher:
    """One resource. ``wake`` is called, on the I/O thread, whenever something has come."""

    def __init__(
        self,
        client: Reader,
        resource: Watched[Any],
        io: IoLoop,
        wake: Callable[[], None],
        clock: Clock,
        *,
        idle_s: float = IDLE_S,
        events_max: int = EVENTS_MAX,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client, self._resource, self._io, self._wake = client, cluster_resource(resource), io, wake
        self._clock, self._idle_s, self._events_max = clock, idle_s, events_max
        self._heard_ms, self._deaf, self._sleep = 0, False, sleep

    def heard_ms(self) -> int:
        return self._heard_ms

    def watch(self, rv: str) -> StreamBuffer[WatchEvent]:
        buffer: StreamBuffer[WatchEvent] = StreamBuffer(self._io.loop, self._wake, self._events_max)
        return self._fill(buffer, self._watch(rv, buffer))

    def pages(self, limit: int) -> StreamBuffer[Page]:
        buffer: StreamBuffer[Page] = StreamBuffer(self._io.loop, self._wake, PAGES_MAX)
        return self._fill(buffer, self._pages(limit, buffer))

    def _fill(self, buffer: StreamBuffer[T], filling: Awaitable[None]) -> StreamBuffer[T]:
        async def run() -> None:
            try:
                await filling
            except Expired as error:
                self._heard_ms = self._clock.mono_ms()
                end = End(Ending.EXPIRED, str(error))
            except Deaf as error:
                self._deaf = True
                end = End(Ending.DEAF, str(error))
            except ListError as error:
                end = End(Ending.ABSENT if error.answer.code == NOT_FOUND else Ending.BROKEN, str(error))
            except Broken as error:
                end = End(Ending.BROKEN, str(error))
            except asyncio.CancelledError:
                raise
            except Exception as error:  # a bug must not leave the reflector waiting for ever
                log.exception(line("stream failed", resource=self._resource.plural))
                end = End(Ending.BROKEN, f"{type(error).__name__}: {error}")
            else:
                end = End(Ending.CLOSED)
            buffer.finish(end)

        buffer.filled_by(self._io.submit(run()).cancel)
        return buffer

    async def _watch(self, rv: str, buffer: StreamBuffer[WatchEvent]) -> None:
        breath_s, listening_ms = BREATH_S, self._clock.mono_ms()
        async with aclosing(self._client.watch_batches(self._resource, rv, idle_s=self._idle_s)) as batches:
            async for batch in batches:
                self._heard_ms, self._deaf = self._clock.mono_ms(), False
                paused = self._heard_ms - listening_ms >= PAUSE_MS
                await buffer.put(batch)
                if len(batch) < FULL:
                    breath_s = await self._breathe(breath_s, len(batch), paused, buffer)
                listening_ms = self._clock.mono_ms()
        self._heard_ms, self._deaf = self._clock.mono_ms(), False  # the server ended it in order

    async def _breathe(self, breath_s: float, events: int, paused: bool, buffer: StreamBuffer[WatchEvent]) -> float:
        """After a read of so many events, which came after a pause or did not. Returns how long the next breath is."""
        if paused and events < MANY:
            await self._sleep(FIRST_BREATH_S)
            return BREATH_S
        held = len(buffer)
        await self._sleep(breath_s)
        if held >= MANY and len(buffer) >= held:
            await self._sleep(UNAWAITED_S - breath_s)
        return _next_breath_s(breath_s, events, buffer.awaited)

    async def _pages(self, limit: int, buffer: StreamBuffer[Page]) -> None:
        timeout_s = PROBE_TIMEOUT_S if limit == 1 else PAGE_TIMEOUT_S
        async with aclosing(self._client.list_pages(self._resource, limit=limit, timeout_s=timeout_s)) as pages:
            async for page in pages:
                if not self._deaf:  # else a list shows only that the server lives: its watches are still silent
                    self._heard_ms = self._clock.mono_ms()
                await buffer.put([page])


def _next_breath_s(breath_s: float, events: int, awaited: bool) -> float:
    if events >= MANY:
        return min(2 * breath_s, BREATH_MAX_S if awaited else UNAWAITED_S)
    return BREATH_S if awaited else max(breath_s / 2, BREATH_S)
