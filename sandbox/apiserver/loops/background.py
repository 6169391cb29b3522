"""What the background parts of the embedded cluster have in common.

A store event adds keys to a list of work, which costs next to nothing. One task does the work later, a batch at a time,
so that requests are served in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Hashable, Iterable
from typing import Any, Final, Generic, TypeVar

from oarlock.sandbox.apiserver.store.events import Event
from oarlock.sandbox.apiserver.store.store import Store

K = TypeVar("K", bound=Hashable)

BATCH_MAX: Final = 64  # looks between two chances for requests: a few milliseconds

_log = logging.getLogger(__name__)


class Background:
    """A task that runs from `start` to `stop`; both may be called again."""

    def __init__(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._name = name
        self._run = run
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Run in the running loop from now on."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """Cancel the task, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None


class Worklist(Background, Generic[K]):
    """`look(key)` is called for every added key, once however often it was added.

    A key that is added while it is looked at is looked at again. `stop` leaves the keys that were not looked at.
    """

    def __init__(self, name: str, look: Callable[[K], None]) -> None:
        super().__init__(name, self._work_on)
        self._look = look
        self._keys: dict[K, None] = {}
        self._added = asyncio.Event()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: K) -> None:
        self._keys[key] = None
        self._added.set()

    def add_all(self, keys: Iterable[K]) -> None:
        for key in keys:
            self.add(key)

    def work(self, count_max: int | None = None) -> int:
        """Look at up to `count_max` keys now (None: all, and those that they add). Returns how many."""
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

    async def _work_on(self) -> None:
        while True:
            await self._added.wait()
            self._added.clear()
            while self._keys:
                self.work(BATCH_MAX)
                await asyncio.sleep(0)


class StoreFollower:
    """A part that follows a store's events (`_seen`) and does what they ask for by worklists (`_work`)."""

    _work: tuple[Worklist[Any], ...]

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Follow the store and work, in tasks of the running loop."""
        self.watch()
        for each in self._work:
            each.start()

    async def stop(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for each in self._work:
            await each.stop()

    def watch(self) -> None:
        """Take note of all later events."""
        if self._unsubscribe is None:
            self._begin()
            self._unsubscribe = self._store.subscribe(self._seen)

    def _begin(self) -> None:
        """Look at what there is before the first event."""

    def _seen(self, event: Event) -> None:
        raise NotImplementedError
