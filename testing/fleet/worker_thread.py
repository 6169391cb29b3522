"""A worker as a thread: claims keys and runs their turns until it is stopped or its epoch is over.

The turns, their engine and their runner are those of ``workers.rq.worker.KeyWorker``. RQ's shell is left out: it shows
a worker to RQ's tools, and takes a process's signals.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection

from rq.timeouts import BaseDeathPenalty

from oarlock.broker.protocol import Broker
from oarlock.broker.values.claims import Batch, Idle
from oarlock.broker.values.errors import BrokerBusy, BrokerFull, EpochOver
from oarlock.cluster.access.config import ClusterConfig
from oarlock.workers.counters.table import own_row
from oarlock.workers.counters.turn_counts import TurnCounts
from oarlock.workers.counters.turn_slots import TurnSlots
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.kinds import enabled_queues
from oarlock.workers.process.log_line import discreet, line
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.api import KubeApi
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.engine.runner import Ended, TurnRunner
from oarlock.workers.turn.engine.waiting_turns import UnderWay

WAIT_S = 0.25
"""Until an idle worker looks whether it is to stop."""
PAUSE_S = 0.05

log = logging.getLogger("oarlock.worker")


class NoLimit(BaseDeathPenalty):  # type: ignore[misc]
    """A turn that computes for ever is not interrupted: only a main thread can be. One that waits is ended as ever."""

    def setup_death_penalty(self) -> None:
        """Nothing."""

    def cancel_death_penalty(self) -> None:
        """Nothing."""


class NotShown:
    """Turns are shown to nobody."""

    def begin(self, turn: UnderWay) -> None:
        """Nothing."""

    def end(self, turn: UnderWay) -> None:
        """Nothing."""


class _Stopped(Exception):
    """Turns under way go on no more."""


class WorkerThread:
    """``holder``: registered, never used before. Raises nothing on its thread but bugs."""

    def __init__(
        self, broker: Broker, config: ClusterConfig, settings: Settings, clock: Clock, io: IoLoop, holder: str
    ) -> None:
        self._holder, self._settings, self._stopping = holder, settings, threading.Event()
        queues = enabled_queues(settings.controllers)
        self._engine = Engine(
            broker,
            KubeApi(config, settings, io=io, clock_ns=lambda: clock.wall_ms() * 1_000_000),
            settings,
            clock,
            queues,
        )
        slot, counts = TurnSlots(1)[0], TurnCounts(own_row())
        self._runner = TurnRunner(self._engine, slot, NotShown(), counts, settings, clock, NoLimit, _finished)

    @property
    def queues(self) -> tuple[str, ...]:
        return self._engine.queues

    def stop(self) -> None:
        """Take no more keys."""
        self._stopping.set()

    def run(self) -> None:
        """Until stopped, or until the epoch is over."""
        try:
            while not self._stopping.is_set():
                self._work()
        except _Stopped:
            pass
        except EpochOver as over:
            log.warning(line("epoch_over", worker=self._holder, reason=over))
        finally:
            self._engine.close()

    def _work(self) -> None:
        try:
            reply = self._engine.claim(self._holder, self._settings.batch_keys)
            if isinstance(reply, Batch):
                self._runner.run(reply, self._more)
            elif reply is Idle.EMPTY:
                self._engine.wait(WAIT_S)
            elif reply is Idle.DRAIN:
                self._stopping.set()
            else:
                self._stopping.wait(PAUSE_S)
        except (BrokerBusy, BrokerFull):  # nothing was taken
            self._stopping.wait(PAUSE_S)

    def _more(self, keys_max: int, but: Collection[str], crowded: Collection[str]) -> Batch | Idle:
        """Further keys beside turns that wait for long. Raises _Stopped: a function may take longer than a test."""
        if self._stopping.is_set():
            raise _Stopped
        try:
            return self._engine.claim(self._holder, keys_max, but=but, beside=crowded)
        except (BrokerBusy, BrokerFull):
            return Idle.WAIT  # nothing was taken; the turns under way go on


def _finished(turn: Ended, in_a_row: int) -> None:
    if turn.failure is not None:
        finish = turn.finish
        log.warning(line("turn_failed", queue=finish.queue, key=finish.key, reason=discreet(turn.failure)))
