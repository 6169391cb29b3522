"""Celery as its guide to optimizing has it for short tasks: results ignored, a large prefetch, the solo pool."""

from celery import Celery

from benchmarks.peers.counted import count_of_this_worker, redis_url

app = Celery("bench", broker=redis_url())
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=128, worker_hijack_root_logger=False)
_count = count_of_this_worker()


@app.task
def noop() -> None:
    _count.add()


def fill(jobs: int) -> None:
    for _ in range(jobs):
        noop.delay()
