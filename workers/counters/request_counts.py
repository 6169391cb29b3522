"""Counts what is asked of the API server; the ``cluster.http.flight.RequestObserver`` of every process."""

from __future__ import annotations

from oarlock.workers.counters.layout import code_at
from oarlock.workers.counters.table import Row


class RequestCounts:
    """Called on the I/O loop's thread only, so its cells have one writer."""

    def __init__(self, row: Row) -> None:
        self.row, self._layout = row, row.layout

    def answered(self, method: str, code: int, took_s: float | None) -> None:
        """As RequestObserver. Methods that no code of ours uses are not counted."""
        first = self._layout.codes.get(method)
        if first is None:
            return
        self.row.ints[first + code_at(code)] += 1
        if took_s is not None:
            self.row.observe(self._layout.requests[method], took_s)

    def limited(self, method: str, waited_s: float) -> None:
        """As RequestObserver."""
        histogram = self._layout.limits.get(method)
        if histogram is not None:
            self.row.observe(histogram, waited_s)
