"""Wakes a main thread that waits: for signals, as bytes on a socket, and for what other threads have to say."""

from __future__ import annotations

import select
import selectors
import signal
import socket
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

FOR_PARENTS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)
"""The signals that a process with children has to hear of."""


class SignalSocket:
    """Signals as bytes on a socket, so that one selector hears of deaths, of Redis and of a request to stop.

    While it is open, signals neither interrupt nor raise: the loop reads them when it is ready. Main thread only.
    """

    def __init__(self, *watched: signal.Signals) -> None:
        self.socket, self._writer = socket.socketpair()
        self.socket.setblocking(False)
        self._writer.setblocking(False)
        self._fd_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._before: dict[int, Any] = {each: signal.signal(each, _heard) for each in watched or FOR_PARENTS}

    def read(self) -> bytes:
        """The numbers of the signals since the last call."""
        try:
            return self.socket.recv(4096)
        except BlockingIOError:
            return b""

    def wait(self, timeout_s: float) -> bytes:
        """As ``read``, but wait for a signal first."""
        select.select([self.socket], [], [], timeout_s)
        return self.read()

    def close(self) -> None:
        """End it, for a process that is about to end: the signals go on being ignored."""
        signal.set_wakeup_fd(self._fd_before)
        self.socket.close()
        self._writer.close()

    def __enter__(self) -> SignalSocket:
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        self.close()


def _heard(signum: int, frame: FrameType | None) -> None:
    """The byte is on the socket already."""


class Wakeup:
    """An event that the I/O thread or a signal handler sets and the main thread waits for; a wait clears it.

    A SimpleQueue, because its put may be called in a signal handler. Any number of calls before a wait are one.
    """

    def __init__(self) -> None:
        self._tokens: SimpleQueue[None] = SimpleQueue()
        self._is_set = False

    def set(self) -> None:
        """End the present or the next wait."""
        if not self._is_set:
            self._is_set = True
            self._tokens.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Sleep until it is set. Returns whether it was."""
        try:
            self._tokens.get(timeout=timeout_s)
        except Empty:
            return False
        finally:
            # Before the caller looks for what has arrived: a ``set`` from here on means something it may miss.
            self._is_set = False
        return True


def new_selector() -> selectors.PollSelector:
    """For a process that forks. epoll goes on with a socket that was closed here as long as a child has inherited it,
    and tells of it under the number that the next socket got: that would be read, and nothing would come.
    """
    return selectors.PollSelector()
