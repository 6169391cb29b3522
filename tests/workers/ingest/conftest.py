"""One Redis a session for the ingestor's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sandbox.redis.redis_binary import NoRedisBinary
from tests.workers.ingest.ingest_rig import Rig, Server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    try:
        embedded = EmbeddedRedis(tmp_path_factory.mktemp("ingest-redis")).start()
    except NoRedisBinary as error:
        pytest.skip(str(error))
    yield Server(embedded.url("admin"))
    embedded.stop()


@pytest.fixture
def make_rig(redis_server: Server) -> Callable[..., Rig]:
    """``make_rig(seed=3)``: an empty Redis and a cluster."""
    return lambda **given: Rig(redis_server, **given)


@pytest.fixture
def rig(make_rig: Callable[..., Any]) -> Rig:
    return make_rig()
