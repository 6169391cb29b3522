"""Connections: one that is gone before anything was handed to it has certainly sent nothing."""

import asyncio
import time
from unittest.mock import Mock

import pytest

from oarlock.cluster.http.flight import Flight
from oarlock.cluster.http.pool import Pool, _Connection
from tests.cluster.client_helpers import looped


@looped
async def test_a_connection_lost_as_soon_as_it_was_made_has_sent_nothing(monkeypatch):
    pool = Pool("http://127.0.0.1:1", "", 4.0, 4)

    async def lost(context):
        return _Connection()

    monkeypatch.setattr(pool, "_connect", lost)
    flight = Flight("POST", "/", timeout_s=4.0, clock=time.monotonic)
    with pytest.raises(ConnectionError, match="the connection was closed"):
        await pool.exchange(flight, b"POST / HTTP/1.1\r\n\r\n", None)
    assert not flight.sent


@looped
async def test_a_connection_that_the_server_closed_is_not_used_again_though_its_transport_closes_later():
    """As over TLS, where the transport waits for the other side to say goodbye, too."""
    connection = _Connection()
    connection.connection_made(Mock(spec=asyncio.Transport, is_closing=lambda: False))
    waiting = asyncio.get_running_loop().create_future()
    connection.send(b"POST / HTTP/1.1\r\n\r\n", waiting)
    connection.data_received(b"HTTP/1.1 500 Oh\r\n\r\nit broke")
    assert connection.usable
    connection.eof_received()
    assert (await waiting).body == b"it broke"
    assert not connection.usable
