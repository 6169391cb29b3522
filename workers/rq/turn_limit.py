"""RQ's death penalty, cheap enough for turns of half a millisecond: the handler is installed once for all turns."""

from __future__ import annotations

import signal
from types import FrameType
from typing import ClassVar

from rq.timeouts import UnixSignalDeathPenalty


class TurnLimit(UnixSignalDeathPenalty):  # type: ignore[misc]
    """Behaves as its parent; call ``install`` first, on the main thread of the process that uses it.

    An alarm that comes after the turn has ended is ignored. The parent would restore the default, which is death.
    """

    _armed: ClassVar[TurnLimit | None] = None

    @classmethod
    def install(cls) -> None:
        """Take SIGALRM for the life of the process."""
        signal.signal(signal.SIGALRM, cls._on_alarm)

    @classmethod
    def _on_alarm(cls, signum: int, frame: FrameType | None) -> None:
        if cls._armed is not None:
            cls._armed.handle_death_penalty(signum, frame)

    def setup_death_penalty(self) -> None:
        """Set the alarm."""
        TurnLimit._armed = self
        signal.alarm(self._timeout)

    def cancel_death_penalty(self) -> None:
        """Turn it off."""
        TurnLimit._armed = None
        signal.alarm(0)
