"""Keys run by plain `rq worker` processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import product

import pytest
import redis
from rq import Queue, SimpleWorker
from rq.job import Job, JobStatus, validate_job_id
from rq.registry import FailedJobRegistry, StartedJobRegistry

from oarlock.queue import KeyedQueue, rq_jobs
from oarlock.workers.process.death_signal import command_dying_with_this_process
from tests import ROOT
from tests.keyed_queue import rq_tasks
from tests.keyed_queue.test_kills import await_that

NAME = "rq.invoices"


@pytest.fixture
def queue(url: str, monkeypatch: pytest.MonkeyPatch) -> KeyedQueue:
    """Of this test's server; the user's module has it too."""
    made = KeyedQueue(NAME, url)
    monkeypatch.setattr(rq_tasks.sync, "queue", made)
    monkeypatch.setattr(rq_tasks, "REDIS_URL", url)
    made._worker = rq_tasks.sync
    return made


def start(url: str, worker_class: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rq.cli", "worker", "--url", url, "--quiet", "--worker-class", worker_class, "low"]
    return subprocess.Popen(
        command_dying_with_this_process(command), cwd=ROOT, env={**os.environ, "QUEUE_TEST_REDIS": url}
    )


@pytest.mark.real
@pytest.mark.parametrize("worker_class", ["rq.worker.Worker", "rq.worker.SimpleWorker"])
def test_plain_rq_workers_run_the_keys(url: str, queue: KeyedQueue, worker_class: str) -> None:
    theirs = redis.Redis.from_url(url)
    rq_queue = Queue("low", connection=theirs)
    assert queue.enqueue_workers(rq_queue, 2) == 2
    assert queue.enqueue_workers(rq_queue, 2) == 0, "both are there"
    assert url.rpartition("@")[0] not in str(theirs.hgetall(f"rq:job:{rq_jobs.job_id(NAME, 0)}")), "no password"
    queue.add("a", "b")
    workers = [start(url, worker_class) for _ in range(2)]
    try:
        await_that(lambda: theirs.hlen(rq_tasks.DONE) == 2, "a and b are done")
        queue.add("a", "c")
        await_that(lambda: theirs.hgetall(rq_tasks.DONE) == {b"a": b"2", b"b": b"1", b"c": b"1"}, "a again, and c")
        await_that(lambda: StartedJobRegistry(queue=rq_queue).count == 2, "both are at work")
        for each in workers:
            each.send_signal(signal.SIGTERM)
        for each in workers:
            assert each.wait(20) == 0, "a warm shutdown does not wait for the minute to end"
    finally:
        for each in workers:
            each.kill()
            each.wait()
    assert [job.get_status() for job in rq_queue.jobs] == [JobStatus.QUEUED] * 2, "each stands in line again"


def test_no_two_queues_share_a_job() -> None:
    names = ["".join(letters) for length in range(1, 6) for letters in product("a0_.-", repeat=length)]
    identifiers = {rq_jobs.job_id(name, number) for name in names for number in (0, 1)}
    assert len(identifiers) == 2 * len(names)
    for each in identifiers:
        validate_job_id(each)
    assert rq_jobs.job_id("eu_invoices", 0) == "oarlock-queue-eu_invoices-0", "those of plain names stay"


def test_a_job_is_not_ended_by_a_redis_that_does_not_answer() -> None:
    job = Job(id="a", connection=redis.Redis(port=1))
    job.worker_name = "w"
    assert not rq_jobs.asked_to_stop(job)()


def run_once(url: str, rq_queue: Queue) -> None:
    SimpleWorker([rq_queue], connection=redis.Redis.from_url(url)).work(burst=True, max_jobs=1, logging_level="ERROR")


@pytest.mark.real
def test_a_minute_that_ends_stands_in_line_again(url: str, queue: KeyedQueue) -> None:
    rq_queue = Queue("low", connection=redis.Redis.from_url(url))
    queue.enqueue_workers(rq_queue, 1, for_s=0.01)
    rq_queue.enqueue(len, "another job", job_id="another")
    queue.add("a")
    run_once(url, rq_queue)
    assert rq_queue.job_ids == ["another", rq_jobs.job_id(NAME, 0)], "behind the other jobs"


@pytest.mark.real
def test_a_job_that_cannot_run_ends_among_the_failed(
    url: str, queue: KeyedQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rq_jobs, "RETRIES", 1)
    rq_queue = Queue("low", connection=redis.Redis.from_url(url))
    queue.enqueue_workers(rq_queue, 1)
    monkeypatch.setattr(rq_tasks, "sync", None)
    for _ in range(2):
        run_once(url, rq_queue)
    assert FailedJobRegistry(queue=rq_queue).get_job_ids() == [rq_jobs.job_id(NAME, 0)]
    job = Job.fetch(rq_jobs.job_id(NAME, 0), connection=rq_queue.connection)
    assert "no function with @queue.worker" in str(job.latest_result().exc_string)
    assert queue.enqueue_workers(rq_queue, 1) == 1, "and is enqueued anew"


@pytest.mark.parametrize(
    "path", ["os:system", "tests.keyed_queue.rq_tasks:other", "tests.keyed_queue.rq_tasks:nothing"]
)
def test_only_a_worker_of_ours_can_be_named(path: str) -> None:
    with pytest.raises(LookupError, match="no function with @queue"):
        rq_jobs.find(path)


@pytest.mark.parametrize(
    "call",
    [
        lambda queue, rq_queue: queue.enqueue_workers(rq_queue, 0),
        lambda queue, rq_queue: queue.enqueue_workers(rq_queue, 1, for_s=0),
        lambda queue, rq_queue: queue.worker()(lambda key, ctx: None) and queue.enqueue_workers(rq_queue, 1),
        lambda queue, rq_queue: KeyedQueue("q", "memory://").enqueue_workers(rq_queue, 1),
    ],
    ids=["none", "no time", "not importable", "no function"],
)
def test_bad_input(call: Callable[[KeyedQueue, Queue], object]) -> None:
    queue = KeyedQueue("q", "memory://")
    queue._worker = rq_tasks.sync
    with pytest.raises(ValueError):
        call(queue, Queue("low", connection=redis.Redis(port=1)))
