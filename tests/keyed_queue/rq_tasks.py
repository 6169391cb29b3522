"""A user's module of tasks, as RQ workers import it."""

from __future__ import annotations

import os

import redis

from oarlock.queue import Context, KeyedQueue

REDIS_URL = os.environ.get("QUEUE_TEST_REDIS", "memory://")
DONE = "theirs:done"

queue = KeyedQueue("rq.invoices", REDIS_URL)


@queue.worker(lease_s=3, threads=2)
def sync(key: str, ctx: Context) -> None:
    redis.Redis.from_url(REDIS_URL).hincrby(DONE, key)


def other(key: str, ctx: Context) -> None:
    """No worker."""
