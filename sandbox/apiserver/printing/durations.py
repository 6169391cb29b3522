"""Ages in the short form people read: 45s, 3m12s, 5h, 12d.

Steps as in upstream's staging/src/k8s.io/apimachinery/pkg/util/duration/duration.go.
"""

from __future__ import annotations

from typing import Any

from oarlock.sandbox.apiserver.text.timestamps import unix_seconds

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3_600, 86_400, 365 * 86_400


def _pair(total: int, big: int, big_unit: str, small: int, small_unit: str) -> str:
    rest = total % big // small
    return f"{total // big}{big_unit}" + (f"{rest}{small_unit}" if rest else "")


def human_duration(seconds: float) -> str:
    """Two significant parts while small, one when large; <invalid> for what lies in the future."""
    total = int(seconds)
    if seconds <= -2:
        return "<invalid>"
    if total < 0:
        return "0s"
    if total < 2 * _MINUTE:
        return f"{total}s"
    if total < 10 * _MINUTE:
        return _pair(total, _MINUTE, "m", 1, "s")
    if total < 3 * _HOUR:
        return f"{total // _MINUTE}m"
    if total < 8 * _HOUR:
        return _pair(total, _HOUR, "h", _MINUTE, "m")
    if total < 2 * _DAY:
        return f"{total // _HOUR}h"
    if total < 8 * _DAY:
        return _pair(total, _DAY, "d", _HOUR, "h")
    if total < 2 * _YEAR:
        return f"{total // _DAY}d"
    if total < 8 * _YEAR:
        return _pair(total, _YEAR, "y", _DAY, "d")
    return f"{total // _YEAR}y"


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
