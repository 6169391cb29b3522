"""Kubernetes timestamps from and to unix milliseconds."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=64)
def _of_second(unix_s: int) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_text(unix_ms: int) -> str:
    """metav1.Time: whole seconds, `2006-01-02T15:04:05Z`."""
    return _of_second(unix_ms // 1000)


def micro_text(unix_ms: int) -> str:
    """metav1.MicroTime: always six digits, `2006-01-02T15:04:05.000000Z`."""
    seconds, ms = divmod(unix_ms, 1000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{ms:03d}000Z"


def unix_ms(text: str | None) -> int:
    """Milliseconds of either form; 0 for none. Raises ValueError for anything else."""
    if not text:
        return 0
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a timestamp without a time zone: {text!r}")
    whole_s = int(moment.replace(microsecond=0).timestamp())
    return whole_s * 1000 + moment.microsecond // 1000
