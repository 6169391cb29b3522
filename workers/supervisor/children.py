"""The supervisor's worker processes: forking one, noticing its end, and when to try again."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

from oarlock.workers.counters.table import Row, own_row
from oarlock.workers.epoch.identity import Seat
from oarlock.workers.process.fork import fork_process
from oarlock.workers.process.log_line import line
from oarlock.workers.process.turn_slots import TurnSlot

log = logging.getLogger("oarlock.fleet")

QUICK_DEATH_MS = 2_000
BACK_OFF_FIRST_MS, BACK_OFF_MAX_MS = 100, 5_000
BACK_OFF_PROVEN_MS = 100
"""At most so long after a worker that had worked: it was killed, or its key killed it, and such keys are parked."""

RunChild = Callable[[Seat], int]
"""The life of a worker process, after the fork; returns its exit code."""


@dataclass(slots=True)
class Child:
    """A living worker process. ``killed``: why its supervisor ended it, else ""."""

    holder: str
    pid: int
    started_ms: int
    killed: str = ""

    def kill(self, reason: str) -> None:
        """SIGKILL, once. It is not reaped yet, so the pid is still its own."""
        if not self.killed:
            self.killed = reason
            log.warning(line("kill", worker=self.holder, pid=self.pid, reason=reason))
            os.kill(self.pid, signal.SIGKILL)

    def ask_to_leave(self) -> None:
        """SIGTERM: finish the batch, then go."""
        os.kill(self.pid, signal.SIGTERM)

    def ended(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None


class Berth:
    """One of the fleet's places: who is in it, when it may be filled again, what it serves, its shared memory."""

    def __init__(self, slot: TurnSlot, counts: Row | None = None, queues: tuple[str, ...] = ()) -> None:
        self.slot, self.counts, self.queues = slot, counts or own_row(), queues
        self.child: Child | None = None
        self.fill_at_ms = 0
        self._quick_deaths = 0

    def vacate(self, now_ms: int) -> None:
        """Its child is gone: again at once, but slower and slower where children die within two seconds."""
        assert self.child is not None
        lived_ms, proven = now_ms - self.child.started_ms, self.slot.proven
        self.child = None
        self.slot.reset()
        self._quick_deaths = self._quick_deaths + 1 if lived_ms < QUICK_DEATH_MS else 0
        self.fill_at_ms = now_ms + back_off_ms(self._quick_deaths, proven)


def back_off_ms(quick_deaths: int, proven: bool) -> int:
    """0, 0, 100, 200, 400 ... 5000; for workers that had worked no more than 100."""
    if quick_deaths < 2:
        return 0
    return min(BACK_OFF_PROVEN_MS if proven else BACK_OFF_MAX_MS, BACK_OFF_FIRST_MS << min(quick_deaths - 2, 10))


def fork_child(seat: Seat, run_child: RunChild, now_ms: int) -> Child:
    """Fork a worker, see ``fork_process``."""
    return Child(seat.holder, fork_process(seat.holder, lambda: run_child(seat)), now_ms)
