"""A worker that RQ's own command line starts: without a supervisor, it forks a watchdog, and ends when that is gone."""

from __future__ import annotations

import sys
from typing import Any

from oarlock.workers.process.exit_code import ExitCode
from oarlock.workers.rq.worker import KeyWorker
from oarlock.workers.supervisor.watchdog import Watched, start_watchdog

ONLY_BUILTIN = "RQ's own command runs the built-in controllers only; use `oarlock worker --operator`, or leave it out"


class FleetWorker(KeyWorker):
    """A worker that RQ's own command line starts. Without a supervisor to watch it, it forks a watchdog."""

    _watched: Watched | None = None

    def work(self, *args: Any, **options: Any) -> bool:
        """As its parent's. Exits with ``exit_code`` where it could not go on: no supervisor reads it otherwise."""
        if self.identity is None:
            if self.settings.operator:
                print(f"oarlock: OARLOCK_OPERATOR={self.settings.operator}: {ONLY_BUILTIN}", file=sys.stderr)
                raise SystemExit(2)
            self._watched = start_watchdog(self.settings, self.name, self.queue_names(), self.connection, self._clock)
            self.identity = self._watched.identity
        worked = super().work(*args, **options)
        if self._watched and self.exit_code:
            raise SystemExit(int(self.exit_code))
        return worked

    def _look_around(self, shown: str) -> None:
        super()._look_around(shown)
        if self._watched and not self._watched.watchdog_lives():
            self._leave(ExitCode.UNWATCHED, "the watchdog is gone")
