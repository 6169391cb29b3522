"""A fleet's data in a Redis server that this process starts and ends."""

from __future__ import annotations

from pathlib import Path

import redis

from oarlock.broker.connection.client import RunGuard, connect
from oarlock.broker.epoch import Seen
from oarlock.broker.protocol import Broker
from oarlock.broker.redis_broker import RedisBroker
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.testing.clock import MovableClock
from oarlock.workers.epoch.identity import CALL_TIMEOUT_S, LEASE_TIMEOUT_S, WAIT_TIMEOUT_S, open_client
from oarlock.workers.epoch.redis_side import EpochStore, RedisSide
from oarlock.workers.process.settings import Settings
from oarlock.workers.supervisor.timer_wait import Timer, TimerWait

MOVED_KEY = "oarlock:moved-ms"
MOVED_TIME = (
    "local t = redis.call('TIME') "
    f"return t[1] * 1000 + math.floor(t[2] / 1000) + (tonumber(redis.call('GET', '{MOVED_KEY}') or '0'))"
)
"""The clock of the scripts: Redis's own, moved as far as the test moved the cluster's."""


class RedisData:
    """Make it on the main thread. Raises NoRedisBinary, RedisNotStarted, and what ``EmbeddedRedis.start`` raises."""

    def __init__(self, directory: Path, clock: MovableClock) -> None:
        self._clock = clock
        self._server = EmbeddedRedis(directory).start()
        self._admin: redis.Redis = connect(self._server.url("admin"))
        self._settings = Settings(redis_url=self._server.url("worker"))
        guard = RunGuard()
        self._clients = [self._admin, connect(self._server.url("ingestor"), guard=guard)]
        self.epochs: EpochStore = RedisSide(self._clients[-1], guard, clock=MOVED_TIME)

    def _client(self, seen: Seen, timeout_s: float) -> redis.Redis:
        client = open_client(self._settings, seen, timeout_s)
        self._clients.append(client)
        return client

    def worker_broker(self, seen: Seen) -> Broker:
        waiting = self._client(seen, WAIT_TIMEOUT_S)
        return RedisBroker(self._client(seen, CALL_TIMEOUT_S), seen.epoch, blocking=waiting, clock=MOVED_TIME)

    def lease_broker(self, seen: Seen) -> tuple[Broker, Timer]:
        client = self._client(seen, LEASE_TIMEOUT_S)
        broker = RedisBroker(client, seen.epoch, clock=MOVED_TIME)
        return broker, TimerWait(client, broker.keys.of("timer"))

    def time_moved(self) -> None:
        self._admin.set(MOVED_KEY, self._clock.moved_ms)

    def end_waits(self) -> None:
        """They are short."""

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self._server.kill()  # at once: nothing in it is to be kept
        self._server.stop()
