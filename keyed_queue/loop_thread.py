"""An event loop in a thread, for functions that are ``async def``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any


class LoopThread:
    """One loop for all runs of a consumer, so that they can share what belongs to a loop, such as a client session."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="oarlock-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run it to its end and raise what it raises; for threads other than the loop's."""
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        """End the loop. No run is under way any more."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
