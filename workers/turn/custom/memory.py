"""What a worker remembers of objects of one's own, to save work. Any of it may be lost: then a turn does a little more.

Bounded: a memory that is full forgets all, which costs each object one whole turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from oarlock.controllers.comparison import Differences
from oarlock.controllers.pods.events import Event

KEPT_MAX = 20_000

Versions = tuple[str, ...]
"""What a turn was given: a UID and resourceVersions."""


UNDONE_FREE = 5
UNDONE_FIRST_MS, UNDONE_LONGEST_MS = 1_000, 300_000
UNDONE_WITHIN_MS = 60_000
"""A status that stood for longer was undone by a person, if by anybody."""


class _Wrote(NamedTuple):
    """``wish``: a digest of a status. ``times``: how often in a row it was written. ``until_ms``: it is not before."""

    wish: bytes
    times: int
    until_ms: int


class Memory:
    """One controller's, in one process.

    ``settled``: by UID and digest, what the server itself made of what was applied: it would be applied for ever.
    """

    def __init__(self) -> None:
        self._at_rest: dict[str, Versions] = {}
        self._told: dict[str, tuple[Event, ...]] = {}
        self.settled: dict[tuple[str, str], Differences] = {}
        self._wrote: dict[str, _Wrote] = {}

    def at_rest(self, key: str, versions: Versions) -> bool:
        """Whether a turn that was given the same found nothing to do."""
        return self._at_rest.get(key) == versions

    def rests(self, key: str, versions: Versions) -> None:
        """There was nothing to do."""
        _bound(self._at_rest)
        self._at_rest[key] = versions

    def forget(self, key: str) -> None:
        """The object has gone."""
        self._at_rest.pop(key, None)

    def news(self, uid: str, events: tuple[Event, ...]) -> Iterable[Event]:
        """Those that were not told when the object was looked at last: a function says the same again and again."""
        before = self._told.get(uid, ())
        if not events:
            if before:
                del self._told[uid]
            return ()
        _bound(self._told)
        self._told[uid] = events
        return [each for each in events if each not in before]

    def status_waits_ms(self, uid: str, status: bytes, now_ms: int) -> int:
        """How long this status is not to be written, as somebody undoes it again and again; 0: it may be."""
        known = self._wrote.get(uid)
        if known is None or known.wish != _digest(status) or known.times <= UNDONE_FREE:
            return 0
        left_ms = known.until_ms - now_ms
        return left_ms if 0 < left_ms <= UNDONE_LONGEST_MS else 0

    def status_written(self, uid: str, status: bytes, now_ms: int) -> bool:
        """Note it. Returns whether the next one is to wait, for the first time. A turn begins when the cache has shown
        our own writes, so a status that is written again was undone.
        """
        wish, known = _digest(status), self._wrote.pop(uid, None)
        again = known is not None and known.wish == wish and now_ms - known.until_ms < UNDONE_WITHIN_MS
        times = known.times + 1 if again and known is not None else 1
        over = times - UNDONE_FREE
        wait_ms = min(UNDONE_FIRST_MS << min(over - 1, 20), UNDONE_LONGEST_MS) if over > 0 else 0
        _bound(self._wrote)
        self._wrote[uid] = _Wrote(wish, times, now_ms + wait_ms)
        return over == 1

    def settle(self, uid: str, digest: str, found: Differences) -> None:
        """What was just applied differs from what the server made of it; empty: it does not."""
        if found:
            _bound(self.settled)
            self.settled[uid, digest] = found
        else:
            self.settled.pop((uid, digest), None)


def _digest(status: bytes) -> bytes:
    return blake2b(status, digest_size=12).digest()


def _bound(kept: dict) -> None:  # type: ignore[type-arg]
    if len(kept) >= KEPT_MAX:
        kept.clear()
