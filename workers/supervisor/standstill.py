"""Notices a worker that a signal has stopped (SIGSTOP, Ctrl-Z), from the state that the kernel tells of its process.

Such a worker holds its keys and does nothing, while its leases are renewed for it. No code of a user's looks like that:
a function that computes or waits is running or sleeping, whatever it takes, and a debugger stops a process otherwise.
"""

from __future__ import annotations

from pathlib import Path

LOOK_EVERY_MS = 500


class Standstill:
    """Of one worker after another, as the process that renews their leases sees them."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._look_at_ms = 0
        self._since_ms: int | None = None

    def lasts(self, pid: int, now_ms: int, limit_ms: int) -> bool:
        """Whether the process has been found stopped at each look for ``limit_ms``."""
        if now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + LOOK_EVERY_MS
            if not self._is_stopped(pid):
                self._since_ms = None
            elif self._since_ms is None:
                self._since_ms = now_ms
        return self._since_ms is not None and now_ms - self._since_ms >= limit_ms

    def _is_stopped(self, pid: int) -> bool:
        """False where nobody knows: it has ended, or there is no /proc."""
        try:
            stat = (self._proc / str(pid) / "stat").read_bytes()
        except OSError:
            return False
        return stat.rpartition(b")")[2].split()[:1] == [b"T"]  # the name before it may hold brackets
