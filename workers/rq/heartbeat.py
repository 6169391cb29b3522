"""One pipeline a second between a worker and RQ's keys: what RQ does around every job, once for hundreds of turns.

It sends heartbeat, state and counters; it reads `rq suspend`, the requests that people made through RQ, and whether
anything is in the failed-job registries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import redis
from rq.registry import FailedJobRegistry
from rq.suspension import WORKERS_SUSPENDED
from rq.utils import now, utcformat

from oarlock.workers.rq.queue import KeyQueue
from oarlock.workers.rq.requests import READ_AT_ONCE


@dataclass(slots=True)
class Tally:
    """What was done since the last heartbeat; working time in seconds."""

    succeeded: int = 0
    failed: int = 0
    worked_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Heard:
    """``known``: RQ knows the worker. ``requests``: job ids on each queue's list; ``failing``: registry sizes."""

    known: bool
    suspended: bool
    requests: dict[str, list[bytes]] = field(default_factory=dict)
    failing: dict[str, int] = field(default_factory=dict)


class Heartbeat:
    """A worker's exchange with RQ's keys. Raises RedisError; then the tally is kept for the next heartbeat."""

    def __init__(self, connection: redis.Redis, worker_key: str, ttl_s: int, queues: Sequence[KeyQueue]) -> None:
        self._connection, self._key, self._ttl_s, self._queues = connection, worker_key, ttl_s, queues
        self.tally = Tally()
        self.facts: dict[str, str] = {}
        """Fields of the worker's hash to be written with the next heartbeat."""

    def beat(self, state: str) -> Heard:
        """Send and read everything in one round trip."""
        tally, facts = self.tally, dict(self.facts)
        with self._connection.pipeline(transaction=False) as pipe:
            pipe.exists(self._key)
            pipe.exists(WORKERS_SUSPENDED)
            for queue in self._queues:
                pipe.lrange(queue.key, 0, READ_AT_ONCE - 1)
                pipe.zcard(FailedJobRegistry.key_template.format(queue.name))
            fields: dict[Any, Any] = {"last_heartbeat": utcformat(now()), "state": state, **facts}
            pipe.hset(self._key, mapping=fields)
            pipe.expire(self._key, self._ttl_s)
            if tally.succeeded:
                pipe.hincrby(self._key, "successful_job_count", tally.succeeded)
            if tally.failed:
                pipe.hincrby(self._key, "failed_job_count", tally.failed)
            if tally.worked_s:
                pipe.hincrbyfloat(self._key, "total_working_time", tally.worked_s)
            answers: list[Any] = pipe.execute()
        self.tally = Tally()
        for name in facts:  # a signal handler may have noted others meanwhile
            del self.facts[name]
        names = [queue.name for queue in self._queues]
        return Heard(
            known=bool(answers[0]),
            suspended=bool(answers[1]),
            requests={name: ids for name, ids in zip(names, answers[2::2], strict=False) if ids},
            failing={name: size for name, size in zip(names, answers[3::2], strict=False) if size},
        )
