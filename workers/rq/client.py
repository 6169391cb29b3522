"""RQ's own client. It shares nothing with the broker's: a command of RQ may be retried, a script must not.

Its timeouts are short: RQ's keys only show what happens, and no worker should wait for them while it holds keys.
"""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry
from rq.connections import get_connection_kwargs

from oarlock.broker.connection.client import pool_of
from oarlock.broker.connection.redis_url import BadRedisUrl, Kind, RedisUrl, parse
from oarlock.workers.process.settings import Settings

_OPTIONS: dict[str, Any] = {
    "protocol": 2,
    "decode_responses": False,
    "socket_timeout": 5.0,
    "socket_connect_timeout": 5.0,
    "health_check_interval": 0,
}


def _retry() -> Retry:
    return Retry(ExponentialBackoff(cap=0.5, base=0.05), 2)


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


def open_rq_client(settings: Settings, timeout_s: float = 5.0) -> redis.Redis:
    """A client for RQ's keys. Raises BadRedisUrl."""
    pool = pool_of(rq_url(settings), timeout_s=timeout_s, retry=_retry(), tls=settings.redis_tls)
    return redis.Redis(connection_pool=pool)


def with_our_options(client: redis.Redis) -> redis.Redis:
    """A client of the same server as ``client``, which RQ's command line made, but with our options."""
    pool = client.connection_pool
    if type(pool) is not redis.ConnectionPool:  # of a Sentinel or a cluster: it knows best how to connect
        return client
    options = get_connection_kwargs(client) | _OPTIONS | {"retry": _retry()}
    return redis.Redis(connection_pool=redis.ConnectionPool(connection_class=pool.connection_class, **options))
