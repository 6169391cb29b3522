"""The only place that opens connections to Redis.

redis-py's defaults retry ten times and reload scripts, and both would repeat a step that has already happened. Here
each call is sent once, and each new connection proves, before its first command, that it speaks to the server of our
epoch. Where Sentinels or a cluster decide which server that is, each new connection asks them.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

import redis
from hiredis import pack_command
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from oarlock.broker.connection.finders import Finder, SentinelFinder, SlotFinder
from oarlock.broker.connection.named import driver
from oarlock.broker.connection.redis_url import BadRedisUrl, Kind, RedisUrl, parse
from oarlock.broker.connection.run_guard import RunGuard
from oarlock.broker.connection.server_connection import (
    Encrypted,
    EncryptedFound,
    Found,
    Local,
    Plain,
    PlainFound,
    greeting,
)
from oarlock.broker.connection.tls import NO_FILES, TlsFiles

__all__ = ["BadRedisUrl", "RunGuard", "TlsFiles", "connect", "connect_like", "in_one_go", "pool_of", "send"]

TIMEOUT_S = 4.0
KEEPALIVE: dict[str, Any] = {
    "socket_keepalive": True,
    "socket_keepalive_options": {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 3},
}
"""For connections on which only the server speaks: what lies between may forget idle ones, and tells nobody. In
seconds; after a minute the kernel takes such a connection for broken.
"""


def connect(
    url: str,
    *,
    timeout_s: float = TIMEOUT_S,
    guard: RunGuard | None = None,
    shard: str = "0",
    tls: TlsFiles = NO_FILES,
) -> redis.Redis:
    """A client that sends each command once, RESP2, bytes out. In a cluster it speaks to the master of ``shard``.

    Raises BadRedisUrl for a URL or a TLS file that cannot be used. Connecting itself happens at the first command.
    """
    return _Client(pool_of(parse(url), timeout_s=timeout_s, retry=no_retry(), guard=guard, shard=shard, tls=tls))


def connect_like(client: redis.Redis) -> redis.Redis:
    """Another client of the server that ``client`` is for, with its login and TLS, that sends each command once.

    Raises BadRedisUrl for a client of a Sentinel or a cluster: a URL says more of these.
    """
    pool = client.connection_pool
    if type(pool) is not redis.ConnectionPool:
        raise BadRedisUrl(
            f"a client with a {type(pool).__name__}: give a URL in its place, redis+sentinel://... or redis+cluster://..."
        )
    kept = {name: pool.connection_kwargs[name] for name in _OF_THE_SERVER if name in pool.connection_kwargs}
    kept |= {name: value for name, value in pool.connection_kwargs.items() if name.startswith("ssl_")}
    return _Client(
        redis.ConnectionPool(
            connection_class=pool.connection_class,
            protocol=2,
            decode_responses=False,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=no_retry(),
            retry_on_timeout=False,
            health_check_interval=0,
            driver_info=driver(),
            **kept,
        )
    )


_OF_THE_SERVER = ("host", "port", "path", "db", "username", "password", "credential_provider")


def in_one_go(client: redis.Redis, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Several commands in one round trip, each sent once. For each its answer, or the error in its place."""
    assert isinstance(client, _Client), "a broker's client is made by connect()"
    return client.in_one_go(calls)


def send(client: redis.Redis, calls: Sequence[tuple[Any, ...]]) -> Callable[[], list[Any]]:
    """As ``in_one_go``, but what comes back waits for the answers. It has to be called, and once."""
    assert isinstance(client, _Client), "a broker's client is made by connect()"
    return client.send(calls)


def no_retry() -> Retry:
    """Each command is sent once."""
    return Retry(NoBackoff(), 0)


def pool_of(
    url: RedisUrl,
    *,
    timeout_s: float,
    retry: Retry,
    guard: RunGuard | None = None,
    shard: str = "0",
    tls: TlsFiles = NO_FILES,
    any_master: bool = False,
) -> redis.ConnectionPool:
    """Connections to the server that ``url`` means. ``any_master``: where nobody tells which one that is, or has its
    address, the last one that was found will do. Raises BadRedisUrl for a TLS file that cannot be used.
    """
    if url.tls:
        tls.check()

    def may_reuse() -> bool:
        return any_master or (guard is not None and guard.expected is not None)

    finder = _finder(url, shard, timeout_s=timeout_s, tls=tls, may_reuse=may_reuse)
    kind: type[Any]
    way: dict[str, Any] = {"may_reuse": may_reuse, **KEEPALIVE}
    if url.path:
        kind, way = Local, {"path": url.path}
    elif finder is not None:
        kind, way["finder"] = EncryptedFound if url.tls else PlainFound, finder
    else:
        kind, (way["host"], way["port"]) = Encrypted if url.tls else Plain, url.places[0]
    return redis.ConnectionPool(
        connection_class=kind,
        username=url.username,
        password=url.password,
        db=url.db,
        protocol=2,
        decode_responses=False,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=retry,
        retry_on_timeout=False,
        health_check_interval=0,
        redis_connect_func=greeting(guard, finder),
        driver_info=driver(),
        **way,
        **(tls.options() if url.tls else {}),
    )


def _finder(url: RedisUrl, shard: str, **options: Any) -> Finder | None:
    if url.kind is Kind.SENTINEL:
        return SentinelFinder(url, **options)
    return SlotFinder(url, shard, **options) if url.kind is Kind.CLUSTER else None


PLAIN = frozenset(("EVALSHA", "GET", "HGET", "MGET"))
"""Commands whose answer is used as it came. Of others redis-py makes something else."""


class _Client(redis.Redis):
    """A client that keeps one connection for what is called most, and for what is sent in one go: to fetch one from the
    pool and to bring it back takes as long as the call. As in the pool, a connection that was closed meanwhile, or that
    has something unread, is made anew before anything is sent.
    """

    def __init__(self, pool: redis.ConnectionPool) -> None:
        super().__init__(connection_pool=pool)
        self.auto_close_connection_pool = True  # else close() closes nothing: it is nobody else's pool
        self._kept: Any = None
        self._found = issubclass(pool.connection_class, Found)
        self._kept_by_pid = 0
        self._in_use = threading.Lock()

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """As the parent's. Where several threads call at the same time, all but one take connections of the pool. What
        is sent is packed at once: the parent looks at each argument before.
        """
        if args[0] not in PLAIN or not self._in_use.acquire(blocking=False):
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        try:
            (answer,) = self._exchange([args])
        finally:
            self._in_use.release()
        if isinstance(answer, RedisError):
            raise answer
        return answer

    def in_one_go(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """As the function, over the kept connection whoever else calls."""
        with self._in_use:
            return self._exchange(calls)

    def _exchange(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Send all, then read an answer to each. Where there is none, neither is there any to those after it."""
        connection = self._ready_connection()
        try:
            connection.send_packed_command((b"".join(map(pack_command, calls)),), check_health=False)
            return _answers(connection, len(calls))
        except BaseException:  # a signal's, too, that comes between the two
            connection.disconnect()
            raise

    def send(self, calls: Sequence[tuple[Any, ...]]) -> Callable[[], list[Any]]:
        """As the function, over a connection of the pool, so that others may call meanwhile."""
        pool = self.connection_pool
        connection: Any = pool.get_connection()

        def answers() -> list[Any]:
            try:
                return _answers(connection, len(calls))
            finally:
                pool.release(connection)

        try:
            connection.send_packed_command(map(pack_command, calls), check_health=False)  # each has its timeout
        except BaseException:
            pool.release(connection)
            raise
        return answers

    def _ready_connection(self) -> Any:
        if self._kept is None or self._kept_by_pid != os.getpid():
            self._kept, self._kept_by_pid = self.connection_pool.get_connection(), os.getpid()
            return self._kept
        try:
            fresh = not self._kept.should_reconnect() and not self._kept.can_read()
            if fresh and self._found:
                self._kept.connect()  # it asks whether the server is still the right one
        except (RedisConnectionError, RedisTimeoutError, OSError):
            fresh = False
        if not fresh:
            self._kept.disconnect()
            self._kept.connect()
        return self._kept


def _answers(connection: Any, count: int) -> list[Any]:
    answers: list[Any] = []
    try:
        while len(answers) < count:
            try:
                answers.append(connection.read_response())
            except ResponseError as error:
                answers.append(error)  # an answer like any other
    except BaseException as error:
        connection.disconnect()  # an answer may still come, and the next call must not take it for its own
        if not answers or not isinstance(error, RedisError):
            raise
        answers += [error] * (count - len(answers))
    return answers
