"""RQ's own client. It shares nothing with the broker's: RQ's keys may be on another server.

RQ's keys only show what happens, and nobody is to wait for them. So each command is sent once, and waits briefly: a
server that accepts connections and says nothing would hold up a command with RQ's own patience for half a minute.
"""

from __future__ import annotations

from typing import Any

import redis
from redis.connection import UnixDomainSocketConnection
from rq.connections import get_connection_kwargs

from oarlock.broker.connection.client import KEEPALIVE, no_retry, pool_of
from oarlock.broker.connection.named import driver
from oarlock.broker.connection.redis_url import BadRedisUrl, Kind, RedisUrl, parse
from oarlock.workers.process.settings import Settings

WAIT_S = 1.0
"""For each of: to connect, to be greeted, to be answered."""
_OPTIONS: dict[str, Any] = {"protocol": 2, "decode_responses": False, "health_check_interval": 0}
_PATIENCE: dict[str, Any] = {"socket_timeout": WAIT_S, "socket_connect_timeout": WAIT_S, "retry": no_retry()}


def rq_url(settings: Settings) -> RedisUrl:
    """Where RQ's keys are: ``rq_redis_url``, else the broker's. Raises BadRedisUrl."""
    if settings.rq_redis_url:
        try:
            url = parse(settings.rq_redis_url)
        except BadRedisUrl as error:
            raise BadRedisUrl(str(error).replace("--redis ", "--rq-redis ", 1)) from None
    else:
        url = parse(settings.redis_url)
    if url.kind is Kind.CLUSTER:
        raise BadRedisUrl(
            f"RQ cannot keep its keys in a cluster ({url.place}), they are in many slots: name another Redis for them"
            " with --rq-redis redis://user:password@host:6379/0"
        )
    return url


def open_rq_client(settings: Settings, wait_s: float = WAIT_S) -> redis.Redis:
    """A client for RQ's keys. Raises BadRedisUrl."""
    pool = pool_of(rq_url(settings), timeout_s=wait_s, retry=no_retry(), any_master=True, tls=settings.redis_tls)
    return redis.Redis(connection_pool=pool)


def with_our_options(client: redis.Redis) -> redis.Redis:
    """A client of the same server as ``client``, which RQ's command line made, but with our options."""
    pool = client.connection_pool
    if type(pool) is not redis.ConnectionPool:  # of a Sentinel: it knows best where to connect
        pool.disconnect()
        pool.connection_kwargs |= _PATIENCE | {"driver_info": driver()}
        return client
    options = get_connection_kwargs(client) | _OPTIONS | _PATIENCE | {"driver_info": driver()}
    if not issubclass(pool.connection_class, UnixDomainSocketConnection):
        options |= KEEPALIVE
    return redis.Redis(connection_pool=redis.ConnectionPool(connection_class=pool.connection_class, **options))
