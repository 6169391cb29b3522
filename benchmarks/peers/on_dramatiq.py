"""Dramatiq with its Redis broker and its usual middleware: messages are acknowledged after the job."""

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers.counted import count_of_this_worker, redis_url

dramatiq.set_broker(RedisBroker(url=redis_url()))
_count = count_of_this_worker()


@dramatiq.actor
def noop() -> None:
    _count.add()


def fill(jobs: int) -> None:
    for _ in range(jobs):
        noop.send()
