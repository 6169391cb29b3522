"""Connections: one that is gone before anything was handed to it has certainly sent nothing; one that is idle keeps
nothing; and where one of them turns out to be lost, so are the others that were idle.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import Mock

import pytest

from oarlock.cluster.answer import NO_ANSWER
from oarlock.cluster.http.flight import KEEPALIVE_S, Flight
from oarlock.cluster.http.messages import AnswerReader
from oarlock.cluster.http.pool import Pool, _Connection
from oarlock.cluster.http.transport import Transport
from tests.cluster.client_helpers import RawServer, answering, config_of, looped, reply


@looped
async def test_a_connection_lost_as_soon_as_it_was_made_has_sent_nothing(monkeypatch):
    pool = Pool("http://127.0.0.1:1", "", 4.0, 4)

    async def lost(context):
        return _Connection(lambda _: None)

    monkeypatch.setattr(pool, "_connect", lost)
    flight = Flight("POST", "/", timeout_s=4.0, clock=time.monotonic)
    with pytest.raises(ConnectionError, match="the connection was closed"):
        await pool.exchange(flight, b"POST / HTTP/1.1\r\n\r\n", None)
    assert not flight.sent


@looped
async def test_a_connection_that_the_server_closed_is_not_used_again_though_its_transport_closes_later():
    """As over TLS, where the transport waits for the other side to say goodbye, too."""
    connection = _Connection(lambda _: None)
    connection.connection_made(Mock(spec=asyncio.Transport, is_closing=lambda: False))
    waiting = asyncio.get_running_loop().create_future()
    connection.send(b"POST / HTTP/1.1\r\n\r\n", waiting)
    connection.data_received(b"HTTP/1.1 500 Oh\r\n\r\nit broke")
    assert connection.usable
    connection.eof_received()
    assert (await waiting).body == b"it broke"
    assert not connection.usable


class Failover(RawServer):
    """Answers on what was connected since ``happened`` and resets every older connection that is used."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self._before: set[asyncio.StreamWriter] = set()
        self._seen: set[asyncio.StreamWriter] = set()
        self.resets = 0

    def happened(self) -> None:
        self._before |= self._seen

    def _answer(self, nth: int, writer: asyncio.StreamWriter) -> bool:
        self._seen.add(writer)
        if writer in self._before:
            self.resets += 1
            writer.transport.abort()
            return False
        reply(writer)
        return True


@asynccontextmanager
async def failed_over() -> AsyncIterator[tuple[Failover, Transport]]:
    """A server, and a client with ten idle connections that it resets when they are used."""
    server = Failover()
    async with server.running() as url, Transport(config_of(url)) as transport:
        await asyncio.gather(*(transport.write("POST", "/x", b"{}") for _ in range(10)))
        server.happened()
        yield server, transport


@looped
async def test_after_a_failover_the_first_read_is_answered():
    """Its second try goes over a new connection, not over another one that is as dead."""
    async with failed_over() as (server, transport):
        assert [(await transport.read("/x")).code for _ in range(3)] == [200, 200, 200]
    assert server.resets == 1


@looped
async def test_after_a_failover_one_write_is_without_an_answer():
    async with failed_over() as (_, transport):
        codes = [(await transport.write("POST", "/x", b"{}")).code for _ in range(3)]
    assert codes == [NO_ANSWER, 200, 200]


@looped
async def test_an_idle_connection_keeps_no_answer():
    async with answering(b"x" * (1 << 20)).running() as url, Transport(config_of(url)) as transport:
        await asyncio.gather(*(transport.read("/x") for _ in range(8)))
        gc.collect()
        held = [each for each in gc.get_objects() if isinstance(each, AnswerReader)]
        assert transport._straight is not None
        assert (len(transport._straight._idle), held) == (8, [])


@looped
async def test_a_connection_that_ended_while_it_was_idle_is_forgotten():
    writers: list[asyncio.StreamWriter] = []

    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        writers.append(writer)
        reply(writer)
        return True

    async with RawServer(react).running() as url, Transport(config_of(url)) as transport:
        await asyncio.gather(*(transport.read("/x") for _ in range(4)))
        straight = transport._straight
        assert straight is not None
        for writer in writers[:3]:
            writer.close()
        while len(straight._open) > 1:
            await asyncio.sleep(0.001)
        assert len(straight._idle) == 1


@looped
async def test_connections_that_were_idle_for_long_are_closed():
    async with answering().running() as url, Transport(config_of(url)) as transport:
        await asyncio.gather(*(transport.read("/x") for _ in range(4)))
        straight = transport._straight
        assert straight is not None
        for connection in straight._idle[:3]:
            connection.idle_since_s -= KEEPALIVE_S
        await transport.read("/x")
        assert (len(straight._idle), len(straight._open)) == (1, 1)
