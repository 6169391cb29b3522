from __future__ import annotations

from collections.abc import Iterator

import pytest

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.pauses import digest
from oarlock.broker.redis_broker import RedisBroker
from oarlock.cli.steer import scopes
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.cli.steer.steer_cases import QUEUE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def broker(server: EmbeddedRedis) -> Iterator[RedisBroker]:
    """An open epoch of the test's own, with two queued keys."""
    client = connect(server.url("admin"))
    epoch.bootstrap(client, epoch.current(client).epoch + 1)
    broker = RedisBroker(client, epoch.current(client).epoch)
    broker.open([])
    broker.register("w-1", "s", [QUEUE])
    broker.add(QUEUE, ["shop/a", "bank/b"])
    yield broker
    client.close()


@pytest.fixture
def kept(broker: RedisBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ingestor writes into the Lease what there is, while the command waits."""
    monkeypatch.setattr(scopes.time, "sleep", lambda _: broker.steer("kept", digest(broker.pauses()), ""))
