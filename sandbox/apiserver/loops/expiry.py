"""What is forgotten when it is old: Events, an hour after they were last written (upstream: event TTL); what watches
have been told.
"""

from __future__ import annotations

import asyncio
from typing import Final

from oarlock.sandbox.apiserver.loops.background import Background
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.text.times import unix_seconds

TTL_S: Final = 3600.0
_EVERY_S: Final = 60.0


class EventExpiry(Background):
    """Removes old events once a minute."""

    def __init__(self, store: Store) -> None:
        super().__init__("event expiry", self._expire_again)
        self._store = store

    def expire(self) -> int:
        """Remove the events that are too old now. Returns how many."""
        oldest_s = self._store.clock() - TTL_S
        old = []
        for event in self._store.list("Event"):
            meta = event["metadata"]
            written = event.get("lastTimestamp") or meta["creationTimestamp"]
            try:
                written_s = unix_seconds(written)
            except ValueError:  # a client's own field, in whatever form
                written_s = unix_seconds(meta["creationTimestamp"])
            if written_s < oldest_s:
                old.append((meta["namespace"], meta["name"]))
        for namespace, name in old:
            self._store.remove("Event", namespace, name)
        return len(old)

    async def _expire_again(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            self.expire()


class HistoryExpiry(Background):
    """Forgets what watches need no more, also of kinds that no longer change."""

    def __init__(self, store: Store) -> None:
        super().__init__("history expiry", self._expire_again)
        self._store = store

    def expire(self) -> None:
        """Forget it now."""
        for log in self._store.logs.values():
            log.trim(self._store.clock())

    async def _expire_again(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            self.expire()
