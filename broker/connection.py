"""One place that opens connections to Redis, and what must hold on each of them.

redis-py's defaults retry ten times and reload scripts; both would repeat a step that already happened. Here a call
is sent once, and every new connection proves that it speaks to the server of our epoch before its first command.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from broker.values import EpochOver


class BadRedisUrl(Exception):
    """The URL or the server behind it cannot be used; the text is one line with the mend."""


class RunGuard:
    """Run id of the server the epoch lives on. Unset until known; then every new connection must meet it."""

    def __init__(self) -> None:
        self.expected: str | None = None

    def check(self, run: str) -> None:
        """Raises EpochOver when the server behind a new connection is another, or was restarted."""
        if self.expected is not None and run != self.expected:
            raise EpochOver(f"the Redis server changed (run {self.expected[:8]} -> {run[:8]})")


def run_id(info: bytes | str) -> str:
    """run_id of an INFO answer; "" where the server gives none."""
    text = info.decode() if isinstance(info, bytes) else info
    return next((line[7:].strip() for line in text.splitlines() if line.startswith("run_id:")), "")


def connect(url: str, *, timeout_s: float = 4.0, guard: RunGuard | None = None) -> redis.Redis:
    """A client that sends each command once, RESP2, bytes out.

    Raises BadRedisUrl for a URL redis-py cannot read. Connecting itself happens at the first command.
    """
    try:
        pool = redis.ConnectionPool.from_url(
            url,
            protocol=2,
            decode_responses=False,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
            retry_on_timeout=False,
            health_check_interval=0,
        )
    except (ValueError, TypeError) as error:
        raise BadRedisUrl(f"--redis {url!r}: {error}; it looks like redis://user:password@host:6379/0") from None
    if guard is not None:
        pool.connection_kwargs["redis_connect_func"] = _greeting(guard)
    return _Client(pool)


class _Client(redis.Redis):
    """Its scripts go over one connection that it keeps: to fetch one from the pool and bring it back takes as long as
    the call. All else is the pool's way: a connection that was closed meanwhile, or on which something lies unread, is
    made anew before anything is sent.
    """

    def __init__(self, pool: redis.ConnectionPool) -> None:
        super().__init__(connection_pool=pool)
        self._kept: Any = None
        self._kept_by_pid = 0
        self._in_use = threading.Lock()

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """As its parent's. Calls at the same time, from several threads, take connections of the pool."""
        if args[0] != "EVALSHA" or not self._in_use.acquire(blocking=False):
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        try:
            connection = self._ready_connection()
            try:
                connection.send_command(*args, check_health=False)
                return connection.read_response()
            except ResponseError:
                raise  # an answer like any other
            except BaseException:
                connection.disconnect()  # the answer may still come: nobody must take it for his
                raise
        finally:
            self._in_use.release()

    def _ready_connection(self) -> Any:
        if self._kept is None or self._kept_by_pid != os.getpid():
            self._kept, self._kept_by_pid = self.connection_pool.get_connection(), os.getpid()
            return self._kept
        try:
            fresh = not self._kept.can_read()
        except (RedisConnectionError, RedisTimeoutError, OSError):
            fresh = False
        if not fresh:
            self._kept.disconnect()
            self._kept.connect()
        return self._kept


def _greeting(guard: RunGuard) -> Callable[[AbstractConnection], None]:
    def greet(connection: AbstractConnection) -> None:
        connection.on_connect()  # type: ignore[no-untyped-call]
        if guard.expected is None:
            return
        connection.send_command("INFO", "server", check_health=False)  # type: ignore[no-untyped-call]
        try:
            guard.check(run_id(connection.read_response()))
        except EpochOver:
            connection.disconnect()  # type: ignore[no-untyped-call]
            raise

    return greet
