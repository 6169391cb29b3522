"""One private Redis for all simulated runs of a test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oarlock.sandbox.redis.redis_binary import find
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.redis_rig import RedisRig, RedisServer


@pytest.fixture(scope="session")
def memory_rig() -> MemoryRig:
    return MemoryRig()


@pytest.fixture(scope="session")
def redis_rig() -> Iterator[RedisRig]:
    server = RedisServer(find().path)
    yield RedisRig(server.client)
    server.stop()
