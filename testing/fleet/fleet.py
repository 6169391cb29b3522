"""The fleet of a cluster in a test: an ingestor and one worker, each on a thread of this process."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Protocol

from oarlock.broker.epoch import Seen
from oarlock.cluster.access.config import ClusterConfig
from oarlock.testing.clock import MovableClock
from oarlock.testing.fleet.data import FleetData
from oarlock.testing.fleet.ingest_thread import IngestThread
from oarlock.testing.fleet.lease_thread import LeaseThread
from oarlock.testing.fleet.worker_thread import WorkerThread
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.settings import Settings
from oarlock.workers.supervisor.lease_manager import LeaseManager

STOP_LIMIT_S = 5.0


class FleetFailed(Exception):
    """The controllers did not start, or have ended; the text is one line with the reason."""


class Part(Protocol):
    """What runs on a thread until it is stopped."""

    def run(self) -> None: ...
    def stop(self) -> None: ...


class Fleet:
    """``start``, then ``stop``. Its threads are daemons: a test process that is killed leaves nothing behind."""

    def __init__(
        self, config: ClusterConfig, data: FleetData, settings: Settings, clock: MovableClock, io: IoLoop
    ) -> None:
        self._config, self._data, self._settings, self._clock, self._io = config, data, settings, clock, io
        self._opened = threading.Event()
        self._threads: list[tuple[Part, threading.Thread]] = []
        self._leases: LeaseThread | None = None
        self.failure: BaseException | None = None
        """What ended one of its threads."""

    def start(self, limit_s: float) -> None:
        """Until turns begin. Raises FleetFailed."""
        ingest = IngestThread(self._data.epochs, self._config, self._settings, self._clock, self._io, self._open)
        self._run("ingestor", ingest)
        if not self._opened.wait(limit_s) or self.failure is not None:
            why = self.failure or f"no epoch was open within {limit_s:g} s"
            self.stop()
            raise FleetFailed(f"the controllers did not start: {why}")

    def stop(self) -> None:
        """End all threads: first the one that could start others."""
        for part, _ in self._threads:
            part.stop()
        self._data.end_waits()
        for _, thread in self._threads:
            thread.join(STOP_LIMIT_S)
        self._threads = []

    def time_moved(self) -> None:
        """Have every key looked at whose time has come."""
        self._data.time_moved()
        if self._leases is not None:
            self._leases.wake()

    def _run(self, name: str, part: Part) -> None:
        thread = threading.Thread(target=self._watched, args=(part.run,), name=f"oarlock {name}", daemon=True)
        self._threads.append((part, thread))
        thread.start()

    def _watched(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:
            self.failure = error
            self._opened.set()
            raise

    def _open(self, epoch: int) -> None:
        """On the ingestor's thread. A worker and a lease manager of an earlier epoch have ended by themselves."""
        seen = self._data.epochs.look()
        if seen.epoch == epoch:
            self._begin(seen)
            self._opened.set()

    def _begin(self, seen: Seen) -> None:
        holder = f"w-{secrets.token_hex(4)}"
        worker = WorkerThread(
            self._data.worker_broker(seen), self._config, self._settings, self._clock, self._io, holder
        )
        broker, timer = self._data.lease_broker(seen)
        leases = LeaseManager(broker, timer, self._settings, self._clock)
        leases.register(holder, "in-process", worker.queues)
        self._leases = LeaseThread(leases, self._clock, holder)
        self._run("leases", self._leases)
        self._run("worker", worker)
