"""An event loop in a thread, for functions that are ``async def``."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("oarlock.queue")


class LoopThread:
    """One loop for all runs of a consumer, so that they can share what belongs to a loop, such as a client session."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run_until_closed, name="oarlock-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run it to its end, return what it returns and raise what it raises; for threads other than the loop's."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        """End the loop. No run is under way any more."""
        self._closing.set()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run_until_closed(self) -> None:
        """SystemExit and KeyboardInterrupt of one task end ``run_forever``, beside being that task's result. The loop
        goes on: the task's run gets its error only then, and the other runs share the loop.
        """
        while not self._closing.is_set():
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                log.warning("a task raised %r; its event loop goes on", error)
