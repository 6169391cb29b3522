"""What a worker remembers of objects of one's own, to save work. Any of it may be lost: then a turn does a little more.

Bounded: a memory that is full forgets all, which costs each object one whole turn.
"""

from __future__ import annotations

from collections.abc import Iterable

from oarlock.controllers.comparison import Differences
from oarlock.controllers.pods.events import Event

KEPT_MAX = 20_000

Versions = tuple[str, ...]
"""What a turn was given: a UID and resourceVersions."""


class Memory:
    """One controller's, in one process.

    ``settled``: by UID and digest, what the server itself made of what was applied: it would be applied for ever.
    """

    def __init__(self) -> None:
        self._at_rest: dict[str, Versions] = {}
        self._told: dict[str, tuple[Event, ...]] = {}
        self.settled: dict[tuple[str, str], Differences] = {}

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

    def settle(self, uid: str, digest: str, found: Differences) -> None:
        """What was just applied differs from what the server made of it; empty: it does not."""
        if found:
            _bound(self.settled)
            self.settled[uid, digest] = found
        else:
            self.settled.pop((uid, digest), None)


def _bound(kept: dict) -> None:  # type: ignore[type-arg]
    if len(kept) >= KEPT_MAX:
        kept.clear()
