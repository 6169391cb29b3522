"""RQ's death penalty, cheap enough for turns of a tenth of a millisecond: one alarm watches over all of them."""

from __future__ import annotations

import signal
from types import FrameType
from typing import ClassVar

from rq.timeouts import UnixSignalDeathPenalty

from oarlock.workers.process.clock import Clock, SystemClock


class _Alarm:
    """The only one of the process. It is no part of the class below: a class that is written to is slow to read from.
    ``at_ms``: when it comes, by the clock; 0: none is set. ``armed``: for the turn under way.
    """

    def __init__(self) -> None:
        self.clock: Clock = SystemClock()
        self.at_ms = 0
        self.armed: TurnLimit | None = None

    def set(self, now_ms: int, at_ms: int) -> None:
        self.at_ms = at_ms
        signal.setitimer(signal.ITIMER_REAL, (at_ms - now_ms) / 1_000)


class TurnLimit(UnixSignalDeathPenalty):  # type: ignore[misc]
    """Behaves as its parent; call ``install`` first, on the main thread of the process that uses it.

    A turn asks the system for nothing as long as an alarm of an earlier turn is set: that comes no later than its own
    would, and is then set again for what is left. To set an alarm and take it back took a fifth of a worker's CPU time.
    An alarm that comes while no turn is under way is ignored; the parent would restore the default, which is death.
    """

    _alarm: ClassVar[_Alarm] = _Alarm()
    _until_ms = 0

    @classmethod
    def install(cls, clock: Clock) -> None:
        """Take SIGALRM for the life of the process."""
        signal.signal(signal.SIGALRM, cls._on_alarm)
        cls._alarm.clock, cls._alarm.armed, cls._alarm.at_ms = clock, None, 0

    @classmethod
    def _on_alarm(cls, signum: int, frame: FrameType | None) -> None:
        alarm = cls._alarm
        alarm.at_ms, armed = 0, alarm.armed
        if armed is None:
            return
        now_ms = alarm.clock.mono_ms()
        if now_ms < armed._until_ms:
            alarm.set(now_ms, armed._until_ms)
        else:
            armed.handle_death_penalty(signum, frame)

    def setup_death_penalty(self) -> None:
        """The turn begins."""
        alarm = self._alarm
        now_ms = alarm.clock.mono_ms()
        self._until_ms = now_ms + self._timeout * 1_000
        alarm.armed = self
        if not now_ms <= alarm.at_ms <= self._until_ms:
            alarm.set(now_ms, self._until_ms)

    def cancel_death_penalty(self) -> None:
        """It is over. The alarm stays set for the next."""
        self._alarm.armed = None
