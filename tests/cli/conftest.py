"""A Redis for the tests of one file of commands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def client(server: EmbeddedRedis) -> Iterator[redis.Redis]:
    """Of a server that has been emptied."""
    made = connect(server.url("admin"))
    made.flushall()
    yield made
    made.close()


@pytest.fixture
def broker(client: redis.Redis) -> RedisBroker:
    """An open epoch 3 with an empty cache and a worker w-1 of ReplicaSets."""
    epoch.bootstrap(client, 3)
    made = RedisBroker(client, 3)
    for resource in ("replicasets", "pods"):
        made.stage(resource, "g1", [])
        assert made.commit_list(resource, "g1", "9").verdict == "OK"
    assert made.open(["replicasets", "pods"]) == ""
    made.register("w-1", "s", ["replicaset"])
    return made
