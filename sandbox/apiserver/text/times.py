"""Times as text: RFC 3339 as the API writes it, durations as Go reads them, ages as people do (45s, 3m12s, 12d).

Timestamps are UTC: whole seconds in objects, microseconds in MicroTime fields. The steps of ages are upstream's:
staging/src/k8s.io/apimachinery/pkg/util/duration/duration.go.
"""

from __future__ import annotations

import calendar
import math
import re
import time
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

_DURATION: Final = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3_600, 86_400, 365 * 86_400
_UNITS: Final = {"s": 1, "m": _MINUTE, "h": _HOUR, "d": _DAY, "y": _YEAR}
_STEPS: Final = (
    (2 * _MINUTE, "s"),
    (10 * _MINUTE, "ms"),
    (3 * _HOUR, "m"),
    (8 * _HOUR, "hm"),
    (2 * _DAY, "h"),
    (8 * _DAY, "dh"),
    (2 * _YEAR, "d"),
    (8 * _YEAR, "yd"),
    (math.inf, "y"),
)
"""Below so many seconds: the units that an age is told in."""


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
    """The moment that `text` names, in UTC or with an offset. Raises ValueError if it is no such timestamp."""
    if not text.endswith("Z"):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError(f"{text!r} names no offset from UTC")
        return moment.timestamp()
    head, dot, fraction = text.removesuffix("Z").partition(".")
    seconds = calendar.timegm(time.strptime(head, "%Y-%m-%dT%H:%M:%S"))
    return seconds + (float("0." + fraction) if dot else 0.0)


def same_moment(one: str, other: str) -> bool:
    """Whether two timestamps mean the same: Python's clients write `+00:00` where the API writes `Z`."""
    try:
        return one == other or unix_seconds(one) == unix_seconds(other)
    except ValueError:
        return False


def duration_s(text: str) -> float | None:
    """A Go duration such as `4s` or `1m30s`, in seconds; None if absent, zero or not one."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds, millis = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds + millis / 1000 or None


def human_duration(seconds: float) -> str:
    """Two significant parts while small, one when large; <invalid> for what lies in the future."""
    if seconds <= -2:
        return "<invalid>"
    left = max(0, int(seconds))
    text = ""
    for unit in next(units for below_s, units in _STEPS if left < below_s):
        count, left = divmod(left, _UNITS[unit])
        if count or not text:
            text += f"{count}{unit}"
    return text


def since(timestamp: str | None, now_s: float) -> str:
    """How long ago a timestamp of a client's own was; it may be absent or in another form."""
    try:
        return human_duration(now_s - unix_seconds(timestamp)) if timestamp else "<unknown>"
    except ValueError:
        return "<invalid>"


def between(start: str, end: str | None, now_s: float) -> str:
    """How long from one timestamp of a client's own to another, or to now."""
    try:
        return human_duration((unix_seconds(end) if end else now_s) - unix_seconds(start))
    except ValueError:
        return "<invalid>"


def age(obj: dict[str, Any], now_s: float) -> str:
    """How long ago an object was created."""
    created = obj["metadata"].get("creationTimestamp")
    return human_duration(now_s - unix_seconds(created)) if created else "<unknown>"
