"""The public name of the worker: ``rq worker --worker-class oarlock.workers.rq_worker.FleetWorker replicaset``."""

from __future__ import annotations

from typing import Any

from oarlock.workers.process.exit_code import ExitCode
from oarlock.workers.rq.worker import KeyWorker
from oarlock.workers.supervisor.watchdog import Kept, take_seat

__all__ = ["FleetWorker"]


class FleetWorker(KeyWorker):
    """A worker that RQ's own command line starts. Without a supervisor to watch it, it forks a process that does."""

    _kept: Kept | None = None

    def work(self, *args: Any, **options: Any) -> bool:
        """As its parent's. Exits with ``exit_code`` where it could not go on: no supervisor reads it otherwise."""
        if self.seat is None:
            self._kept = take_seat(self.settings, self.name, self.queue_names(), self.connection, self._clock)
            self.seat = self._kept.seat
        worked = super().work(*args, **options)
        if self._kept and self.exit_code:
            raise SystemExit(int(self.exit_code))
        return worked

    def _look_around(self, shown: str) -> None:
        super()._look_around(shown)
        if self._kept and not self._kept.keeper_lives():
            self._leave(ExitCode.UNKEPT, "the keeper is gone")
