"""Keys that need a look, each once however often it is added, looked at by one task in short batches.

What the background parts of the embedded cluster have in common: a store event adds keys, which costs next to
nothing; the work is done later, some of it at a time, so that requests are served in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

BATCH_MAX: Final = 64  # looks between two chances for requests: a few milliseconds

_log = logging.getLogger(__name__)


class Worklist(Generic[K]):
    """`look(key)` is called for every added key; a key added while it is looked at is looked at again."""

    def __init__(self, name: str, look: Callable[[K], None]) -> None:
        self._name = name
        self._look = look
        self._keys: dict[K, None] = {}
        self._added = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: K) -> None:
        self._keys[key] = None
        self._added.set()

    def add_all(self, keys: Iterable[K]) -> None:
        for key in keys:
            self.add(key)

    def work(self, count_max: int | None = None) -> int:
        """Look at up to `count_max` keys now (all, and what they add, if None). How many were looked at."""
        done = 0
        while self._keys and (count_max is None or done < count_max):
            key = next(iter(self._keys))
            del self._keys[key]
            done += 1
            try:
                self._look(key)
            except Exception:
                # One bad object must not end the collector for all others.
                _log.exception("%s: looking at %s failed", self._name, key)
        return done

    def start(self) -> None:
        """Work in the background of the running loop from now on."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """End the task. Keys not looked at stay."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        while True:
            await self._added.wait()
            self._added.clear()
            while self._keys:
                self.work(BATCH_MAX)
                await asyncio.sleep(0)
