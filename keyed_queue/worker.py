"""A function and how it is run: what ``KeyedQueue.worker`` makes of a function."""

from __future__ import annotations

import functools
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from oarlock.queue.consumer import Consumer
from oarlock.queue.context import Context
from oarlock.queue.values import Policy

if TYPE_CHECKING:
    from oarlock.queue.keyed import KeyedQueue

FOR_EVER = 2**31
"""So many retries."""

Function = Callable[[str, Context], Awaitable[None] | None]
"""What runs for a key. Blocking functions run in threads, ``async def`` ones in one event loop."""


@dataclass(frozen=True, slots=True)
class Options:
    """``lease_s``: how long a dead consumer's keys wait; a consumer that lives renews it, however long a run takes.
    ``threads``: runs side by side in one process. ``retries``: failed runs before a key is parked, after the first
    (None: never). Failure n waits ``back_off_s * 2**(n-1)``, at most ``back_off_max_s``.
    """

    lease_s: float = 30.0
    threads: int = 1
    retries: int | None = 5
    back_off_s: float = 1.0
    back_off_max_s: float = 600.0

    def __post_init__(self) -> None:
        for good, told in (
            (1 <= self.lease_s <= 86_400, f"lease_s={self.lease_s!r}: give seconds from 1 to 86400"),
            (_whole(self.threads, 1, 1_000), f"threads={self.threads!r}: give a whole number from 1 to 1000"),
            (
                self.retries is None or _whole(self.retries, 0, FOR_EVER),
                f"retries={self.retries!r}: give a whole number from 0 on, or None for no end",
            ),
            (0 < self.back_off_s <= self.back_off_max_s < 1e9, "back_off_s must be above 0, at most back_off_max_s"),
        ):
            if not good:
                raise ValueError(told)

    @property
    def policy(self) -> Policy:
        retries = FOR_EVER if self.retries is None else self.retries
        return Policy(retries, max(1, int(self.back_off_s * 1000)), max(1, int(self.back_off_max_s * 1000)))


def _whole(number: object, least: int, most: int) -> bool:
    """Whether it is a whole number of that range: the scripts of Redis take no other."""
    return isinstance(number, int) and least <= number <= most


class GivenOptions(TypedDict, total=False):
    """Some of them."""

    lease_s: float
    threads: int
    retries: int | None
    back_off_s: float
    back_off_max_s: float


class Worker:
    """A function of a queue. Call it as the function it is; ``run`` makes this process a consumer."""

    def __init__(self, queue: KeyedQueue, function: Function, options: Options) -> None:
        functools.update_wrapper(self, function)
        self.queue, self.function, self.options = queue, function, options

    def __call__(self, key: str, ctx: Context) -> Awaitable[None] | None:
        """The function itself: a test may call it with a context of its own."""
        return self.function(key, ctx)

    def run(
        self,
        *,
        burst: bool = False,
        for_s: float | None = None,
        should_stop: Callable[[], bool] | None = None,
        own_signals: bool = True,
    ) -> int:
        """Take keys and run them until SIGTERM or SIGINT; a second signal does not wait for the runs under way. Returns
        how many runs ended. ``burst``: until nothing is queued. ``for_s``: take no key after so long. ``should_stop``
        is asked about once a second; what it raises ends the consumer, after the runs under way.
        ``own_signals=False`` leaves signals to the caller; so does a thread that is not the main one. What a handler
        of the caller's raises leaves ``run`` at once: runs under way go on in their threads, and no key is taken.
        """
        consumer = Consumer(self.queue.steps, self.function, self.options, self.queue.add)
        own_signals = own_signals and threading.current_thread() is threading.main_thread()
        return consumer.run(burst, for_s, should_stop, own_signals)

    def path(self) -> str:
        """``module:name`` under which another process finds this worker. Raises ValueError if there is none."""
        function = self.function
        if function.__module__ == "__main__" or "." in function.__qualname__:
            raise ValueError(
                f"{function.__module__}.{function.__qualname__}: RQ workers import the function, so put it"
                " at the top of a module that they can import"
            )
        return f"{function.__module__}:{function.__qualname__}"
