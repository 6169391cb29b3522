"""Servers and small tools the client's tests share."""

import asyncio
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any

import orjson
import uvloop
from aiohttp import web

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.http.frames import WatchEvent

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def looped(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on uvloop, as the product does, for at most 20 s."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(asyncio.wait_for(test(*args, **kwargs), 20))

    return run


async def one_by_one(batches: AsyncGenerator[list[WatchEvent], None]) -> AsyncGenerator[WatchEvent, None]:
    """The events of a watch."""
    async with aclosing(batches):
        async for batch in batches:
            for event in batch:
                yield event


@asynccontextmanager
async def serving(handler: Handler, ssl: Any = None) -> AsyncIterator[str]:
    """An HTTP server that gives every request to `handler`; yields its URL."""
    app = web.Application(client_max_size=16 << 20)
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl).start()
        port = runner.addresses[0][1]
        yield f"{'https' if ssl else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


class RawServer:
    """A TCP server that reads whole HTTP requests, counts them, and does to the connection what it is told.

    react(nth, writer): nth request overall from 1; returning False ends the connection.
    """

    def __init__(self, react: Callable[[int, asyncio.StreamWriter], bool]) -> None:
        self._react = react
        self.requests: list[bytes] = []
        self.connections = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = 0
                for line in head.split(b"\r\n"):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                self.requests.append(head + await reader.readexactly(length))
                if not self._react(len(self.requests), writer):
                    return
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


def reply(writer: asyncio.StreamWriter, body: bytes = b"{}", code: int = 200) -> None:
    """Write a whole keep-alive answer."""
    writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (code, len(body), body))


def answering(body: bytes = b"{}") -> RawServer:
    """Answers every request with this."""

    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        reply(writer, body)
        return True

    return RawServer(react)


def config_of(url: str, **more: Any) -> ClusterConfig:
    return ClusterConfig(server=url, **more)


def status_json(code: int, reason: str, message: str = "said so", **details: Any) -> bytes:
    """A metav1.Status of failure."""
    return orjson.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": code,
        }
    )


def status_response(code: int, reason: str, **details: Any) -> web.Response:
    return web.Response(status=code, body=status_json(code, reason, **details), content_type="application/json")


def json_response(value: Any, code: int = 200) -> web.Response:
    return web.Response(status=code, body=orjson.dumps(value), content_type="application/json")


@asynccontextmanager
async def tunnelling(seen: list[str]) -> AsyncIterator[str]:
    """A proxy that knows only CONNECT, to a server on this machine; notes what it was asked."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head.split(b"\r\n")[0].decode())
        host, port = head.split()[1].decode().rsplit(":", 1)
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


class FakeTime:
    """A clock that moves only when told to, or when something sleeps on it."""

    def __init__(self, start_s: float = 1000.0) -> None:
        self.now_s = start_s
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, delay_s: float) -> None:
        self.slept.append(delay_s)
        self.now_s += delay_s
        await asyncio.sleep(0)
