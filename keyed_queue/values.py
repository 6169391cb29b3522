"""What the steps of a queue take and return, and the errors they raise. Times are in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from oarlock.broker.values.errors import BrokerFull, BrokerUnreachable

ERROR_CHARS_MAX = 8_000


def kept_error(text: str) -> str:
    """What is stored of a traceback: its end. A lone surrogate, as of a file name that is no UTF-8, is spelled out: it
    cannot be sent to Redis.
    """
    return text.encode(errors="backslashreplace").decode()[-ERROR_CHARS_MAX:]


class QueueUnreachable(BrokerUnreachable):
    """Redis did not answer, or cannot take writes now. Whether the step was carried out is not known; ``add`` may be
    repeated at any time.
    """


class QueueFull(BrokerFull):
    """Redis is at its maxmemory and refused to grow; nothing was changed. Ends and renewals still work."""


class NotAQueue(Exception):
    """Redis holds, under the queue's own names, data that the queue did not write."""


class Policy(NamedTuple):
    """What becomes of a key whose run failed: ``retries`` more runs, then it is parked."""

    retries: int = 5
    back_off_ms: int = 1_000
    back_off_max_ms: int = 600_000


class Claim(NamedTuple):
    """A key that is ours. ``failures``: failed runs in a row before this one; ``waited_ms``: how long it was queued."""

    key: str
    token: int
    failures: int
    waited_ms: int


class Empty(NamedTuple):
    """Nothing is queued. ``next_ms``: until a delay or another's lease may end; None: there is none."""

    next_ms: int | None


class Verdict(StrEnum):
    """How a run ended."""

    OK = "ok"
    FAILED = "failed"


class Finished(NamedTuple):
    """What became of a key after its run: "idle", "queued", "delayed" or "parked"."""

    state: str
    failures: int


@dataclass(frozen=True, slots=True)
class Parked:
    """A key that failed too often. ``since_ms``: of Redis's clock, since 1970; ``error``: its last traceback."""

    key: str
    since_ms: int
    failures: int
    error: str


@dataclass(frozen=True, slots=True)
class Stats:
    """Keys by state. ``failing``: keys whose last run failed; ``groups``: groups with queued keys; ``consumers``:
    processes that called in the last 5 s; ``oldest_age_ms``: how long the key that was queued first has waited.
    """

    queued: int
    running: int
    delayed: int
    parked: int
    failing: int
    groups: int
    consumers: int
    oldest_age_ms: int | None


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """All that is known of a key. ``state``: "idle", "queued", "running", "running+" (added again meanwhile) or
    "parked". Times that do not apply are None.
    """

    key: str
    state: str
    group: str
    token: int | None
    holder: str | None
    running_ms: int | None
    lease_left_ms: int | None
    due_in_ms: int | None
    parked_ms: int | None
    failures: int
    error: str
    queued_in_group: int
    groups: int
    consumers: int
