"""The twin for the threads of one process: one step at a time, and waits that sleep until somebody has something.

A fleet in one process (``oarlock.testing``) works over it as over a Redis server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore

STEPS = (
    *("add", "add_after", "add_rate_limited", "forget", "num_requeues", "register", "claim", "announce", "finish"),
    *("release", "reclaim", "renew", "due", "ingest", "stage", "commit_list", "republish", "open", "pause"),
    *("look", "look_apart", "page", "watermark", "steer", "drain", "acts", "pauses", "report", "budget"),
)
"""Every method of ``broker.protocol.Broker`` but ``wait``."""


class SharedStore(MemoryStore):
    """``on_timer`` is called, on the thread of the step, when a delayed key is due earlier than was known."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock)
        self.changed = threading.Condition(threading.RLock())
        self.on_timer: Callable[[], None] = lambda: None

    def bootstrap(self, number: int) -> None:
        with self.changed:
            super().bootstrap(number)
            self.wake_all()

    def wake_all(self) -> None:
        """End all waits."""
        with self.changed:
            self.changed.notify_all()

    def tell(self) -> None:
        """A step has ended: wake those whose tokens are there. The caller holds ``changed``."""
        if self.state.wake_tokens:
            self.changed.notify(self.state.wake_tokens)
        if self.state.timer_tokens:
            self.on_timer()


class SharedBroker(MemoryBroker):
    """A ``MemoryBroker`` that any number of threads may use."""

    store: SharedStore

    def __init__(self, store: SharedStore, epoch: int) -> None:
        super().__init__(store, epoch)

    def wait(self, list_name: str = "wake", timeout_s: float = 1.0) -> bool:
        """Take a token; if there is none sleep until there may be, and look once more. Raises EpochOver."""
        with self.store.changed:
            if super().wait(list_name):
                return True
            return self.store.changed.wait(timeout_s) and super().wait(list_name)


def _one_at_a_time(step: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(step)
    def locked(self: SharedBroker, *args: Any, **options: Any) -> Any:
        with self.store.changed:
            try:
                return step(self, *args, **options)
            finally:
                self.store.tell()

    return locked


for _name in STEPS:
    setattr(SharedBroker, _name, _one_at_a_time(getattr(MemoryBroker, _name)))
