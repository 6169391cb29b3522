"""Events do not stay: each is forgotten an hour after it was last written, as upstream's event TTL has it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.text.times import unix_seconds

TTL_S: Final = 3600.0
_EVERY_S: Final = 60.0


class EventExpiry:
    """Removes old events once a minute."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="event expiry")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def expire(self) -> int:
        """Remove what is too old now. How many events that were."""
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

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            self.expire()
