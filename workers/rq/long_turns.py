"""Shows turns that take long as RQ jobs in work, so that people see them and `stop-job` finds them.

Most turns are over in milliseconds and leave no trace in RQ. One that lasts longer than a second gets its job stored,
its worker's ``current_job`` set and its heartbeat kept, by a thread: the main thread is busy with turns. RQ knows of
one job a worker: the turn that was begun first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import redis
from rq.job import JobStatus
from rq.utils import now, utcformat

from oarlock.workers.process.clock import Clock
from oarlock.workers.rq.job import KeyJob, job_id
from oarlock.workers.turn.engine.waiting_turns import UnderWay

SHOWN_AFTER_MS = 1_000
LOOK_EVERY_S = 0.5
JOB_TTL_S = 90
"""A job left by a worker that was killed vanishes after this."""


class LongTurns:
    """The main thread reports which turns are under way. A write that fails does no harm."""

    def __init__(
        self,
        connection: redis.Redis,
        worker_name: str,
        worker_key: str,
        worker_ttl_s: int,
        clock: Clock,
        told: Callable[[Callable[[], Any]], bool],
        shard: str = "0",
    ) -> None:
        """``told``: calls what tells RQ something, unless RQ is silent; whether it was told."""
        self._connection, self._clock, self._told, self._shard = connection, clock, told, shard
        self._worker_name, self._worker_key, self._worker_ttl_s = worker_name, worker_key, worker_ttl_s
        self._under_way: dict[UnderWay, None] = {}
        self._showing: UnderWay | None = None
        self._shown = self._made_job = False
        """Of what is shown: whether RQ was told, and whether the job is ours."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="long-turns", daemon=True)

    def start(self) -> None:
        """Begin to watch. After the last fork."""
        self._thread.start()

    def stop(self) -> None:
        """End the watching."""
        self._stopped.set()

    @property
    def current(self) -> UnderWay | None:
        """The turn that was begun first. Any thread may ask: the copy is made in one step."""
        return next(iter(list(self._under_way)), None)

    def begin(self, turn: UnderWay) -> None:
        """A turn begins. Costs one assignment."""
        self._under_way[turn] = None

    def end(self, turn: UnderWay) -> None:
        """The turn is over; its job is removed before anything else is written about its key.

        Usually without a lock: the thread sets ``_showing`` before it looks whether the turn is still under way, and
        here the order is the reverse.
        """
        del self._under_way[turn]
        if self._showing is turn:
            with self._lock:
                self._hide()

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            self._look()

    def _look(self) -> None:
        turn = self.current
        if turn is None or self._clock.mono_ms() - turn.begun_ms < SHOWN_AFTER_MS:
            return
        with self._lock:
            if self._showing is not turn:
                self._showing, self._shown, self._made_job = turn, False, False
            if turn in self._under_way:
                self._shown = self._told(partial(self._show, turn)) or self._shown

    def _show(self, turn: UnderWay) -> None:
        identifier = job_id(turn.claim.queue, turn.claim.key, self._shard)
        with self._connection.pipeline() as pipe:
            if not self._shown:
                self._made_job = self._made_job or not self._connection.exists(KeyJob.key_for(identifier))
                job = KeyJob.of(turn.claim.queue, turn.claim.key, self._connection, self._shard)
                job.worker_name, job.started_at, job._status = self._worker_name, now(), JobStatus.STARTED
                if self._made_job:
                    job.save(pipe, include_meta=False, include_result=False)
                else:  # it is in the failed registry: that entry is kept as it is
                    pipe.hset(job.key, "worker_name", self._worker_name)
                pipe.hset(self._worker_key, "current_job", identifier)
            if self._made_job:
                pipe.expire(KeyJob.key_for(identifier), JOB_TTL_S)
            pipe.hset(self._worker_key, "last_heartbeat", utcformat(now()))
            pipe.expire(self._worker_key, self._worker_ttl_s)
            pipe.execute()

    def _hide(self) -> None:
        shown, self._showing = self._showing, None
        if shown is not None:
            self._told(partial(self._take_back, shown))

    def _take_back(self, shown: UnderWay) -> None:
        with self._connection.pipeline() as pipe:
            pipe.hdel(self._worker_key, "current_job")
            if self._made_job:
                pipe.delete(KeyJob.key_for(job_id(shown.claim.queue, shown.claim.key, self._shard)))
            pipe.execute()
