"""Judges from a worker's own requests whether the API server is overloaded: whether all of its answers became slow."""

from __future__ import annotations

from statistics import median

WINDOW_MS = 1_000
LEAST = 8
"""A window with fewer answers lasts longer."""
KEPT = 256
"""As many answers of a window are looked at."""
TIMES, MORE_S = 3.0, 0.05
"""Slow is more than so many times as long as usual, and so much longer."""
RISE = 1.02
"""What is usual falls at once and rises by so much a window: a new server, a longer way."""


class AnswerTimes:
    """The median of a window against what was usual. A slow webhook makes some answers slow, but not the median."""

    def __init__(self) -> None:
        self._took_s: list[float] = []
        self._ends_ms = 0
        self.usual_s = 0.0

    def add(self, took_s: float, now_ms: int) -> bool | None:
        """An answer came. Returns a judgement at the end of a window: whether answers are slow; else None."""
        if len(self._took_s) < KEPT:
            self._took_s.append(took_s)
        if now_ms < self._ends_ms or len(self._took_s) < LEAST:
            return None
        now_s = median(self._took_s)
        self._ends_ms, self._took_s = now_ms + WINDOW_MS, []
        self.usual_s = min(now_s, self.usual_s * RISE) if self.usual_s else now_s
        return now_s > TIMES * self.usual_s + MORE_S
