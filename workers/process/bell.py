"""Wakes the main thread: from the I/O thread when something has arrived, from a signal handler when it is to stop."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Bell:
    """Any number of rings before a wait are one. A SimpleQueue, because its put may be called in a signal handler."""

    def __init__(self) -> None:
        self._tokens: SimpleQueue[None] = SimpleQueue()
        self._rung = False

    def ring(self) -> None:
        """End the present or the next wait."""
        if not self._rung:
            self._rung = True
            self._tokens.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Sleep until it rings. Returns whether it did."""
        try:
            self._tokens.get(timeout=timeout_s)
        except Empty:
            return False
        finally:
            # Before the caller looks for what has arrived: a ring from here on means something it may miss.
            self._rung = False
        return True
