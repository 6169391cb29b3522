"""The process that answers scrapers and probes for a supervisor.

The supervisor has one thread and must reap the dead within milliseconds, so it talks to nobody itself: it forks this
one, which shares its table and has the listening socket. Whoever makes this one slow, or kills it, delays nothing; it
is forked again, and no figure was its own. And as it is another process, it can say that the supervisor hangs.
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
from oarlock.workers.process.bind_address import url
from oarlock.workers.process.clock import SystemClock
from oarlock.workers.process.fork import fork_process
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings

log = logging.getLogger("oarlock.metrics")

AGAIN_MS = 1_000


class Sibling:
    """``keep`` it now and then; ``end`` it last. Without a socket there is none."""

    def __init__(self, listening: socket.socket | None, table: Table, settings: Settings) -> None:
        self._listening, self._table, self._settings = listening, table, settings
        self._pid = self._due_ms = 0

    def keep(self, now_ms: int) -> None:
        """Fork it if it does not run. Main thread, as for any fork."""
        if self._listening is None:
            return
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            log.warning(line("metrics_ended", pid=self._pid))
            self._pid, self._due_ms = 0, now_ms + AGAIN_MS
        if not self._pid and now_ms >= self._due_ms:
            supervisor_pid = os.getpid()
            try:
                self._pid = fork_process("metrics", lambda: self._live(supervisor_pid))
            except OSError as error:  # no more processes, or no memory: workers do their work unseen
                log.warning(line("metrics_not_started", reason=error))
                self._due_ms = now_ms + AGAIN_MS
                return
            log.info(line("metrics", url=url(self._listening), pid=self._pid))

    def end(self) -> None:
        """It holds nothing."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0

    def _live(self, supervisor_pid: int) -> int:
        assert self._listening is not None
        for signum in (signal.SIGTERM, signal.SIGINT):  # it answers until its supervisor has gone
            signal.signal(signum, signal.SIG_IGN)
        gc.collect()  # what still wants to be closed is closed now, before its number is somebody else's
        gc.freeze()
        close_others({0, 1, 2, self._listening.fileno()})
        asyncio.run(self._serve(self._listening, supervisor_pid))
        return 0

    async def _serve(self, listening: socket.socket, supervisor_pid: int) -> None:
        from oarlock.workers.metrics.looking_in import open_latest  # noqa: PLC0415
        from oarlock.workers.metrics.server_name import host_label  # noqa: PLC0415
        from oarlock.workers.metrics.serving.endpoints import Endpoints  # noqa: PLC0415  # the supervisor needs none of it
        from oarlock.workers.metrics.serving.http_server import HttpServer  # noqa: PLC0415
        from oarlock.workers.metrics.serving.supervisor_view import SupervisorView  # noqa: PLC0415

        view = SupervisorView(self._table, supervisor_pid, host_label(self._settings), SystemClock().mono_ms)
        await HttpServer(listening, Endpoints(open_latest(self._settings), view.put, view.alive, view.ready)).serve()


def close_others(kept: Collection[int]) -> None:
    """Close every descriptor but these. What a fork inherits stays open for the server at its other end: a blocking
    call that the supervisor gave up would go on, and swallow what it waited for.
    """
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass  # of the listing itself
