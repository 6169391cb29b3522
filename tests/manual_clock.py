"""A process's clock (``workers.process.clock.Clock``) for tests and simulations."""

from __future__ import annotations


class ManualClock:
    """A clock that tests and simulations move by hand."""

    def __init__(self, wall_ms: int = 1_800_000_000_000) -> None:
        self._mono_ms, self._wall_ms = 1_000_000, wall_ms

    def mono_ms(self) -> int:
        return self._mono_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def advance(self, by_ms: int) -> None:
        """Move both hands."""
        self._mono_ms += by_ms
        self._wall_ms += by_ms
