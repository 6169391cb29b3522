"""The HTTP server among strangers: slow, rude and many."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from oarlock.workers.metrics.serving.http_server import HEAD_BYTES_MAX, HttpServer, Request, Response

GET = b"GET /hello?a=b HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\n\r\n"


async def hello(request: Request) -> Response:
    return Response(200, f"{request.path} {request.query} {request.headers.get('accept', '-')}".encode())


@asynccontextmanager
async def serving(handler: Callable[[Request], Awaitable[Response]] = hello, **limits: float) -> AsyncIterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    task = asyncio.create_task(HttpServer(listening, handler, **limits).serve())  # type: ignore[arg-type]
    try:
        yield listening.getsockname()[1]
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def ask(port: int, data: bytes) -> bytes:
    """Send, and read until the other side has closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        await writer.drain()
        return await reader.read(-1)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def test_an_answer_says_how_long_it_is() -> None:
    async def check() -> None:
        async with serving() as port:
            head, _, body = (await ask(port, GET)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert f"\r\nContent-Length: {len(body)}\r\n".encode() in head
            assert head.endswith(b"Connection: close")
            assert body == b"/hello a=b text/plain"

    asyncio.run(check())


def test_head_has_no_body_but_its_length() -> None:
    async def check() -> None:
        async with serving() as port:
            answer = await ask(port, GET.replace(b"GET", b"HEAD"))
            assert b"\r\nContent-Length: 21\r\n" in answer
            assert answer.endswith(b"\r\n\r\n")

    asyncio.run(check())


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"DELETE / HTTP/1.1\r\n\r\n", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00 hello tls \xff\xfe\r\n\r\n", b"400"),
        (b"GET / HTTP/2.0\r\n\r\n", b"505"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 2 * HEAD_BYTES_MAX + b"\r\n\r\n", b"431"),
    ],
)
def test_what_is_refused(request_bytes: bytes, status: bytes) -> None:
    async def check() -> None:
        async with serving() as port:
            assert (await ask(port, request_bytes)).startswith(b"HTTP/1.1 " + status)
            assert (await ask(port, GET)).startswith(b"HTTP/1.1 200")

    asyncio.run(check())


def test_a_fault_of_ours_is_a_500_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: Request) -> Response:
        raise RuntimeError("password=hunter2")

    async def check() -> None:
        async with serving(broken) as port:
            answer = await ask(port, GET)
            assert answer.startswith(b"HTTP/1.1 500")
            assert b"hunter2" not in answer

    asyncio.run(check())
    assert "not_served" in caplog.text


def test_whoever_sends_too_slowly_is_dropped() -> None:
    async def check() -> None:
        async with serving(read_s=0.05) as port:
            assert await ask(port, b"GET / HTTP/1.1\r\nX: ") == b""  # the end never comes
            assert await ask(port, b"") == b""

    asyncio.run(check())


def test_whoever_does_not_read_is_dropped() -> None:
    answering: list[asyncio.Task[None]] = []

    async def huge(request: Request) -> Response:
        task = asyncio.current_task()
        assert task is not None
        answering.append(task)
        return Response(200, b"x" * 50_000_000)

    async def check() -> None:
        async with serving(huge, write_s=0.05) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
            writer.write(GET)
            await writer.drain()
            while not answering or not answering[0].done():  # it has been given up
                await asyncio.sleep(0.01)
            with pytest.raises((ConnectionError, AssertionError)):
                assert len(await reader.read(-1)) >= 50_000_000
            writer.close()

    asyncio.run(check())


def test_the_longest_silent_one_makes_room_for_a_probe() -> None:
    async def check() -> None:
        async with serving(connections_max=4) as port:
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
            for _ in range(20):
                assert (await ask(port, GET)).startswith(b"HTTP/1.1 200")
            assert await silent[0][0].read(-1) == b""
            for _, writer in silent:
                writer.close()

    asyncio.run(check())
