"""When an ingestor needs no watch of a resource, and when it watches on.

Where another ingestor is ahead, a watch costs this process and the API server, and brings nothing. So this one stands
by: it looks at the watermark only, and watches on from there as soon as that stands still. To open a watch costs, too,
so it stands by only where it would pass over many events.
"""

from __future__ import annotations

ENOUGH_EVENTS, WITHIN_MS = 100, 1_000
"""So many events passed over in that time, because they were applied before, make a watch useless."""
LOOK_MS, STILL_LOOKS = 50, 2
"""Between two looks at the watermark, and how many in a row must see the same one. Together it is the delay until this
ingestor takes over from a dead one."""
LONGEST_MS = 3_000
"""Then it watches on in any case: the other may be slower than this one would be, and a watch shows that it hears."""


class Standby:
    """The state of one resource in one process. Time is given in ms of one monotonic clock."""

    def __init__(self, enough_events: int = ENOUGH_EVENTS) -> None:
        self._enough_events = enough_events
        self._before = self._since_ms = self._until_ms = self._still = 0
        self._mark = ""

    def pays(self, skipped: int, now_ms: int) -> bool:
        """Whether to stand by now. ``skipped``: events passed over so far, by this process."""
        if now_ms - self._since_ms > WITHIN_MS:
            self._before, self._since_ms = skipped, now_ms
        return skipped - self._before >= self._enough_events

    def begin(self, now_ms: int) -> None:
        """Stand by from now on. What is passed over counts anew afterwards."""
        self._mark, self._still, self._until_ms, self._since_ms = "", 0, now_ms + LONGEST_MS, -WITHIN_MS

    def is_over(self, mark: str, now_ms: int) -> bool:
        """Whether to watch on from this watermark; else look again after LOOK_MS."""
        self._still = self._still + 1 if mark == self._mark else 0
        self._mark = mark
        return self._still >= STILL_LOOKS or now_ms >= self._until_ms
