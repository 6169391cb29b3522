"""Keys run by plain ``rq worker`` processes: an RQ job that is a consumer for a while.

The job names its worker as RQ names a function, by module and name. What is found there has to be a ``Worker`` of
ours, which brings its own connection: so no URL and no password lies in the job, and no other function can be named.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module

from redis.exceptions import RedisError
from rq import Queue, Repeat, Retry, get_current_job
from rq.exceptions import NoSuchJobError
from rq.job import Job, JobStatus

from oarlock.queue.worker import Worker

log = logging.getLogger("oarlock.queue")

REPEATS = 1_000_000_000
"""RQ counts down; at one a minute that is for ever."""
RETRIES = 1_000
"""Killed RQ workers, and errors outside the keys, until the job ends among RQ's failed ones."""
_ALIVE = (JobStatus.QUEUED, JobStatus.STARTED, JobStatus.SCHEDULED, JobStatus.DEFERRED)


def enqueue(worker: Worker, rq_queue: Queue, workers: int, for_s: float) -> int:
    """Enqueue the jobs 0 to ``workers`` - 1 that RQ does not have. Returns how many."""
    if workers < 1 or for_s <= 0:
        raise ValueError(f"{workers!r} workers for {for_s!r} s: give at least 1, and seconds above 0")
    path, enqueued = worker.path(), 0
    for number in range(workers):
        identifier = job_id(worker.queue.name, number)
        try:
            alive = Job.fetch(identifier, connection=rq_queue.connection).get_status() in _ALIVE
        except NoSuchJobError:
            alive = False
        if not alive:
            rq_queue.enqueue(
                consume,
                path,
                for_s,
                job_id=identifier,
                description=f"oarlock.queue: keys of {worker.queue.name}",
                job_timeout=-1,
                retry=Retry(max=RETRIES),
                repeat=Repeat(times=REPEATS),
            )
            enqueued += 1
    return enqueued


def job_id(queue: str, number: int) -> str:
    """RQ allows letters, digits, _ and - only. A name with dots is escaped, under a prefix that no other name has: two
    queues never share a job.
    """
    if "." not in queue:
        return f"oarlock-queue-{queue}-{number}"
    return f"oarlock-queue_{queue.replace('_', '__').replace('.', '_-')}-{number}"


def consume(path: str, for_s: float) -> int:
    """The RQ job. It ends early once its RQ worker is asked to stop. Returns how many runs ended."""
    return find(path).run(for_s=for_s, should_stop=asked_to_stop(get_current_job()), own_signals=False)


def find(path: str) -> Worker:
    """The worker at ``module:name``. Raises LookupError for anything else."""
    module, _, name = path.partition(":")
    found = getattr(import_module(module), name, None)
    if not isinstance(found, Worker):
        raise LookupError(f"{path} is no function with @queue.worker(...)")
    return found


def asked_to_stop(job: Job | None) -> Callable[[], bool]:
    """Whether the RQ worker around ``job`` has been asked to stop: RQ writes that into the worker's hash. While Redis
    does not answer, the job goes on: it ends after its ``for_s`` at the latest.
    """
    if job is None or not job.worker_name:
        return lambda: False
    key, connection = f"rq:worker:{job.worker_name}", job.connection

    def asked() -> bool:
        try:
            return connection.hget(key, "shutdown_requested_date") is not None
        except RedisError as error:
            log.warning("cannot ask RQ whether to stop: %s", error)
            return False

    return asked
