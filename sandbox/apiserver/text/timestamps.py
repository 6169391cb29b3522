"""RFC 3339 as the API writes it: whole seconds in objects, microseconds in MicroTime fields. All UTC."""

from __future__ import annotations

import calendar
import time
from functools import lru_cache


@lru_cache(maxsize=64)
def _of_second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def rfc3339(unix_s: float) -> str:
    """`2026-01-02T03:04:05Z`: the form of creationTimestamp and its like."""
    return _of_second(int(unix_s))


def rfc3339_micro(unix_s: float) -> str:
    """`2026-01-02T03:04:05.000006Z`: the form of MicroTime (leases, audit)."""
    whole = int(unix_s)
    return f"{_of_second(whole)[:-1]}.{int((unix_s - whole) * 1_000_000):06d}Z"


def unix_seconds(text: str) -> float:
    """The moment that `text` names. Raises ValueError if it is not a UTC timestamp of either form."""
    head, dot, fraction = text.removesuffix("Z").partition(".")
    seconds = calendar.timegm(time.strptime(head, "%Y-%m-%dT%H:%M:%S"))
    return seconds + (float("0." + fraction) if dot else 0.0)
