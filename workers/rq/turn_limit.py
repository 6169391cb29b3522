"""RQ's death penalty for turns of half a millisecond: its handler is put in place once, a turn only sets the alarm."""

from __future__ import annotations

import signal
from types import FrameType
from typing import ClassVar

from rq.timeouts import UnixSignalDeathPenalty


class TurnLimit(UnixSignalDeathPenalty):  # type: ignore[misc]
    """As its parent in all that is seen; ``install`` comes first, on the main thread of the process that uses it.

    A stroke that comes after the turn is over hits nobody, where the parent would leave the signal's default: death.
    """

    _struck: ClassVar[TurnLimit | None] = None

    @classmethod
    def install(cls) -> None:
        """Take SIGALRM for the life of the process."""
        signal.signal(signal.SIGALRM, cls._strike)

    @classmethod
    def _strike(cls, signum: int, frame: FrameType | None) -> None:
        if cls._struck is not None:
            cls._struck.handle_death_penalty(signum, frame)

    def setup_death_penalty(self) -> None:
        """Set the alarm."""
        TurnLimit._struck = self
        signal.alarm(self._timeout)

    def cancel_death_penalty(self) -> None:
        """Turn it off."""
        TurnLimit._struck = None
        signal.alarm(0)
