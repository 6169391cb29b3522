"""Connections for writes: one that is gone before anything was handed to it has certainly sent nothing."""

import time

import pytest

from oarlock.cluster.http import write_pool
from oarlock.cluster.http.session import Flight
from oarlock.cluster.http.write_pool import WritePool
from tests.cluster.client_helpers import looped


@looped
async def test_a_connection_lost_as_soon_as_it_was_made_has_sent_nothing(monkeypatch):
    pool = WritePool("http://127.0.0.1:1", "", 4.0, 4)

    async def lost(context):
        return write_pool._Connection()

    monkeypatch.setattr(pool, "_connect", lost)
    flight = Flight("POST", "/", timeout_s=4.0, clock=time.monotonic)
    with pytest.raises(ConnectionError, match="the connection was closed"):
        await pool.exchange(flight, b"POST / HTTP/1.1\r\n\r\n", None)
    assert not flight.sent
