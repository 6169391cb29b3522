"""The figures of the last quarter of an hour, so that a page that is opened has its plots at once. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from oarlock.cli.watch.fleet_look import FleetLook
from oarlock.cli.watch.rates import Rates

KEPT_S = 900
COUNTS = ("turns", "calls", "throttled", "in_work", "delayed", "failing", "parked", "oldest_s", "view_s", "memory")
"""Figures of a point that are not of one queue."""

Point = tuple[float | None, ...]
"""Unix seconds, then a figure for each of ``series``; None: nobody knows."""


class Past:
    """``queues``: whose depths are kept, in this order."""

    def __init__(self, queues: Sequence[str], interval_s: float) -> None:
        self.queues = tuple(queues)
        self._points: deque[Point] = deque(maxlen=max(1, int(KEPT_S / interval_s)))

    @property
    def series(self) -> list[str]:
        """What the figures of a point are."""
        return [*COUNTS, *self.queues]

    def add(self, now_s: float, look: FleetLook | None, rates: Rates) -> Point:
        """Keep the figures of a look; of None, which Redis did not answer, that they are not known."""
        point = (now_s, *(self._figures(look, rates) if look is not None else (None,) * len(self.series)))
        self._points.append(point)
        return point

    def since(self, after_s: float) -> list[Point]:
        """The points after this time."""
        return [point for point in self._points if (point[0] or 0) > after_s]

    def _figures(self, look: FleetLook, rates: Rates) -> list[float | None]:
        oldest = max((each.oldest_ms for each in look.queues if each.oldest_ms is not None), default=None)
        view, queued = look.view_age_ms, dict.fromkeys(self.queues, 0)
        for each in look.queues:
            if each.queue in queued:
                queued[each.queue] += each.queued or 0
        return [
            _short(rates.turns),
            _short(rates.calls),
            _short(rates.throttled),
            *(look.total(count) for count in ("in_work", "delayed", "failing", "parked")),
            0.0 if oldest is None else oldest / 1_000,
            None if view is None else view / 1_000,
            sum(each.memory_bytes for each in look.shards),
            *queued.values(),
        ]


def _short(a_second: float | None) -> float | None:
    return None if a_second is None else round(a_second, 2)
