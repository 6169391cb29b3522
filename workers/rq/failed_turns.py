"""Keys whose turns keep failing, in RQ's failed-job registry: seen there with a traceback, asked for again from there.

Level-triggered work has no failed jobs: a failing key is retried for ever. But people look into the registry, so a key
enters it after some failed turns in a row, and leaves it after a successful turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import redis
from rq.job import JobStatus
from rq.registry import FailedJobRegistry
from rq.results import get_key as results_key
from rq.utils import now

from oarlock.workers.process.log_line import line
from oarlock.workers.rq.job import KeyJob, NotAKey, key_of, shard_of_job
from oarlock.workers.rq.queue import KeyQueue

log = logging.getLogger("oarlock.worker")

KEPT_S = 7 * 24 * 3600
SWEPT_AT_ONCE = 32


class FailedTurns:
    """Our only writer to the registry, which shows and decides nothing. Every method may raise RedisError."""

    def __init__(self, connection: redis.Redis, worker_name: str, shard: str = "0", shards: int = 1) -> None:
        self._connection, self._worker_name = connection, worker_name
        self._shard, self._shards = shard, shards
        self._next: dict[str, int] = {}

    def add(self, job: KeyJob, exc_string: str) -> None:
        """Enter a key, or renew its entry with the latest traceback."""
        job.worker_name, job.ended_at, job.failure_ttl = self._worker_name, now(), KEPT_S
        job._status = JobStatus.FAILED
        with self._connection.pipeline() as pipe:
            job._handle_failure(exc_string, pipe, worker_name=self._worker_name)
            pipe.execute()

    def sweep(self, queue: KeyQueue, failures_of: Callable[[str, str], int]) -> int:
        """Take out keys that have had a successful turn since; a part of the registry each call. Returns how many.

        ``failures_of(queue, key)``: failed turns in a row, as the broker counts them. So a successful turn, which any
        worker may have run, spends nothing on the registry.
        """
        registry = FailedJobRegistry.key_template.format(queue.name)
        start = self._next.get(queue.name, 0)
        found = self._connection.zrange(registry, start, start + SWEPT_AT_ONCE - 1)
        ids = [each.decode(errors="replace") for each in found if isinstance(each, bytes)]
        self._next[queue.name] = start + SWEPT_AT_ONCE if len(ids) == SWEPT_AT_ONCE else 0
        if not ids:
            return 0
        with self._connection.pipeline(transaction=False) as pipe:
            for identifier in ids:
                pipe.hget(KeyJob.key_for(identifier), "data")
            stored = pipe.execute(raise_on_error=False)
        healed = []
        for identifier, data in zip(ids, stored, strict=True):
            try:
                key = key_of(queue.name, identifier, data if isinstance(data, bytes) else b"")
            except NotAKey:
                continue  # not ours to take out
            if shard_of_job(identifier, key, self._shards) != self._shard:
                continue  # its shard counts its failures
            if failures_of(queue.name, key) == 0:
                healed.append((identifier, key))
        with self._connection.pipeline() as pipe:
            for identifier, key in healed:
                pipe.zrem(registry, identifier)
                pipe.delete(KeyJob.key_for(identifier), results_key(identifier))
                log.info(line("healed", queue=queue.name, key=key))
            pipe.execute()
        return len(healed)
