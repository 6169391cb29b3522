"""One event loop in one daemon thread; the main thread stays synchronous.

An exception that a signal handler raises inside an event loop is lost there. So the main thread waits on a future,
where RQ's death penalty can interrupt it; the coroutine it waited for is then cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import uvloop

from oarlock.workers.process.log_line import line

log = logging.getLogger("oarlock.worker")

T = TypeVar("T")

LOOK_UP_S = 0.1
"""A signal that comes just before the main thread blocks does not wake it, and its handler runs only after the next
wake-up. So the thread wakes up this often."""


class IoLoop:
    """Starts on construction; ``close`` ends it. Must be made after a fork, never before."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="io", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while not self._closing:  # a function of a user may stop the loop, by `loop.stop()` too
                try:
                    self._loop.run_forever()
                except (SystemExit, KeyboardInterrupt) as error:
                    # Raised by a task: asyncio hands it to who waits for the task, and then ends the loop by it.
                    log.error(line("task_would_exit", error=repr(error)), exc_info=error)
        finally:
            self._loop.close()  # so that a later call is refused instead of waiting for ever

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """For tasks that outlive a call."""
        return self._loop

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine. Cancelling the returned future cancels it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Wait for a coroutine. An exception of a signal handler, or the timeout, cancels it."""
        future = self.submit(coroutine)
        ends_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        try:
            while True:
                try:
                    return future.result(min(LOOK_UP_S, max(0.0, ends_s - time.monotonic())))
                except TimeoutError:
                    if future.done():
                        return future.result()  # its own, or it has just come
                    if time.monotonic() >= ends_s:
                        raise
        except BaseException:
            future.cancel()
            raise

    def close(self, timeout_s: float = 2.0) -> None:
        """Stop the loop and wait for its thread."""
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(timeout_s)

    def _stop(self) -> None:
        """On its thread, so that the loop is not closed before it has heard of it."""
        self._closing = True
        self._loop.stop()
