"""Servers of the broker's tests: one of each kind a session, emptied between tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sandbox.redis.redis_binary import ServerBinary
from tests.broker.broker_cases import Case, MemoryCase, RedisCase, ThreadsCase, clients_of, fake_case
from tests.broker.broker_servers import REAL, Serve


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A running server of a kind, with a client for each user; ended with the session."""
    running: dict[str, tuple[EmbeddedRedis, dict[str, Any]]] = {}

    def get(binary: ServerBinary) -> tuple[EmbeddedRedis, dict[str, Any]]:
        if str(binary) not in running:
            server = EmbeddedRedis(tmp_path_factory.mktemp("redis"), binary=binary).start()
            running[str(binary)] = server, clients_of(server)
        return running[str(binary)]

    yield get
    for server, clients in running.values():
        for client in clients.values():
            client.close()
        server.stop()


IN_MEMORY = {"memory": MemoryCase, "threads": ThreadsCase}


@pytest.fixture(params=[*IN_MEMORY, *REAL])
def case(request: pytest.FixtureRequest, serve: Serve) -> Case:
    """The twin, alone and for threads, and every real server."""
    in_memory = IN_MEMORY.get(str(request.param))
    return in_memory() if in_memory is not None else RedisCase(str(request.param), serve(request.param)[1])


@pytest.fixture(params=[*IN_MEMORY, "fakeredis", *REAL])
def queue_case(request: pytest.FixtureRequest, serve: Serve) -> Case:
    """``case`` and fakeredis: the work queue, and nothing else, is tested there too."""
    if request.param == "fakeredis":
        return fake_case()
    in_memory = IN_MEMORY.get(str(request.param))
    return in_memory() if in_memory is not None else RedisCase(str(request.param), serve(request.param)[1])


@pytest.fixture(params=REAL)
def real(request: pytest.FixtureRequest, serve: Serve) -> RedisCase:
    """Every real server."""
    return RedisCase(str(request.param), serve(request.param)[1])


@pytest.fixture(params=REAL)
def own_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """A server of the test's own, to be restarted, filled and killed."""
    with EmbeddedRedis(tmp_path_factory.mktemp("own"), binary=request.param) as server:
        yield server
