"""What a supervisor does for its workers in the broker, on a thread: renews leases and queues the keys that are due."""

from __future__ import annotations

import contextlib
import logging
import select
import socket

from oarlock.broker.values.errors import EpochOver
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.log_line import line
from oarlock.workers.supervisor.lease_manager import LeaseManager

log = logging.getLogger("oarlock.fleet")


class LeaseThread:
    """For one holder."""

    def __init__(self, leases: LeaseManager, clock: Clock, holder: str) -> None:
        self._leases, self._clock, self._holder = leases, clock, holder
        self._ours, self._theirs = socket.socketpair()
        self._stopping = False

    def stop(self) -> None:
        self._stopping = True
        self.wake()

    def wake(self) -> None:
        """Renew and look for due keys now."""
        with contextlib.suppress(OSError):  # it has ended, with its epoch
            self._theirs.send(b"w")

    def run(self) -> None:
        """Until stopped, or until the epoch is over."""
        try:
            while not self._stopping:
                self._round()
        except EpochOver as over:
            log.warning(line("epoch_over", reason=over))
        finally:
            self._leases.close()
            self._ours.close()
            self._theirs.close()

    def _round(self) -> None:
        leases = self._leases
        leases.run_due([self._holder])
        watched = [self._ours, *([leases.timer_socket] if leases.timer_socket is not None else [])]
        pause_ms = max(0, leases.next_ms() - self._clock.mono_ms())
        ready, _, _ = select.select(watched, [], [], min(pause_ms, 60_000) / 1000)
        if self._ours in ready:
            self._ours.recv(4096)
            leases.renew_now()
        if leases.timer_socket in ready:
            leases.timer_ready()
