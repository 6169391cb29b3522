"""The two workers that benchmarks.keyed_queue compares: ours, and RQ with a lock a key, as it is made by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import redis
from rq import Queue, get_current_job
from rq.registry import FinishedJobRegistry

from oarlock.queue import Context, KeyedQueue
from oarlock.workers.process.death_signal import command_dying_with_this_process

NAME = "keyed-bench"
RESULT_TTL_S = 500
_ROOT = Path(__file__).parents[1]


def nothing(key: str, ctx: Context) -> None:
    """What runs for a key."""


def locked(key: str) -> None:
    """The same by hand: a job that holds its key's lock while it does nothing."""
    job = get_current_job()
    assert job is not None
    with job.connection.lock(f"lock:{key}", timeout=30):
        pass


def start_ours(url: str) -> subprocess.Popen[bytes]:
    """One thread, until the queue is empty."""
    return _start([sys.executable, "-m", "benchmarks.keyed_queue_peer", url])


def start_rq(url: str) -> subprocess.Popen[bytes]:
    """RQ's own command line, in burst mode, saying nothing."""
    command = [sys.executable, "-m", "rq.cli", "worker", "--url", url, "--burst", "--quiet"]
    return _start([*command, "--worker-class", "rq.worker.SimpleWorker", NAME])


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command_dying_with_this_process(command), cwd=_ROOT)


class RqSide:
    """RQ's queue, filled with jobs one by one, as a web request does it."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._queue = Queue(NAME, connection=client)
        self._finished = FinishedJobRegistry(NAME, connection=client).key

    def add(self, key: str) -> None:
        self._queue.enqueue(locked, key, result_ttl=RESULT_TTL_S)

    def left(self) -> int:
        """Jobs not yet begun."""
        return int(self._client.llen(self._queue.key))

    def done(self) -> int:
        """Jobs that ended well."""
        return int(self._client.zcard(self._finished))


if __name__ == "__main__":
    KeyedQueue(NAME, sys.argv[1]).run(nothing, burst=True)
