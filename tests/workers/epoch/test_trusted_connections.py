"""Which server an ingestor speaks to, when the one behind its address may have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarlock.broker.connection.client import RunGuard, connect
from oarlock.broker.values.errors import BrokerUnreachable, EpochOver
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.epoch.redis_side import RedisSide
from tests.workers.fleet_rig import until

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
        until(lambda: not connections() & trusted)
        unproved = connections()
        side.broker(seen).look("pods")
        until(lambda: not connections() & unproved, what="what was opened in between has proved nothing")


def test_a_server_that_was_demoted_counts_as_unreachable_and_is_left(tmp_path: Path) -> None:
    """Whoever only reads would not notice: a replica answers, and its run id is the old one."""
    with EmbeddedRedis(tmp_path / "redis") as server:
        guard = RunGuard()
        client = connect(server.url("ingestor"), guard=guard)
        side, admin = RedisSide(client, guard), connect(server.url("admin"))
        side.bootstrap(1)
        seen = side.look()
        side.broker(seen)
        admin.replicaof("127.0.0.1", 1)
        with pytest.raises(BrokerUnreachable, match="replica"):
            side.look()
        until(lambda: not [each for each in admin.client_list() if each["user"] == "ingestor"])  # the next asks anew
        admin.replicaof("NO", "ONE")
        with pytest.raises(EpochOver, match="changed"):  # a promotion is another life
            side.look()
        side.distrust()
        assert not side.look().intact
