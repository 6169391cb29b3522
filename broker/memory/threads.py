"""The twin for the threads of one process: one step at a time, and waits that sleep until somebody has something.

A fleet in one process (``oarlock.testing``) works over it as over a Redis server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore

STEPS = (
    *("add", "add_after", "add_rate_limited", "forget", "num_requeues", "register", "claim", "load", "local_cache"),
    *("announce", "finish", "finish_and_claim", "release", "reclaim", "renew", "due", "ingest", "stage"),
    *("send_stage", "commit_list", "republish", "open", "pause", "compare", "pass_to"),
    *("look", "look_apart", "page", "watermark", "watermarks", "steer", "drain", "acts", "pauses"),
    *("report", "budget", "wait_timer"),
)
"""Every method of ``broker.protocol.Broker`` but ``wait``."""


class SharedStore(MemoryStore):
    """``on_timer`` is called, on the thread of the step, when a delayed key is due earlier than was known."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock)
        self.changed = threading.Condition(threading.RLock())
        self.on_timer: Callable[[], None] = lambda: None
        self.waits_ended = 0
        """How often all waits were ended."""

    def bootstrap(self, number: int) -> None:
        with self.changed:
            super().bootstrap(number)
            self.wake_all()

    def wake_all(self) -> None:
        """End all waits."""
        with self.changed:
            self.waits_ended += 1
            self.changed.notify_all()

    def tell(self) -> None:
        """A step has ended: let those look whose tokens may be there. The caller holds ``changed``."""
        if any(queue.wake_tokens for queue in self.state.queues.values()):
            self.changed.notify_all()
        if self.state.timer_tokens:
            self.on_timer()


class SharedBroker(MemoryBroker):
    """A ``MemoryBroker`` that any number of threads may use."""

    store: SharedStore

    def __init__(self, store: SharedStore, epoch: int) -> None:
        super().__init__(store, epoch)

    def wait(self, queues: Sequence[str], timeout_s: float = 1.0) -> str | None:
        """Take a token; if there is none sleep until there is, or all waits are ended. Raises EpochOver."""
        found: list[str | None] = [None]
        with self.store.changed:
            before = self.store.waits_ended

            def over() -> bool:
                found[0] = MemoryBroker.wait(self, queues)
                return found[0] is not None or self.store.waits_ended != before

            self.store.changed.wait_for(over, timeout_s)
        return found[0]


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
