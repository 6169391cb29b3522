"""Which life of a Redis server new connections must lead to."""

from __future__ import annotations

from oarlock.broker.values.errors import EpochOver


class RunGuard:
    """The life of the server that the epoch is on. Once it is known, every new connection must lead to it."""

    def __init__(self) -> None:
        self.expected: str | None = None

    def check(self, run: str) -> None:
        """Raises EpochOver where the server of a new connection is another, was restarted, or was promoted again."""
        if self.expected is not None and run != self.expected:
            raise EpochOver(f"the Redis server changed (run {self.expected[:8]} -> {run[:8]})")
