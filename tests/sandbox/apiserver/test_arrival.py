"""How long bytes have waited to be read: while a connection lives, and when it has ended."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
import uvloop

from oarlock.sandbox.apiserver.http.arrival import waited_s

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_while_it_lives_and_when_it_has_ended(run: Run) -> None:
    seen: list[float] = []

    async def serve() -> None:
        ended = asyncio.Event()

        class Connection(asyncio.Protocol):
            transport: asyncio.Transport

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.transport = cast(asyncio.Transport, transport)
                client.sendall(b"x")
                threading.Event().wait(0.1)  # the loop is busy

            def data_received(self, data: bytes) -> None:
                seen.append(waited_s(self.transport))
                self.transport.abort()

            def connection_lost(self, error: Exception | None) -> None:
                asyncio.get_running_loop().call_later(0.01, self.look_again)

            def look_again(self) -> None:
                seen.append(waited_s(self.transport))
                ended.set()

        server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()) as client:
            await asyncio.wait_for(ended.wait(), 20)
        server.close()

    run(serve())
    assert 0.05 < seen[0] < 10
    assert seen[1:] == [0.0]


def test_of_no_connection_nothing_is_known() -> None:
    assert waited_s(None) == 0.0
