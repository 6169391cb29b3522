"""The values of a look: queues, keys, locks, expectations and resources, and how each is read from its text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oarlock.broker.expectations import Expectations
from oarlock.broker.looks.history import PastTurn, Queued

FRONT_MAX = 64
"""More entries than a stream has before keys wait in the backlog."""
PLACES = 100_000_000
"""A place in the backlog is a round times this, and the ms at which the key came, up to this."""


@dataclass(frozen=True, slots=True)
class QueueView:
    """How many keys of a queue are in which state. ``oldest_age_ms``: since the oldest of those next in turn was
    queued. ``held``: taken out of the queue by a pause.
    """

    name: str
    queued: int
    in_work: int
    delayed: int
    parked: int
    failing: int
    oldest_age_ms: int | None
    held: int = 0


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key that is not idle. ``state``: queued, running, running+, parked, held or delayed; ``due_in_ms`` where it
    waits. ``crashes``: workers it killed in a row; 0 where it is only suspect, None where neither is the case. ``by``:
    who parked it; "" where it was the fleet.
    """

    queue: str
    key: str
    state: str
    due_in_ms: int | None = None
    crashes: int | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class LockView:
    """Who holds a key, for how long already, and how long still unless renewed (negative: overdue).

    ``why``: what had queued it.
    """

    queue: str
    key: str
    holder: str
    nonce: str
    age_ms: int
    remaining_ms: int
    why: Queued | None = None


@dataclass(frozen=True, slots=True)
class ExpectationsView:
    """The expectations of a key: field -> text as stored; when they end; and the time of the look by Redis's clock, as
    the times in them are.
    """

    queue: str
    key: str
    fields: dict[str, str]
    ttl_ms: int
    now_ms: int = 0

    @property
    def parsed(self) -> Expectations | None:
        """The fields as a turn reads them."""
        return Expectations.parse([text for pair in self.fields.items() for text in pair])


@dataclass(frozen=True, slots=True)
class KeyView:
    """Everything kept of one key. ``suspect``: its lease ended once, and no turn of it has ended since.

    ``why``: what queues it, or while its turn is under way, what queues it anew. ``turns``: its last ones, the newest
    first. ``now_ms``: the time of the look by Redis's clock, as the times in these are.
    """

    queue: str
    key: str
    state: str
    lock: LockView | None
    delayed_in_ms: int | None
    parked_in_ms: int | None
    failures: int
    crashes: int
    min_rv: str
    unsettled_age_ms: int | None
    expectations: ExpectationsView | None
    suspect: bool = False
    why: Queued | None = None
    turns: Sequence[PastTurn] = ()
    now_ms: int = 0


@dataclass(frozen=True, slots=True)
class ResourceView:
    """How far the cache of a resource has come, and how many objects it has."""

    resource: str
    rv: str
    age_ms: int
    generation: str
    objects: int


def lock_view(queue: str, key: str, text: bytes, end_ms: int, now_ms: int) -> LockView:
    """A lock from its text in Redis and the end of its lease."""
    head, _, why = text.decode(errors="replace").partition(" why=")
    words = dict(word.split("=", 1) for word in head.split())
    since_ms = int(words["since_ms"])
    return LockView(queue, key, words["holder"], words["nonce"], now_ms - since_ms, end_ms - now_ms, Queued.parse(why))


def queued_keys(entries: Sequence[Sequence[Any]]) -> dict[str, int]:
    """The keys of a stream's entries, in their order, and the ms at which each was queued: its id begins with it."""
    return {fields[1].decode(errors="replace"): int(name.partition(b"-")[0]) for name, fields in entries}


def backlog_keys(flat: Sequence[bytes], now_ms: int) -> dict[str, int]:
    """The keys of a part of the backlog with their places, in their order, and the ms at which each was queued."""
    return {
        key.decode(errors="replace"): now_ms - (now_ms - int(float(place))) % PLACES
        for key, place in zip(flat[::2], flat[1::2], strict=True)
        if math.isfinite(float(place))
    }
