"""RQ's death penalty, cheap enough for turns of a tenth of a millisecond: one alarm watches over all of them."""

from __future__ import annotations

import signal
from types import FrameType
from typing import ClassVar

from rq.timeouts import UnixSignalDeathPenalty

from oarlock.workers.process.clock import Clock, SystemClock


class TurnLimit(UnixSignalDeathPenalty):  # type: ignore[misc]
    """Behaves as its parent; call ``install`` first, on the main thread of the process that uses it.

    A turn asks the system for nothing as long as an alarm of an earlier turn is set: that comes no later than its own
    would, and is then set again for what is left. To set an alarm and take it back took a fifth of a worker's CPU time.
    An alarm that comes while no turn is under way is ignored; the parent would restore the default, which is death.
    """

    _clock: ClassVar[Clock] = SystemClock()
    _armed: ClassVar[TurnLimit | None] = None
    _alarm_ms: ClassVar[int] = 0
    """When the alarm comes, by the clock; 0: none is set."""
    _until_ms = 0

    @classmethod
    def install(cls, clock: Clock) -> None:
        """Take SIGALRM for the life of the process."""
        signal.signal(signal.SIGALRM, cls._on_alarm)
        cls._clock, cls._armed, cls._alarm_ms = clock, None, 0

    @classmethod
    def _on_alarm(cls, signum: int, frame: FrameType | None) -> None:
        cls._alarm_ms = 0
        armed = cls._armed
        if armed is None:
            return
        now_ms = cls._clock.mono_ms()
        if now_ms < armed._until_ms:
            cls._set_alarm(now_ms, armed._until_ms)
        else:
            armed.handle_death_penalty(signum, frame)

    @classmethod
    def _set_alarm(cls, now_ms: int, at_ms: int) -> None:
        cls._alarm_ms = at_ms
        signal.setitimer(signal.ITIMER_REAL, (at_ms - now_ms) / 1_000)

    def setup_death_penalty(self) -> None:
        """The turn begins."""
        now_ms = self._clock.mono_ms()
        self._until_ms = now_ms + self._timeout * 1_000
        TurnLimit._armed = self
        if not now_ms <= TurnLimit._alarm_ms <= self._until_ms:
            self._set_alarm(now_ms, self._until_ms)

    def cancel_death_penalty(self) -> None:
        """It is over. The alarm stays set for the next."""
        TurnLimit._armed = None
