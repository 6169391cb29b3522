"""The process that answers scrapers and probes for a supervisor.

The supervisor has one thread and must reap dead workers within milliseconds, so it answers no requests itself. It forks
this process, which has the listening socket and reads the figures from the table they share. A slow scraper, or the
death of this process, delays no worker and loses no figure: it is forked again. As another process, it can also report
that the supervisor hangs.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
from collections.abc import Collection

from oarlock.workers.counters.table import Table
from oarlock.workers.metrics.serving.bind_address import url
from oarlock.workers.process.child import BackOff, Child
from oarlock.workers.process.fork import Forked, fork_process
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings

log = logging.getLogger("oarlock.metrics")

BACK_OFF = BackOff(early_ms=0, pauses_ms=(1_000,))


class MetricsProcess:
    """``keep`` it running, ``end`` it last. Without a socket there is none."""

    def __init__(self, listening: socket.socket | None, table: Table, settings: Settings) -> None:
        self._listening, self._table, self._settings = listening, table, settings
        self._child = Child("metrics", BACK_OFF)

    def keep(self, now_ms: int) -> None:
        """Fork it if it does not run. Main thread, as for any fork."""
        if self._listening is None:
            return
        pid = self._child.pid
        if self._child.ended(now_ms) is not None:
            log.warning(line("metrics_ended", pid=pid))
        if self._child.is_due(now_ms):
            try:
                self._child.start(self._fork, now_ms)
            except OSError as error:  # the workers go on, but nobody can ask for their metrics
                if self._child.is_news(error):
                    log.warning(line("metrics_not_started", reason=error))
                return
            log.info(line("metrics", url=url(self._listening), pid=self._child.pid))

    def end(self) -> None:
        """It holds nothing, so it is killed."""
        if pid := self._child.pid:
            self._child.send(signal.SIGKILL)
            os.waitpid(pid, 0)

    def _fork(self) -> Forked:
        supervisor_pid = os.getpid()
        # It answers until its supervisor has ended.
        return fork_process("metrics", lambda: self._live(supervisor_pid), ignored=(signal.SIGTERM, signal.SIGINT))

    def _live(self, supervisor_pid: int) -> int:
        assert self._listening is not None
        gc.collect()  # forgotten sockets are closed now, before another descriptor gets their number
        gc.freeze()
        close_others({0, 1, 2, self._listening.fileno()})
        from oarlock.workers.metrics.serving.supervisor_view import serve  # noqa: PLC0415  # the supervisor needs none of it

        asyncio.run(serve(self._listening, self._table, supervisor_pid, self._settings))
        return 0


def close_others(kept: Collection[int]) -> None:
    """Close every descriptor but these. An inherited connection would stay open for the server at its other end: a
    blocking call that the supervisor has given up would go on there, and take what it waited for.
    """
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass  # of the listing itself
