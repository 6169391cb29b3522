"""Connections for requests: each carries one after the other, and no request is ever repeated.

A general HTTP client costs four times the CPU that a write needs (docs/benchmarks.md). So this speaks only as much
HTTP/1.1 (RFC 9112) as a write or a read needs: one request with a known length; one answer with a Content-Length, in
chunks, or up to the end of the connection. A malformed answer ends the connection, and the request stays unanswered.
"""

import asyncio
import socket
import ssl
import time
from typing import cast
from urllib.parse import urlsplit

from oarlock.cluster.http.flight import KEEPALIVE_S, Flight, TooLateError
from oarlock.cluster.http.messages import AnswerReader, HttpAnswer


class _Connection(asyncio.Protocol):
    """One connection. Bytes that arrive while no request is under way end it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.idle_since_s = 0.0
        self._waiting: asyncio.Future[HttpAnswer] | None = None
        self._reader = AnswerReader()

    @property
    def usable(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def send(self, request: bytes, waiting: asyncio.Future[HttpAnswer]) -> None:
        assert self.transport is not None
        self._waiting = waiting
        self._reader = AnswerReader()
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
            self.drop()  # nothing was asked
            return
        try:
            answer = self._reader.feed(data)
        except ValueError as error:
            self._end(ConnectionError(f"not an HTTP answer: {error}"))
            return
        if answer is None:
            return
        waiting, self._waiting = self._waiting, None
        if not answer.reusable:
            self.drop()
        if not waiting.done():
            waiting.set_result(answer)

    def eof_received(self) -> bool:
        waiting, answer = self._waiting, self._reader.at_end() if self._waiting is not None else None
        if waiting is not None and answer is not None and not waiting.done():
            self._waiting = None
            waiting.set_result(answer)
        # Drop it now: over TLS the transport closes only some rounds of the loop later and looks usable until then.
        self._end(ConnectionResetError("the server closed the connection"))
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self._fail(error or ConnectionResetError("the server closed the connection"))

    def _end(self, error: Exception) -> None:
        self.drop()
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)


class Pool:
    """Connections to one server, straight, without a proxy. Use inside one event loop.

    server: its URL; server_name: the name to verify instead of the host; user_timeout_s: TCP_USER_TIMEOUT of the
    sockets; most: connections that are kept. Raises ValueError for a URL that is not http or https with a host.
    """

    def __init__(self, server: str, server_name: str, user_timeout_s: float, most: int) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not the URL of a server: {server}")
        self._address = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        self._server_name = server_name or parts.hostname
        self._user_timeout_ms, self._most = round(user_timeout_s * 1000), most
        self._context: ssl.SSLContext | None = None
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._closed = False

    async def exchange(self, flight: Flight, request: bytes, context: ssl.SSLContext | None) -> HttpAnswer:
        """Send a request, at most once, and wait for its answer. ``context``: of TLS; None for none.

        Raises TooLateError if its deadline passed before the first byte was handed over, TimeoutError after
        ``flight.timeout_s``, OSError.
        """
        async with asyncio.timeout(flight.timeout_s):
            connection = self._take(context) or await self._connect(context)
            try:
                if flight.too_late():  # connecting may have taken longer than was left
                    raise TooLateError
                if self._closed or not connection.usable:  # lost as soon as it was made
                    raise ConnectionError("the client is closed" if self._closed else "the connection was closed")
                waiting: asyncio.Future[HttpAnswer] = asyncio.get_running_loop().create_future()
                flight.sent = True
                connection.send(request, waiting)
                return await waiting
            except BaseException as error:
                if not isinstance(error, TooLateError):
                    connection.drop()
                raise
            finally:
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

    def _take(self, context: ssl.SSLContext | None) -> _Connection | None:
        """The connection that was used last, so that superfluous ones grow old."""
        if context is not self._context:  # the idle ones belong to an earlier certificate
            for connection in self._idle:
                self._discard(connection)
            self._idle.clear()
            self._context = context
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and time.monotonic() - connection.idle_since_s < KEEPALIVE_S:
                return connection
            self._discard(connection)
        return None

    def _give(self, connection: _Connection, context: ssl.SSLContext | None) -> None:
        if connection.usable and context is self._context and len(self._idle) < self._most:
            connection.idle_since_s = time.monotonic()
            self._idle.append(connection)
        else:
            self._discard(connection)

    def _discard(self, connection: _Connection) -> None:
        connection.drop()
        self._open.discard(connection)

    async def _connect(self, context: ssl.SSLContext | None) -> _Connection:
        host, port = self._address
        loop = asyncio.get_running_loop()
        transport, connection = await loop.create_connection(
            _Connection,
            host,
            port,
            ssl=context,
            server_hostname=self._server_name if context is not None else None,
        )
        made = transport.get_extra_info("socket")
        # Bytes the other side never acknowledges end the connection together with the request's own time (session.py).
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self._user_timeout_ms)
        self._open.add(connection)
        return connection
