"""An answer of 200 whose body is read as it comes: a watch."""

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

from oarlock.cluster.http.body import BodyReader

READ_BUFFER = 1 << 20  # bytes that wait for a reader before the socket is paused


class Stream(Protocol):
    """The body of such an answer."""

    async def some(self) -> bytes:
        """All that has come; b"" at the end of the body. Raises OSError where it was cut off."""

    @property
    def socket(self) -> socket.socket | None:
        """What it comes over; None once that is closed."""

    def close(self) -> None:
        """End it: the connection, too, unless the body was read to its end."""


class BodyStream:
    """A Stream over a connection of ours, which feeds it. ``on_close`` is told whether the connection may carry another
    request.
    """

    def __init__(self, transport: asyncio.Transport, body: BodyReader, on_close: Callable[[bool], None]) -> None:
        self._transport, self._body, self._on_close = transport, body, on_close
        self._parts: list[bytes] = []
        self._held = 0
        self._failure = ""
        self._waiter: asyncio.Future[None] | None = None
        self._ended = self._paused = self._closed = False

    async def some(self) -> bytes:
        while not self._parts:
            if self._body.whole:
                self._ended = True
                return b""
            if self._failure:
                raise ConnectionError(self._failure)
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        found = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return found

    @property
    def socket(self) -> socket.socket | None:
        found: socket.socket | None = self._transport.get_extra_info("socket")
        return found

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.end("the stream is closed")
            self._on_close(self._ended and self._body.reusable)

    # -- called by the connection ----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """More has come. Raises ValueError."""
        part = self._body.feed(data)
        if part:
            self._parts.append(part)
            self._held += len(part)
            if self._held > READ_BUFFER and not self._paused:
                self._paused = True
                self._transport.pause_reading()
        if part or self._body.whole:
            self._wake()

    def at_end(self) -> None:
        """The server has ended the connection in order; a body without a length is whole by that."""
        self._body.at_end()

    def end(self, why: str) -> None:
        """Nothing more comes."""
        self._failure = self._failure or why
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
