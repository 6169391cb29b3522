"""Takes workers that were killed out of RQ's lists, which otherwise show them until their heartbeat expires."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import redis
from redis.exceptions import RedisError
from rq.utils import now, utcformat
from rq.worker import BaseWorker
from rq.worker_registration import REDIS_WORKER_KEYS, WORKERS_BY_QUEUE_KEY

from oarlock.workers.process.log_line import line

log = logging.getLogger("oarlock.fleet")

PAUSE_MS, PAUSE_AFTER_ERROR_MS = 1_000, 10_000
TIMEOUT_S = 0.5
"""For the client of a supervisor, which has more urgent things to do than to wait."""


class DeadWorkers:
    """Of a supervisor, or of a watchdog. RQ's server may be another than ours: a failure is logged and tried again."""

    def __init__(self, client: redis.Redis, queues: Sequence[str]) -> None:
        self._client, self._queues = client, queues
        self._dead: set[str] = set()
        self._at_ms = 0

    def add(self, name: str) -> None:
        """A worker of this RQ name died without saying so."""
        self._dead.add(name)

    def remove_some(self, now_ms: int) -> None:
        """At most once a second, and only if there is something to do."""
        if self._dead and now_ms >= self._at_ms:
            self._at_ms = now_ms + (PAUSE_MS if self.remove() else PAUSE_AFTER_ERROR_MS)

    def remove(self) -> bool:
        """Do it now. Whether RQ's server answered."""
        if not self._dead:
            return True
        keys = [BaseWorker.redis_worker_namespace_prefix + name for name in sorted(self._dead)]
        try:
            with self._client.pipeline(transaction=False) as pipe:
                for registry in (REDIS_WORKER_KEYS, *(WORKERS_BY_QUEUE_KEY % queue for queue in self._queues)):
                    pipe.srem(registry, *keys)
                for key in keys:
                    pipe.hset(key, "death", utcformat(now()))
                    pipe.expire(key, 60)
                pipe.execute()
        except RedisError as error:
            log.warning(line("rq_silent", error=error))
            return False
        self._dead.clear()
        return True
