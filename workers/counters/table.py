"""Counters in memory that a supervisor shares with the processes it forks.

A row belongs to a position, not to a process: the next worker there counts on from where the last one stopped. So the
counts survive a SIGKILL, nothing is counted twice, and nothing is left behind, on disk or in memory. A cell has
one writer at a time, one thread of one process, and is eight aligned bytes, so there are no locks. A process killed
between the two cells of a histogram leaves one value in its counts that its sum lacks.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Sequence
from operator import add

from oarlock.workers.counters.layout import Histogram, Layout

CELL_BYTES = 8


class Row:
    """One position's cells: ``ints`` and ``sums`` (seconds) are written in place."""

    __slots__ = ("ints", "layout", "sums")

    def __init__(self, layout: Layout, ints: memoryview[int], sums: memoryview[float]) -> None:
        self.layout, self.ints, self.sums = layout, ints, sums

    def observe(self, histogram: Histogram, value: float) -> None:
        """One more value of a histogram."""
        self.ints[histogram.counts + bisect_left(histogram.bounds, value)] += 1
        self.sums[histogram.sum] += value


class Table:
    """``count`` rows of zeros, in anonymous memory that processes forked from here share."""

    def __init__(self, count: int) -> None:
        self.layout = layout = Layout()
        width = layout.ints + layout.sums
        memory = memoryview(mmap.mmap(-1, max(1, count * width * CELL_BYTES)))
        self.rows: list[Row] = []
        for at in range(0, count * width, width):
            part = memory[at * CELL_BYTES : (at + width) * CELL_BYTES]
            split = layout.ints * CELL_BYTES
            self.rows.append(Row(layout, part[:split].cast("q"), part[split:].cast("d")))

    def totals(self) -> tuple[list[int], list[float]]:
        """Each cell summed over all rows."""
        return total(self.rows, self.layout)


def total(rows: Sequence[Row], layout: Layout) -> tuple[list[int], list[float]]:
    """Each cell summed over ``rows``."""
    ints, sums = [0] * layout.ints, [0.0] * layout.sums
    for row in rows:
        ints = list(map(add, ints, row.ints))
        sums = list(map(add, sums, row.sums))
    return ints, sums


def own_row() -> Row:
    """A row that is not shared, for a process without a supervisor."""
    return Table(1).rows[0]
