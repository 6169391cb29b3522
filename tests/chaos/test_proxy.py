"""The bad network: each mode does to a connection what it says, and what a cut kept back comes when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from oarlock.chaos.faults.proxy import MODES, Proxy

Body = Callable[[Proxy], Awaitable[None]]
SOON_S, LIMIT_S = 0.15, 10.0


def played(body: Body) -> None:
    """With a server that echoes behind a proxy."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def play() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        proxy = Proxy("127.0.0.1", server.sockets[0].getsockname()[1])
        await proxy.listen()
        try:
            await asyncio.wait_for(body(proxy), LIMIT_S)
        finally:
            await proxy.turn("refuse")
            server.close()

    asyncio.run(play())


async def dial(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"hello")
    assert await reader.readexactly(5) == b"hello"
    return reader, writer


@pytest.mark.parametrize("mode", ["cut", "no-answers", "no-requests"])
def test_a_cut_keeps_back_and_delivers_late(mode: str) -> None:
    async def body(proxy: Proxy) -> None:
        reader, writer = await dial(proxy)
        assert await proxy.turn(mode) == 0
        writer.write(b"late")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readexactly(4), SOON_S)
        assert await proxy.turn("pass") == 1
        assert await reader.readexactly(4) == b"late"

    played(body)


@pytest.mark.parametrize("mode", ["reset", "refuse"])
def test_a_connection_is_ended_hard_and_the_port_comes_back(mode: str) -> None:
    async def body(proxy: Proxy) -> None:
        reader, writer = await dial(proxy)
        await proxy.turn(mode)
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        writer.close()
        if mode == "refuse":
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await proxy.turn("pass") >= 1
        await dial(proxy)

    played(body)


@pytest.mark.parametrize("mode", ["trickle", "slow", "flap"])
def test_a_bad_line_loses_nothing(mode: str) -> None:
    sent = bytes(range(256)) * 20

    async def body(proxy: Proxy) -> None:
        reader, writer = await dial(proxy)
        await proxy.turn(mode)
        writer.write(sent)
        assert await reader.readexactly(len(sent)) == sent
        assert await proxy.turn("pass") >= 1

    played(body)


def test_every_mode_is_played_here() -> None:
    played_here = {"cut", "no-answers", "no-requests", "reset", "refuse", "trickle", "slow", "flap", "pass"}
    assert set(MODES) == played_here
