"""Where a fleet in one process keeps its queues, locks, expectations and cache."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable
from typing import Protocol

from oarlock.broker.epoch import Seen, is_later
from oarlock.broker.memory.threads import SharedBroker, SharedStore
from oarlock.broker.protocol import Broker
from oarlock.broker.values.errors import EpochOver
from oarlock.testing.clock import MovableClock
from oarlock.workers.epoch.redis_side import EpochStore
from oarlock.workers.supervisor.timer_wait import Timer

RUN = "memory"
"""Stands for a server's run id: what is in memory lives as long as the process that looks."""


class FleetData(Protocol):
    """``epochs``: for the ingestor. The others have a broker each, as processes of a fleet have connections."""

    epochs: EpochStore

    def worker_broker(self, seen: Seen) -> Broker: ...
    def lease_broker(self, seen: Seen) -> tuple[Broker, Timer]: ...
    def time_moved(self) -> None: ...
    def end_waits(self) -> None: ...
    def close(self) -> None: ...


class MemoryData:
    """The twin. ``MemoryData`` is its own EpochStore: epochs begin in it as in Redis, after the Lease was won."""

    def __init__(self, clock: MovableClock) -> None:
        self._store = SharedStore(clock.wall_ms)
        self.epochs: EpochStore = self

    # -- for the fleet -----------------------------------------------------------------------------------------------

    def worker_broker(self, seen: Seen) -> Broker:
        return SharedBroker(self._store, seen.epoch)

    def lease_broker(self, seen: Seen) -> tuple[Broker, Timer]:
        broker = SharedBroker(self._store, seen.epoch)
        return broker, MemoryTimer(self._store, broker)

    def time_moved(self) -> None:
        """The store asks the clock itself."""

    def end_waits(self) -> None:
        """So that a worker that was told to stop hears of it at once."""
        self._store.wake_all()

    def close(self) -> None:
        """Nothing is left but memory."""

    # -- workers.epoch.redis_side.EpochStore ---------------------------------------------------------------------------

    def look(self) -> Seen:
        store = self._store
        with store.changed:
            return Seen(store.epoch, RUN, RUN, store.state.phase) if store.epoch else Seen(0, RUN, "", "")

    def broker(self, seen: Seen) -> Broker:
        return SharedBroker(self._store, seen.epoch)

    def bootstrap(self, number: int) -> None:
        with self._store.changed:
            if is_later(self._store.epoch, number):
                raise EpochOver(f"epoch {self._store.epoch} was begun before epoch {number} could be")
            self._store.bootstrap(number)

    def distrust(self) -> None:
        """There is no other server that could answer."""

    def end_others(self, others: Iterable[str]) -> None:
        """There is one shard."""

    def sweep(self, number: int) -> None:
        """An epoch's data went with the next one's begin."""


class MemoryTimer:
    """``workers.supervisor.timer_wait.TimerWait`` for the twin: a byte on a socket for tokens of the timer."""

    def __init__(self, store: SharedStore, broker: SharedBroker) -> None:
        self._store, self._broker = store, broker
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._theirs.setblocking(False)

    def start(self) -> socket.socket:
        self._store.on_timer = self._ring
        return self._ours

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is full of bytes that say the same
            self._theirs.send(b"t")

    def take(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            self._ours.recv(4096)
        return self._broker.wait_timer(0)

    def close(self) -> None:
        self._store.on_timer = lambda: None
        self._ours.close()
        self._theirs.close()
