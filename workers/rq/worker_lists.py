"""RQ's lists of workers, kept true: killed workers are taken out, living ones entered again, expired entries dropped.

Nothing here reads a job, so nothing that lies in Redis is ever run.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import redis
from redis.exceptions import RedisError
from rq import worker_registration
from rq.registry import FailedJobRegistry, StartedJobRegistry
from rq.utils import current_timestamp, now, utcformat
from rq.worker import BaseWorker
from rq.worker_registration import REDIS_WORKER_KEYS, WORKERS_BY_QUEUE_KEY

from oarlock.workers.process.log_line import line
from oarlock.workers.rq.queue import KeyQueue

log = logging.getLogger("oarlock.fleet")

PAUSE_MS, PAUSE_AFTER_ERROR_MS = 1_000, 30_000
SUPERVISOR_WAITS_S = 0.5
"""Of a supervisor's client: while it waits, it gives no dead worker's keys back."""


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


def clean_up(worker: BaseWorker) -> None:
    """What RQ does every ten minutes: drop expired entries and workers that are gone. One worker a queue at a time."""
    for queue in worker.queues:
        if not queue.acquire_maintenance_lock():
            continue
        try:
            for registry in (FailedJobRegistry, StartedJobRegistry):
                worker.connection.zremrangebyscore(registry.key_template.format(queue.name), 0, current_timestamp())
            worker_registration.clean_worker_registry(queue)
        finally:
            queue.release_maintenance_lock()


def enter_again(worker: BaseWorker) -> None:
    """A living worker of which RQ does not know, or of whose name it knows an earlier one."""
    with worker.connection.pipeline() as pipe:
        pipe.hdel(worker.key, "death")
        pipe.hset(worker.key, mapping=worker.serialize())
        worker_registration.register(worker, pipe)
        pipe.sadd(KeyQueue.redis_queues_keys, *worker.queue_keys())
        pipe.execute()
