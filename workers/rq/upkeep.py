"""What RQ does every ten minutes for its registries, without reading a job: nothing that lies in Redis is run here."""

from __future__ import annotations

from rq import worker_registration
from rq.registry import FailedJobRegistry, StartedJobRegistry
from rq.utils import current_timestamp, now
from rq.worker import BaseWorker

from oarlock.workers.rq.queue import KeyQueue


def clean_up(worker: BaseWorker) -> None:
    """Drop what has expired from the registries, and workers that are gone. One worker a queue at a time."""
    for queue in worker.queues:
        if not queue.acquire_maintenance_lock():
            continue
        try:
            for registry in (FailedJobRegistry, StartedJobRegistry):
                worker.connection.zremrangebyscore(registry.key_template.format(queue.name), 0, current_timestamp())
            worker_registration.clean_worker_registry(queue)
        finally:
            queue.release_maintenance_lock()
    worker.last_cleaned_at = now()


def enter_again(worker: BaseWorker) -> None:
    """RQ's keys were lost under a living worker: enter it once more."""
    with worker.connection.pipeline() as pipe:
        pipe.hset(worker.key, mapping=worker.serialize())
        worker_registration.register(worker, pipe)
        pipe.sadd(KeyQueue.redis_queues_keys, *worker.queue_keys())
        pipe.execute()
