"""The clock of a process. Everything else is given the time by its caller."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """``mono_ms`` only moves forward, through suspends too; ``wall_ms`` is for timestamps, never for deadlines."""

    def mono_ms(self) -> int: ...

    def wall_ms(self) -> int: ...


class SystemClock:
    """CLOCK_BOOTTIME (a host that slept has used up its leases) and the wall clock."""

    def mono_ms(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
