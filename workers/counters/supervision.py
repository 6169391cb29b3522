"""What a supervisor counts, in the last row of its table, and what it notes in the rows of its positions."""

from __future__ import annotations

from oarlock.workers.counters.layout import DEATHS
from oarlock.workers.counters.table import Row, Table


class Supervision:
    """``table`` has a row for each position and one more, the supervisor's."""

    def __init__(self, table: Table) -> None:
        self._ints, self._layout = table.rows[-1].ints, table.layout

    def tick(self, now_ms: int) -> None:
        """The loop has come round. ``now_ms``: CLOCK_BOOTTIME."""
        self._ints[self._layout.tick_ms] = now_ms

    def started(self, position: Row, pid: int) -> None:
        """A worker was started in a position."""
        position.ints[self._layout.pid] = pid
        self._ints[self._layout.starts] += 1

    def ended(self, position: Row, death: str) -> None:
        """It has ended, and was waited for. ``death``: one of DEATHS."""
        position.ints[self._layout.pid] = position.ints[self._layout.turn_since_ns] = 0
        position.ints[self._layout.turns_under_way] = 0
        self._ints[self._layout.deaths + DEATHS.index(death)] += 1

    def released(self, keys: int) -> None:
        """Keys of a worker that has ended were given back."""
        self._ints[self._layout.releases] += keys

    def reclaimed(self, keys: int) -> None:
        """Keys whose leases had expired were given back."""
        self._ints[self._layout.reclaims] += keys

    def epoch_lost(self) -> None:
        """The epoch is over."""
        self._ints[self._layout.epochs_lost] += 1

    def leaving(self) -> None:
        """It was asked to stop."""
        self._ints[self._layout.leaving] = 1
