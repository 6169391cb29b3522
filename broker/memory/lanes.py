"""What queued a key, and the lane that follows from it: ``scripts/lib/lanes.lua`` in Python."""

from __future__ import annotations

import re

URGENT = ("asked", "resumed", "lost ")
ANEW = ("list ", "anew", "added ", "observed ")
TRIGGER_BYTES_MAX = 160
_WHY = re.compile(r"(\d+) (\d+) ([^,]+),? ?(.*)", re.DOTALL)


def lane_of(key: str, trigger: str) -> int:
    """0: the object itself was changed or asked for, or its turn was lost. 1: the status of another object. 2: what
    else follows. 3: it is looked at anew.
    """
    if trigger.startswith(("set ", "del ", "added ")) and trigger.endswith(f"/{key}"):
        return 0
    if trigger.startswith("status "):
        return 1
    if trigger.startswith("added ") and len(trigger) >= TRIGGER_BYTES_MAX:
        return 2  # cut, it may be of the key's own object
    return 0 if trigger.startswith(URGENT) else 3 if trigger.startswith(ANEW) else 2


def lane_of_why(key: str, why: str) -> int:
    """The most urgent of the triggers that a text names."""
    found = _WHY.fullmatch(why)
    return min(lane_of(key, each) for each in (found[3], found[4]) if each) if found is not None else 2


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
