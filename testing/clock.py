"""The one clock of a cluster in a test: it goes with the machine's, and can be moved forward.

Moved is what objects are stamped with and decided by: the API server's, the simulated nodes', the controllers' and the
queue's time. Not moved is what this process counts for itself: leases of locks and deadlines of requests.
"""

from __future__ import annotations

import time

from oarlock.workers.process.clock import SystemClock


class MovableClock(SystemClock):
    """``workers.process.clock.Clock``, and the same time in the units of the sandbox. ``mono_ms`` is never moved."""

    def __init__(self) -> None:
        self.moved_ms = 0

    def move(self, by_ms: int) -> None:
        """Forward only."""
        if by_ms < 0:
            raise ValueError(f"{by_ms} ms: time only goes forward")
        self.moved_ms += by_ms

    def wall_ms(self) -> int:
        return super().wall_ms() + self.moved_ms

    def unix_s(self) -> float:
        """The time of day."""
        return time.time() + self.moved_ms / 1000

    def timers_s(self) -> float:
        """Seconds that never go back, for the simulated nodes' delays."""
        return time.monotonic() + self.moved_ms / 1000
