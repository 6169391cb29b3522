"""What queued a key, and the lane that follows from it: ``scripts/lib/lanes.lua`` in Python."""

from __future__ import annotations

import re

URGENT = ("asked", "resumed", "lost ")
ANEW = ("list ", "anew")
TRIGGER_BYTES_MAX = 160
_WHY = re.compile(r"(\d+) (\d+) ([^,]+),? ?(.*)", re.DOTALL)


def lane_of(key: str, trigger: str) -> int:
    """0: the object itself was changed or asked for, or its turn was lost. 1: what follows. 2: all are looked at."""
    if trigger.startswith(("set ", "del ")):
        return 0 if trigger.endswith(f"/{key}") else 1
    return 0 if trigger.startswith(URGENT) else 2 if trigger.startswith(ANEW) else 1


def lane_of_why(key: str, why: str) -> int:
    """The most urgent of the triggers that a text names."""
    found = _WHY.fullmatch(why)
    return min(lane_of(key, each) for each in (found[3], found[4]) if each) if found is not None else 1


def first_why(trigger: str, now: int) -> str:
    return f"{now} 1 {trigger[:TRIGGER_BYTES_MAX]}"


def with_trigger(key: str, why: str, trigger: str) -> str:
    """One more trigger. A less urgent one does not take the last one's place."""
    found, trigger = _WHY.fullmatch(why), trigger[:TRIGGER_BYTES_MAX]
    assert found is not None, why
    since_ms, count, first, last = found.groups()
    if last and lane_of(key, last) < lane_of(key, trigger):
        trigger = last
    return f"{since_ms} {int(count) + 1} {first}, {trigger}"
