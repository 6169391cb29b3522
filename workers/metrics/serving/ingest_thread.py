"""Serves the metrics and health of an ingestor from a thread of its own.

The main thread only notes the time of its last round, so a slow client delays nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from concurrent.futures import Future

from oarlock.workers.counters.table import Row, own_row
from oarlock.workers.ingest.ingestor import Ingestor
from oarlock.workers.metrics.count_samples import host_label
from oarlock.workers.metrics.latest import open_latest
from oarlock.workers.metrics.serving.bind_address import url
from oarlock.workers.metrics.serving.endpoints import Endpoints
from oarlock.workers.metrics.serving.http_server import HttpServer
from oarlock.workers.metrics.serving.ingestor_view import IngestorView
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings

POKE_S = 1.0

log = logging.getLogger("oarlock.metrics")


class IngestMetrics:
    """``row`` is counted in, whether it is served or not; without a socket nothing is served."""

    def __init__(self, listening: socket.socket | None, settings: Settings, clock: Clock) -> None:
        self._listening, self._settings, self._clock = listening, settings, clock
        self.row: Row = own_row()
        self._io_heard_ms = clock.mono_ms()
        self.tick(clock.mono_ms())

    def tick(self, now_ms: int) -> None:
        """The main thread has come round."""
        self.row.ints[self.row.layout.tick_ms] = now_ms

    def start(self, ingestor: Ingestor, io: IoLoop) -> None:
        """Begin to serve, until the process ends."""
        if self._listening is None:
            return
        log.info(line("metrics", url=url(self._listening)))
        serve = self._serve(self._listening, ingestor, io)
        threading.Thread(target=asyncio.run, args=(serve,), name="metrics", daemon=True).start()

    async def _serve(self, listening: socket.socket, ingestor: Ingestor, io: IoLoop) -> None:
        mono_ms = self._clock.mono_ms
        view = IngestorView(
            ingestor, self.row, host_label(self._settings), mono_ms, lambda: max(0, mono_ms() - self._io_heard_ms)
        )
        endpoints = Endpoints(open_latest(self._settings), view.put, view.alive, view.ready)
        await asyncio.gather(HttpServer(listening, endpoints).serve(), self._poke(io))

    async def _poke(self, io: IoLoop) -> None:
        """Give the I/O loop something to do, to see whether it lives."""
        said: Future[None] | None = None
        while True:
            if said is None or said.done():
                try:
                    said = io.submit(self._heard())
                except RuntimeError:
                    return  # closed: the process is about to end
            await asyncio.sleep(POKE_S)

    async def _heard(self) -> None:
        self._io_heard_ms = self._clock.mono_ms()
