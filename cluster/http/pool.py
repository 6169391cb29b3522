"""Connections for requests: each carries one after the other, and no request is ever repeated.

A general HTTP client costs four times the CPU that a write needs (docs/design/tried.md). So this speaks only as much
HTTP/1.1 (RFC 9112) as a write or a read needs: one request with a known length; one answer with a Content-Length, in
chunks, or up to the end of the connection. A malformed answer ends the connection, and the request stays unanswered.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import cast

from oarlock.cluster.http.body import BodyReader
from oarlock.cluster.http.breath import Breath
from oarlock.cluster.http.connector import Connector
from oarlock.cluster.http.flight import KEEPALIVE_S, Flight, LostError, TooLateError, reason
from oarlock.cluster.http.messages import AnswerReader, HttpAnswer
from oarlock.cluster.http.streaming import BodyStream


class _Connection(asyncio.Protocol):
    """One connection. Bytes that arrive while no request is under way end it. ``on_lost`` hears of its end, and
    ``on_free`` is called when a stream over it is closed.
    """

    def __init__(self, on_lost: Callable[["_Connection"], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.idle_since_s = 0.0
        self._on_lost = on_lost
        self.on_free: Callable[[], None] = _nothing
        self._waiting: asyncio.Future[HttpAnswer | BodyStream] | None = None
        self._reader: AnswerReader | None = None  # there from the first byte of an answer to its last one
        self._streams = False  # whether an answer of 200 is to be read as it comes
        self._stream: BodyStream | None = None

    @property
    def usable(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def send(self, request: bytes, waiting: asyncio.Future[HttpAnswer | BodyStream], streams: bool = False) -> None:
        assert self.transport is not None
        self._waiting, self._streams = waiting, streams
        self.transport.write(request)

    def drop(self) -> None:
        """Close at once: a late answer must not be taken for the answer to the next request."""
        if self.transport is not None:
            self.transport.abort()
            self.transport = None

    # -- called by the loop ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            self._feed_stream(data)
            return
        if self._reader is None:
            self._reader = AnswerReader()
        try:
            if self._streams and self._reader.body is None:
                data = self._reader.head(data)
                if self._reader.body is not None and self._reader.status == 200:
                    self._begin_stream(self._waiting, self._reader.body, data)
                    return
            answer = self._reader.feed(data)
        except ValueError as error:
            self._end(ConnectionError(f"not an HTTP answer: {error}"))
            return
        if answer is None:
            return
        waiting, self._waiting, self._reader = self._waiting, None, None
        if not answer.reusable:
            self.drop()
        if not waiting.done():
            waiting.set_result(answer)

    def eof_received(self) -> bool:
        waiting, answer = self._waiting, self._reader.at_end() if self._reader is not None else None
        if waiting is not None and answer is not None and not waiting.done():
            self._waiting = None
            waiting.set_result(answer)
        if self._stream is not None:
            self._stream.at_end()
        # Drop it now: over TLS the transport closes only some rounds of the loop later and looks usable until then.
        self._end(self._loss("the server closed the connection"))
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        loss = self._loss(reason(error) if isinstance(error, OSError) else "the server closed the connection")
        loss.__cause__ = error
        self._fail(loss)
        self._on_lost(self)

    def _begin_stream(self, waiting: asyncio.Future[HttpAnswer | BodyStream], body: BodyReader, data: bytes) -> None:
        assert self.transport is not None
        self._waiting = self._reader = None
        self._stream = BodyStream(self.transport, body, self._stream_closed)
        self._feed_stream(data)
        if not waiting.done():
            waiting.set_result(self._stream)

    def _feed_stream(self, data: bytes) -> None:
        if self._stream is None:
            self.drop()  # nothing was asked
            return
        try:
            self._stream.feed(data)
        except ValueError as error:
            self._end(ConnectionError(f"not an HTTP answer: {error}"))

    def _stream_closed(self, reusable: bool) -> None:
        self._stream, on_free, self.on_free = None, self.on_free, _nothing
        if not reusable:
            self.drop()
        on_free()

    def _loss(self, why: str) -> ConnectionError:
        return LostError(why) if self._reader is None else ConnectionError(f"cut off: {why}")

    def _end(self, error: Exception) -> None:
        self.drop()
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting, self._reader = self._waiting, None, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
        if self._stream is not None:
            self._stream.end(str(error))


class Pool:
    """Connections to one server, straight, without a proxy. Use inside one event loop.

    server, server_name, connect_s: as of a Connector; most: connections that are kept. Raises ValueError for a URL
    that is not http or https with a host.
    """

    def __init__(self, server: str, server_name: str, connect_s: float, most: int) -> None:
        self._connector, self._most = Connector(server, server_name, connect_s), most
        self._breath = Breath()
        self._context: ssl.SSLContext | None = None
        self._idle: list[_Connection] = []  # that which was used last stands last
        self._open: set[_Connection] = set()
        self._closed = False

    async def exchange(
        self, flight: Flight, request: bytes, context: ssl.SSLContext | None, *, streams: bool = False
    ) -> HttpAnswer | BodyStream:
        """Send a request, at most once, and wait for its answer. ``context``: of TLS; None for none. ``streams``: an
        answer of 200 is read as it comes and is the caller's to close; ``flight.timeout_s`` bounds the wait for its
        head.

        Raises TooLateError if its deadline passed before the first byte was handed over, TimeoutError after
        ``flight.timeout_s``, LostError, OSError.
        """
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        ends_s = begun_s + flight.timeout_s
        kept = None if flight.anew else self._take(context)
        connection = kept or await self._connect_by(ends_s, context)
        timer: asyncio.TimerHandle | None = None
        given: HttpAnswer | BodyStream | None = None
        try:
            if flight.too_late():  # connecting may have taken longer than was left
                raise TooLateError
            if self._closed or not connection.usable:  # lost as soon as it was made
                raise ConnectionError("the client is closed" if self._closed else "the connection was closed")
            waiting: asyncio.Future[HttpAnswer | BodyStream] = loop.create_future()
            timer = loop.call_at(ends_s, _expire, waiting)
            flight.sent = True
            connection.send(request, waiting, streams)
            given = await waiting
            if not streams:
                self._breath.answered(self._under_way, loop.time() - begun_s, loop)
            return given
        except LostError:
            if kept is not None:  # a failover loses them all at once: no other request is to find out by itself
                self._discard_idle()
            raise
        except BaseException as error:
            if not isinstance(error, TooLateError):
                connection.drop()
            raise
        finally:
            if timer is not None:
                timer.cancel()
            if isinstance(given, BodyStream):
                connection.on_free = lambda: self._give(connection, context)
            else:
                self._give(connection, context)

    async def greet(self, context: ssl.SSLContext) -> None:
        """Open a connection, if there is none. Raises OSError."""
        connection = self._take(context) or await self._connect(context)
        self._discard(connection) if self._closed else self._give(connection, context)

    def close(self) -> None:
        """End all connections, for good; requests under way end without an answer."""
        self._closed = True
        for connection in list(self._open):
            connection.drop()
        self._open.clear()
        self._idle.clear()

    def _under_way(self) -> int:
        return len(self._open) - len(self._idle)

    def _take(self, context: ssl.SSLContext | None) -> _Connection | None:
        """The connection that was used last, so that superfluous ones grow old."""
        if context is not self._context:  # the idle ones belong to an earlier certificate
            self._discard_idle()
            self._context = context
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and time.monotonic() - connection.idle_since_s < KEEPALIVE_S:
                return connection
            self._discard(connection)
        return None

    def _give(self, connection: _Connection, context: ssl.SSLContext | None) -> None:
        now_s = time.monotonic()
        while self._idle and now_s - self._idle[0].idle_since_s >= KEEPALIVE_S:
            self._discard(self._idle.pop(0))
        if connection.usable and context is self._context and len(self._idle) < self._most:
            connection.idle_since_s = now_s
            self._idle.append(connection)
        else:
            self._discard(connection)

    def _discard(self, connection: _Connection) -> None:
        connection.drop()
        self._open.discard(connection)

    def _discard_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            self._discard(connection)

    async def _connect_by(self, ends_s: float, context: ssl.SSLContext | None) -> _Connection:
        async with asyncio.timeout_at(ends_s):
            return await self._connect(context)

    async def _connect(self, context: ssl.SSLContext | None) -> _Connection:
        connection = await self._connector.connect(lambda: _Connection(self._lost), context)
        self._open.add(connection)
        return connection

    def _lost(self, connection: _Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)


def _nothing() -> None:
    """Of no stream."""


def _expire(waiting: asyncio.Future[HttpAnswer | BodyStream]) -> None:
    if not waiting.done():
        waiting.set_exception(TimeoutError())
