"""The metrics and health checks of an ingestor, read in the metrics thread.

The thread reads what the main thread writes, one whole value at a time, and changes nothing.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable

from oarlock.workers.counters.table import Row, total
from oarlock.workers.epoch.fleet_lease import OPEN
from oarlock.workers.ingest.ingestor import DEAF_MS, Ingestor
from oarlock.workers.ingest.reflector import FOLLOWING
from oarlock.workers.metrics.count_samples import GC_NAMES, CountSamples
from oarlock.workers.metrics.latest import Look, put_look
from oarlock.workers.metrics.process_figures import ProcessSamples, put_build
from oarlock.workers.metrics.samples import Samples
from oarlock.workers.metrics.serving.endpoints import epoch_open, redis_answers, ticking
from oarlock.workers.metrics.serving.health import Check

TICK_LIMIT_MS = 60_000
"""A round of the main thread may take many calls to a Redis that answers slowly, each with its timeout."""
IO_LIMIT_MS = 30_000
STANDINGS = {"bootstrapper": "bootstrapper", "minter": "bootstrapper", "member": "member", "away": "away"}
"""Label to standing; `minter` is the old label of `bootstrapper`, kept for one release."""


class IngestorView:
    """``row``: what it counts, its ticks among it. ``io_age_ms``: since the I/O loop last came round."""

    def __init__(
        self, ingestor: Ingestor, row: Row, host: str, mono_ms: Callable[[], int], io_age_ms: Callable[[], int]
    ) -> None:
        self._ingestor, self._row, self._host = ingestor, row, host
        self._mono_ms, self._io_age_ms = mono_ms, io_age_ms
        self._process = ProcessSamples(os.getpid())

    def put(self, samples: Samples, look: Look) -> None:
        """Add every sample of the ingestor."""
        put_look(samples, look)
        ints, sums = total([self._row], self._row.layout)
        CountSamples(samples, self._row.layout, ints, sums).put_requests(self._host)
        for generation, facts in enumerate(gc.get_stats()):
            for fact, name in GC_NAMES.items():
                samples.put(name, facts[fact], str(generation))
        samples.put("oarlock_tick_age_seconds", self._tick_age_ms() / 1_000)
        self._put_reflectors(samples)
        self._process.put(samples)
        put_build(samples, "ingestor")

    def alive(self) -> dict[str, Check]:
        """Fail only where a new process would help."""
        return {"ingestor": ticking(self._tick_age_ms, TICK_LIMIT_MS), "io": ticking(self._io_age_ms, IO_LIMIT_MS)}

    def ready(self, look: Look) -> dict[str, Check]:
        """Whether what happens in the cluster reaches the queues."""
        return {
            **self.alive(),
            "redis": redis_answers(look),
            "epoch": epoch_open(look),
            "joined": self._joined,
            "watch": self._hears,
        }

    def _tick_age_ms(self) -> int:
        return max(0, self._mono_ms() - self._row.ints[self._row.layout.tick_ms])

    def _joined(self) -> str:
        status = self._ingestor.status(self._mono_ms())
        return "" if status.epoch and status.phase == OPEN else "it is in no open epoch"

    def _hears(self) -> str:
        reflectors = self._ingestor.status(self._mono_ms()).reflectors
        deaf = [name for name, reflector in reflectors.items() if not 0 <= reflector.heard_ms <= DEAF_MS]
        return f"nothing heard of {', '.join(deaf)} within {DEAF_MS // 1_000} s" if deaf else ""

    def _put_reflectors(self, samples: Samples) -> None:
        status = self._ingestor.status(self._mono_ms())
        for label, standing in STANDINGS.items():
            samples.put("oarlock_ingestor_standing", int(status.standing == standing), label)
        for name, reflector in status.reflectors.items():
            age_s = reflector.heard_ms / 1_000 if reflector.heard_ms >= 0 else -1
            samples.put("oarlock_watch_heard_age_seconds", age_s, name)
            for metric in ("oarlock_reflector_watching", "oarlock_feed_watching"):  # the old name for one release
                samples.put(metric, int(reflector.state in FOLLOWING), name)
            samples.put("oarlock_lists_total", reflector.lists, name)
            for result in ("applied", "skipped", "unreadable"):
                samples.put("oarlock_watch_events_total", getattr(reflector, result), name, result)
