"""RQ as it comes, for comparison: its SimpleWorker, a job that does nothing, results kept 500 s (RQ's default)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import redis
from rq import Queue
from rq.registry import FinishedJobRegistry

from oarlock.workers.process.death_signal import command_dying_with_this_process

QUEUE = "rq-noop"
RESULT_TTL_S = 500
_ROOT = Path(__file__).parents[1]


def noop() -> None:
    """The job."""


def fill(client: redis.Redis, jobs: int) -> None:
    """Empty the queue of an earlier run and put ``jobs`` jobs into it."""
    for name in client.scan_iter(match="rq:job:*", count=1_000):
        client.unlink(name)
    for name in client.scan_iter(match=f"rq:*:{QUEUE}*", count=1_000):
        client.unlink(name)
    queue = Queue(QUEUE, connection=client)
    prepared = [Queue.prepare_data(noop, result_ttl=RESULT_TTL_S) for _ in range(jobs)]
    for at in range(0, jobs, 500):
        queue.enqueue_many(prepared[at : at + 500])


def start_worker(url: str) -> subprocess.Popen[bytes]:
    """RQ's own command line, in burst mode, saying nothing; it ends when the queue is empty."""
    command = [sys.executable, "-m", "rq.cli", "worker", "--url", url, "--burst", "--quiet"]
    command += ["--worker-class", "rq.worker.SimpleWorker", QUEUE]
    return subprocess.Popen(command_dying_with_this_process(command), cwd=_ROOT)


class Backlog:
    """How far an RQ worker is."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._queue = Queue(QUEUE, connection=client)
        self._finished = FinishedJobRegistry(QUEUE, connection=client).key

    def left(self) -> int:
        """Jobs not yet begun."""
        return int(self._client.llen(self._queue.key))

    def done(self) -> int:
        """Jobs that ended well."""
        return int(self._client.zcard(self._finished))
