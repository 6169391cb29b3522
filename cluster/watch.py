"""One watch: from a resourceVersion until the connection ends.

A watch never reconnects by itself, because the caller knows better where to go on (the fleet's shared watermark may be
ahead of this process). We ask the server to end it within a minute; then it ends quietly, else with an exception below.
Upstream: client-go/tools/cache/reflector.go.
"""

import asyncio
import logging
import random
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from oarlock.cluster.answer import Answer, Status
from oarlock.cluster.http.flight import reason
from oarlock.cluster.http.frames import BadFrameError, Lines, WatchEvent, decode_event
from oarlock.cluster.http.transport import Transport
from oarlock.cluster.outcome import delay_s
from oarlock.cluster.resources import Resource

if TYPE_CHECKING:
    from oarlock.cluster.http.streaming import Stream

IDLE_S = 75.0  # a watch that heard nothing for longer is dead
# The life that the server is asked for: random, so that watches do not all end together, and shorter than IDLE_S, so
# that a living server says something in that time, at least the end. Bookmarks do not prove life: a server sends none
# for a resource of which it has seen no event (seen: 1.20.2; upstream: apiserver/pkg/storage/cacher/cacher.go).
LIFE_S = (40, 60)
HUSH_BYTES = 1 << 18  # about 120 events of pods
OPEN_TRIES = 5  # of which all but the last may be answered 429

log = logging.getLogger("oarlock.cluster.watch")


class WatchError(Exception):
    """A watch ended, and not because the server closed it in order."""


class Expired(WatchError):
    """410: the history from this resourceVersion is no longer kept. Take a newer position, or list."""


class Deaf(WatchError):
    """Nothing was heard for the idle time, not even the end that we asked for. Watch again from the last event."""


class Broken(WatchError):
    """Refused, cut off or unreadable. `answer` is the server's, if the watch was never opened."""

    def __init__(self, text: str, answer: Answer | None = None) -> None:
        super().__init__(text)
        self.answer = answer


async def watch_batches(
    transport: Transport,
    resource: Resource,
    rv: str,
    *,
    idle_s: float = IDLE_S,
    life_s: float | None = None,
    batch_max: int = 200,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[list[WatchEvent], None]:
    """Events after `rv` in all namespaces, in the server's order, with bookmarks, as many at once as have arrived.

    rv: where to start, not empty (an empty one would begin with unordered events of what exists);
    idle_s: silence after which the watch is Deaf, also while it is being opened; life_s: how long the server is
    asked to keep it, None for a random time; batch_max: events a batch, at most.
    A 429 on opening is waited out as its Retry-After says, OPEN_TRIES times.
    Raises Expired, Deaf, Broken (all WatchError). All events before the failure have been handed out by then.
    Wrap it in `contextlib.aclosing` where the loop over it may be left early: that closes the connection.
    """
    if not rv:
        raise ValueError("a watch needs the resourceVersion it starts from")
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": rv,
        "timeoutSeconds": str(round(random.uniform(*LIFE_S) if life_s is None else life_s)),
    }
    path = f"{resource.collection()}?{urlencode(query)}"
    for attempt in range(1, OPEN_TRIES + 1):
        try:
            async with transport.stream(path, head_timeout_s=idle_s) as opened:
                if not isinstance(opened, Answer):
                    async for batch in _read(opened, idle_s, batch_max):
                        yield batch
                    return
        except TimeoutError as error:
            raise Deaf(f"{resource.plural}: not opened within {idle_s:g} s") from error
        if opened.code != 429 or attempt == OPEN_TRIES:
            raise _refused(opened, resource, rv)
        wait_s = delay_s(opened)
        log.info("watch of %s: told to wait %.1f s", resource.plural, wait_s)
        await sleep(wait_s)


async def _read(stream: "Stream", idle_s: float, batch_max: int) -> AsyncGenerator[list[WatchEvent], None]:
    lines, wire = Lines(), _Wire(stream.socket)
    while True:
        try:
            async with asyncio.timeout(idle_s):
                chunk = await stream.some()
        except TimeoutError as error:
            raise Deaf(f"nothing heard for {idle_s:g} s") from error
        except OSError as error:
            raise Broken(f"cut off: {reason(error)}") from error
        if not chunk:
            return
        batch: list[WatchEvent] = []
        failure: WatchError | None = None
        try:
            for line in lines.feed(chunk):
                event = decode_event(line)
                if isinstance(event, Status):
                    failure = _error_event(event)
                    break
                batch.append(event)
        except BadFrameError as error:
            failure = Broken(str(error))
        wire.hush()
        for start in range(0, len(batch), batch_max):
            yield batch[start : start + batch_max]
        wire.listen()
        if failure is not None:
            raise failure


class _Wire:
    """The socket under a watch. While its reader is busy it wakes nobody for less than HUSH_BYTES.

    The server sends each event by itself, and to take one in costs more than to decode it. In the kernel they wait for
    nothing; the end of the connection is told at once all the same.
    """

    def __init__(self, wire: socket.socket | None) -> None:
        self._socket = wire

    def hush(self) -> None:
        self._wake_from(HUSH_BYTES)

    def listen(self) -> None:
        self._wake_from(1)

    def _wake_from(self, count: int) -> None:
        if self._socket is None or self._socket.fileno() < 0:  # it is closed, as the next read says
            return
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
        except OSError as error:  # a sandbox may not know the option: then each event wakes us, as it did before
            log.info("watch events are not gathered in the kernel: %s", error)
            self._socket = None


def _refused(answer: Answer, resource: Resource, rv: str) -> WatchError:
    if answer.code == 410:
        return Expired(f"{resource.plural} from {rv}: {answer.message}")
    return Broken(f"{resource.plural}: {answer.message}", answer)


def _error_event(status: Status) -> WatchError:
    if status.code == 410 or status.reason in {"Expired", "Gone"}:
        return Expired(status.message)
    return Broken(f"the server ended the watch: {status.message or status.reason or status.code}")
