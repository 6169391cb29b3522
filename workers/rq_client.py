"""RQ's own client. It shares nothing with the broker's: RQ may be asked twice, a script must not.

Short timeouts, because RQ's keys only show what happens: nothing waits for them while keys are held.
"""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry
from rq.connections import get_connection_kwargs

from workers.settings import Settings

_MANNERS: dict[str, Any] = {
    "protocol": 2,
    "decode_responses": False,
    "socket_timeout": 5.0,
    "socket_connect_timeout": 5.0,
    "health_check_interval": 0,
}


def _retry() -> Retry:
    return Retry(ExponentialBackoff(cap=0.5, base=0.05), 2)


def open_rq_client(settings: Settings, timeout_s: float = 5.0) -> redis.Redis:
    """A client for RQ's keys: the server of ``rq_redis_url``, else the broker's."""
    manners = _MANNERS | {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s}
    url = settings.rq_redis_url or settings.redis_url
    return redis.Redis.from_url(url, retry=_retry(), **manners)


def with_manners(client: redis.Redis) -> redis.Redis:
    """The same server as ``client``, which RQ's command line made, asked the way we ask."""
    pool = client.connection_pool
    if type(pool) is not redis.ConnectionPool:  # of a Sentinel or a cluster: it knows best how to connect
        return client
    options = get_connection_kwargs(client) | _MANNERS | {"retry": _retry()}
    return redis.Redis(connection_pool=redis.ConnectionPool(connection_class=pool.connection_class, **options))
