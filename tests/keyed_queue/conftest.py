"""Servers of the queue's tests: those of the broker's, one of each kind a session, emptied between tests."""

from __future__ import annotations

import pytest

from oarlock.broker.connection.client import connect
from tests.broker.broker_servers import REAL, Serve
from tests.broker.conftest import serve
from tests.keyed_queue.queue_cases import Case, MemoryCase, RedisCase

__all__ = ["serve"]


@pytest.fixture(params=["memory", *REAL])
def case(request: pytest.FixtureRequest, serve: Serve) -> Case:
    """The twin and every real server."""
    return (
        MemoryCase() if request.param == "memory" else RedisCase(str(request.param), serve(request.param)[1]["admin"])
    )


@pytest.fixture(params=REAL)
def real(request: pytest.FixtureRequest, serve: Serve) -> RedisCase:
    """Every real server."""
    return RedisCase(str(request.param), serve(request.param)[1]["admin"])


@pytest.fixture
def url(serve: Serve) -> str:
    """The URL of an empty server of the newest kind."""
    server, _ = serve(REAL[0].values[0])  # type: ignore[arg-type]
    connect(server.url("admin")).flushall()
    return server.url("admin")
