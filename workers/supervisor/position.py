"""A position of the fleet: the place of one worker process, which the next one takes after its end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from oarlock.workers.counters.table import Row, own_row
from oarlock.workers.counters.turn_slots import TurnSlot
from oarlock.workers.epoch.identity import Identity
from oarlock.workers.process.child import AT_ONCE_THEN_SLOWER, BackOff, Child
from oarlock.workers.process.exit_code import NO_BLAME
from oarlock.workers.process.fork import fork_process
from oarlock.workers.process.log_line import line
from oarlock.workers.supervisor.standstill import Standstill

log = logging.getLogger("oarlock.fleet")

BACK_OFF = BackOff(early_ms=2_000, pauses_ms=AT_ONCE_THEN_SLOWER)
PAUSE_PROVEN_MS = 100
"""At most so long after a worker that had worked: it was killed, or its key killed it, and such keys are parked."""

RunWorker = Callable[[Identity], int]
"""The life of a worker process, after the fork; returns its exit code."""


class Death(NamedTuple):
    """The end of a worker process. ``blamed``: the key that was worked on, where the end may be its fault; else ""."""

    holder: str
    pid: int
    code: int
    killed: bool
    blamed: str


class Position(Child):
    """``queues``: what its workers take keys of. ``slot`` and ``counts``: the memory they share with the supervisor."""

    def __init__(self, slot: TurnSlot, counts: Row | None = None, queues: tuple[str, ...] = ()) -> None:
        super().__init__("", BACK_OFF)
        self.slot, self.counts, self.queues = slot, counts or own_row(), queues
        self.standstill = Standstill()

    def fork(self, identity: Identity, run_worker: RunWorker, now_ms: int) -> None:
        """Start a worker. Raises OSError."""
        self.name = identity.holder
        self.start(lambda: fork_process(identity.holder, lambda: run_worker(identity)), now_ms)

    def death(self, now_ms: int) -> Death | None:
        """The end of its worker, returned once. The next one is due at once, but later where workers die early."""
        pid = self.pid
        code = self.ended(now_ms)
        if code is None:
            return None
        blamed = "" if self.killed or code in NO_BLAME else self.slot.read().task
        if self.slot.proven:
            self.start_at_ms = min(self.start_at_ms, now_ms + PAUSE_PROVEN_MS)
        self.slot.reset()
        return Death(self.name, pid, code, bool(self.killed), blamed)

    def kill(self, reason: str) -> None:
        """SIGKILL, once, and a line that says why."""
        if self.process is not None and not self.killed:
            log.warning(line("kill", worker=self.name, pid=self.pid, reason=reason))
        super().kill(reason)
