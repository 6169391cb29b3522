"""A small HTTP server for scrapers and probes: GET and HEAD, one answer a connection, everything bounded.

Anybody may connect, so there are limits: of connections, of a request's bytes and seconds, and of the seconds in which
its answer has to be read. A client that is too slow is dropped and delays no other.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from oarlock.workers.process.log_line import line

HEAD_BYTES_MAX = 8_192
CONNECTIONS_MAX = 32
READ_S, WRITE_S, LINGER_S = 5.0, 10.0, 1.0
log = logging.getLogger("oarlock.metrics")

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """``headers``: names in lower case; of those given twice, the last."""

    path: str
    query: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """``status``: an HTTP code."""

    status: int
    body: bytes
    content_type: str = TEXT


Handler = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Serves ``handler`` on a listening socket, until its task is cancelled. What the handler raises is a 500."""

    def __init__(
        self,
        listening: socket.socket,
        handler: Handler,
        *,
        read_s: float = READ_S,
        write_s: float = WRITE_S,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self._listening, self._handler = listening, handler
        self._read_s, self._write_s, self._connections_max = read_s, write_s, connections_max
        self._waiting: dict[asyncio.Task[None], None] = {}
        """Connections that wait for their other side, the longest first."""

    async def serve(self) -> None:
        """For ever."""
        server = await asyncio.start_server(self._connection, sock=self._listening, limit=HEAD_BYTES_MAX)
        async with server:
            await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._waiting[task] = None
        if len(self._waiting) > self._connections_max:
            next(iter(self._waiting)).cancel()  # the longest silent one makes room: a probe must always get through
        try:
            await self._exchange(task, reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, was too slow, or had to make room
        finally:
            self._waiting.pop(task, None)
            writer.transport.abort()  # what is not sent by now is not waited for

    async def _exchange(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head_only = False
        try:
            async with asyncio.timeout(self._read_s):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            response = _plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too large")
        else:
            self._waiting.pop(task, None)
            response, head_only = await self._answer(head), head.startswith(b"HEAD ")
            self._waiting[task] = None
        async with asyncio.timeout(self._write_s):
            writer.write(_encoded(response, head_only))
            await writer.drain()
        async with asyncio.timeout(LINGER_S):
            if writer.can_write_eof():
                writer.write_eof()
            while await reader.read(4_096):  # to close first would tear what is still under way
                pass

    async def _answer(self, head: bytes) -> Response:
        try:
            first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
            method, target, version = first.split(" ")
            headers = {name.strip().lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
        except ValueError:
            return _plain(HTTPStatus.BAD_REQUEST, "bad request")
        if not version.startswith("HTTP/1."):
            return _plain(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.1, please")
        if method not in ("GET", "HEAD"):
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED, "GET, please")
        path, _, query = target.partition("?")
        try:
            return await self._handler(Request(path, query, headers))
        except Exception as error:
            log.exception(line("not_served", path=path))
            return _plain(HTTPStatus.INTERNAL_SERVER_ERROR, type(error).__name__)


def _plain(status: HTTPStatus, text: str) -> Response:
    return Response(int(status), f"{text}\n".encode())


def _encoded(response: Response, head_only: bool) -> bytes:
    status = HTTPStatus(response.status)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if head_only else response.body)
