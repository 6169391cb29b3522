"""Counters in memory that a supervisor shares with the processes it forks.

A row belongs to a position, not to a process: the next worker there counts on from where the last one stopped. So the
counts survive a SIGKILL, nothing is counted twice, and nothing is left behind, on disk or in memory. A cell has
one writer at a time, one thread of one process, and is eight aligned bytes, so there are no locks. A process killed
between the two cells of a histogram leaves one value in its counts that its sum lacks.
"""

from __future__ import annotations

import mmap
import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import add
from typing import NamedTuple

from oarlock.workers.counters.layout import Histogram, Layout

CELL_BYTES = 8
EXEMPLAR_CELLS = 4
"""Both halves of a trace's id, the value, and when, in unix seconds."""


class Exemplar(NamedTuple):
    """A value of a histogram and the trace that it is from. ``at_s``: unix time."""

    trace_id: str
    value: float
    at_s: float


class Row:
    """One position's cells: ``ints`` and ``sums`` (seconds) are written in place. ``exemplars``: raw memory."""

    __slots__ = ("_facts", "_ids", "ints", "layout", "sums")

    def __init__(
        self, layout: Layout, ints: memoryview[int], sums: memoryview[float], exemplars: memoryview[int]
    ) -> None:
        self.layout, self.ints, self.sums = layout, ints, sums
        self._ids, self._facts = exemplars.cast("q"), exemplars.cast("d")

    def observe(self, histogram: Histogram, value: float) -> None:
        """One more value of a histogram."""
        self.ints[histogram.counts + bisect_left(histogram.bounds, value)] += 1
        self.sums[histogram.sum] += value

    def exemplify(self, histogram: Histogram, value: float, trace_id: str, at_s: float) -> None:
        """``value`` was observed in a trace: the last one of its bucket. ``trace_id``: 32 hex digits."""
        assert histogram.exemplars is not None, "it keeps none"
        at = (histogram.exemplars + bisect_left(histogram.bounds, value)) * EXEMPLAR_CELLS
        self._facts[at + 3] = 0.0  # a reader leaves it out until it is whole
        high, low = struct.unpack(">qq", bytes.fromhex(trace_id))
        self._ids[at], self._ids[at + 1] = high, low
        self._facts[at + 2], self._facts[at + 3] = value, at_s

    def exemplar(self, place: int) -> Exemplar | None:
        """The one at a place; None where there is none, or it is being written."""
        at = place * EXEMPLAR_CELLS
        at_s = self._facts[at + 3]
        if not at_s:
            return None
        found = Exemplar(struct.pack(">qq", self._ids[at], self._ids[at + 1]).hex(), self._facts[at + 2], at_s)
        return found if self._facts[at + 3] == at_s else None


class Table:
    """``count`` rows of zeros, in anonymous memory that processes forked from here share."""

    def __init__(self, count: int) -> None:
        self.layout = layout = Layout()
        width = layout.ints + layout.sums + layout.exemplars * EXEMPLAR_CELLS
        memory = memoryview(mmap.mmap(-1, max(1, count * width * CELL_BYTES)))
        self.rows: list[Row] = []
        for at in range(0, count * width, width):
            part = memory[at * CELL_BYTES : (at + width) * CELL_BYTES]
            ints, sums = layout.ints * CELL_BYTES, (layout.ints + layout.sums) * CELL_BYTES
            self.rows.append(Row(layout, part[:ints].cast("q"), part[ints:sums].cast("d"), part[sums:]))

    def totals(self) -> tuple[list[int], list[float]]:
        """Each cell summed over all rows."""
        return total(self.rows, self.layout)

    def exemplars(self, histogram: Histogram) -> list[Exemplar | None]:
        """The last one of each of its buckets, over all rows."""
        first = histogram.exemplars
        if first is None:
            return [None] * len(histogram.cells)
        return [newest(row.exemplar(first + at) for row in self.rows) for at in range(len(histogram.cells))]


def newest(exemplars: Iterable[Exemplar | None]) -> Exemplar | None:
    """The last one; None if there is none."""
    return max((each for each in exemplars if each is not None), key=lambda each: each.at_s, default=None)


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
