"""How often Python looks for cycles of garbage in a process that lives long and does much."""

from __future__ import annotations

import gc

YOUNG_MAX = 20_000
"""Objects made and not yet freed until the youngest are gone through; Python's own figure is 700. Nearly all that is
made here is freed by its count of references; to look for the rest was a sixth of an ingestor's CPU.
"""


def collect_rarely() -> None:
    """What is here now stays: a full collection would go through all of it. What comes is gone through less often.

    Call it once, when everything is loaded; it holds for the process and those it forks.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, 20, 20)
