"""The metrics and health checks of a supervisor and its workers, read from the table they share.

Another process reads it, so it needs nothing of the supervisor but the shared memory and its pid.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

from oarlock.workers.counters.table import Table
from oarlock.workers.metrics.count_samples import CountSamples, host_label
from oarlock.workers.metrics.latest import Look, open_latest, put_look
from oarlock.workers.metrics.process_figures import ProcessSamples, put_build
from oarlock.workers.metrics.samples import Samples
from oarlock.workers.metrics.serving.endpoints import Endpoints, epoch_open, redis_answers, ticking
from oarlock.workers.metrics.serving.health import Check
from oarlock.workers.metrics.serving.http_server import HttpServer
from oarlock.workers.process.clock import SystemClock
from oarlock.workers.process.settings import Settings

TICK_LIMIT_MS = 20_000
"""A supervisor comes round every second; where Redis is silent, a round may take some timeouts of a second."""


class SupervisorView:
    """``mono_ms``: CLOCK_BOOTTIME. ``host``: of the API server. ``supervisor_pid``: whose children the workers are."""

    def __init__(self, table: Table, supervisor_pid: int, host: str, mono_ms: Callable[[], int]) -> None:
        self._table, self._host, self._mono_ms = table, host, mono_ms
        self._positions, self._own = table.rows[:-1], table.rows[-1]
        self._process = ProcessSamples(supervisor_pid)

    def put(self, samples: Samples, look: Look) -> None:
        """Add every sample of the supervisor and its workers."""
        ints, sums = self._table.totals()
        counts = CountSamples(samples, self._table.layout, ints, sums, self._table.exemplars)
        put_look(samples, look)
        counts.put_queues()
        self._put_running(samples)
        counts.put_requests(self._host)
        counts.put_supervision()
        counts.put_gc()
        pids = self._pids()
        samples.put("oarlock_workers_running", len(pids))
        samples.put("oarlock_tick_age_seconds", self._tick_age_ms() / 1_000)
        self._process.put(samples, [*pids, os.getpid()])
        put_build(samples, "worker")

    def alive(self) -> dict[str, Check]:
        """Fail only where a new process would help."""
        return {"supervisor": ticking(self._tick_age_ms, TICK_LIMIT_MS)}

    def ready(self, look: Look) -> dict[str, Check]:
        """Whether keys are worked on."""
        return {
            **self.alive(),
            "shutdown": self._not_leaving,
            "redis": redis_answers(look),
            "epoch": epoch_open(look),
            "workers": lambda: "" if self._pids() else "no worker process runs",
        }

    def _not_leaving(self) -> str:
        return "it was asked to stop" if self._own.ints[self._table.layout.leaving] else ""

    def _pids(self) -> list[int]:
        return [pid for row in self._positions if (pid := row.ints[self._table.layout.pid])]

    def _tick_age_ms(self) -> int:
        return max(0, self._mono_ms() - self._own.ints[self._table.layout.tick_ms])

    def _put_running(self, samples: Samples) -> None:
        layout = self._table.layout
        queues = list(layout.queues)
        longest, together = dict.fromkeys(queues, 0.0), dict.fromkeys(queues, 0.0)
        now_ns = time.perf_counter_ns()  # CLOCK_MONOTONIC: the same in every process
        for row in self._positions:
            since_ns, queue = row.ints[layout.turn_since_ns], queues[row.ints[layout.turn_queue]]
            begun_us, turns = divmod(row.ints[layout.turns_under_way], 256)
            if since_ns:
                longest[queue] = max(longest[queue], (now_ns - since_ns) / 1e9)
            together[queue] += max(0, turns * now_ns // 1_000 - begun_us) / 1e6
        for queue in queues:
            samples.put("workqueue_unfinished_work_seconds", together[queue], queue)
            samples.put("workqueue_longest_running_processor_seconds", longest[queue], queue)


async def serve(listening: socket.socket, table: Table, supervisor_pid: int, settings: Settings) -> None:
    """Answer scrapers and probes for a supervisor, until the process ends."""
    view = SupervisorView(table, supervisor_pid, host_label(settings), SystemClock().mono_ms)
    await HttpServer(listening, Endpoints(open_latest(settings), view.put, view.alive, view.ready)).serve()
