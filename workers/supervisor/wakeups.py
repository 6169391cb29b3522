"""Signals as bytes on a socket, so that one selector hears of deaths, of Redis and of a request to stop.

While it is entered, signals neither interrupt nor raise: the loop reads them when it is ready.
"""

from __future__ import annotations

import signal
import socket
from types import FrameType, TracebackType
from typing import Any

WATCHED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)


class Wakeups:
    """Main thread only. ``socket`` is readable when ``read`` has something."""

    def __init__(self) -> None:
        self.socket, self._writer = socket.socketpair()
        self.socket.setblocking(False)
        self._writer.setblocking(False)
        self._before: dict[int, Any] = {}
        self._before_fd = -1

    def __enter__(self) -> Wakeups:
        self._before_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for signum in WATCHED:
            self._before[signum] = signal.signal(signum, _heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._before_fd)
        self.socket.close()
        self._writer.close()

    def read(self) -> bytes:
        """The numbers of the signals since the last call."""
        try:
            return self.socket.recv(4096)
        except BlockingIOError:
            return b""


def _heard(signum: int, frame: FrameType | None) -> None:
    """The byte is on the socket already."""
