"""Which server an ingestor speaks to, when the one behind its address may have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarlock.broker.connection.client import RunGuard, connect
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.epoch.redis_side import RedisSide

pytestmark = pytest.mark.real


def test_every_connection_is_made_anew_when_the_trusted_server_changes(tmp_path: Path) -> None:
    """Scripts and looks have a connection each: one of them may still lead to a master that was replaced."""
    with EmbeddedRedis(tmp_path / "redis") as server:
        guard = RunGuard()
        client = connect(server.url("ingestor"), guard=guard)
        side, admin = RedisSide(client, guard), connect(server.url("admin"))

        def connections() -> set[str]:
            return {each["id"] for each in admin.client_list() if each["user"] == "ingestor"}

        side.bootstrap(1)
        broker = side.broker(side.look())
        broker.look("pods")
        side.look()
        trusted = connections()
        assert trusted
        side.broker(side.look()).look("pods")
        assert connections() == trusted, "nothing has changed"
        side.distrust()
        seen = side.look()
        broker.look("pods")
        assert not connections() & trusted
        unproved = connections()
        side.broker(seen).look("pods")
        assert not connections() & unproved, "what was opened in between has proved nothing"
