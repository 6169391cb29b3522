"""Log lines that nobody has to wait for.

A pipe or a terminal whose reader has stopped fills up, and the next line would hold its writer for good, with keys in
hand and leases to renew: a log collector that hangs would stop a whole fleet. So a line waits briefly. After that lines
are dropped until one gets through again, and the next one says how many are missing.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import stat
import time
from collections.abc import Callable
from typing import TextIO

from oarlock.workers.process.log_line import line

PATIENCE_MS = 200

Send = Callable[[bytes], int]
"""Writes, and tells how many bytes were taken. Raises BlockingIOError where none can be."""


class LogHandler(logging.StreamHandler[TextIO]):
    """As a StreamHandler. Of what can stop taking lines (a pipe, a socket, a terminal) nobody waits for more than
    ``patience_ms``, and after lines were lost not at all.
    """

    def __init__(self, stream: TextIO | None, patience_ms: int = PATIENCE_MS) -> None:
        super().__init__(stream)
        self._patience_ms = patience_ms
        self._send, self._watched = _unblocked(stream)
        self._of_pid, self._rest, self._lost = os.getpid(), b"", 0
        """``_rest``: the end of a line of which a part was taken, which goes before the next one; another process may
        come in between. ``_lost``: lines that were not taken. Not a child's.
        """

    def emit(self, record: logging.LogRecord) -> None:
        """Write it, or count it as lost."""
        if self._send is None:
            super().emit(record)
            return
        if self._of_pid != os.getpid():
            self._of_pid, self._rest, self._lost = os.getpid(), b"", 0
        try:
            text = self._encoded(record)
            if self._lost:
                text = self._encoded(_lines_lost(self._lost)) + text
        except Exception:
            self.handleError(record)
            return
        if self._written(self._send, text):
            self._lost = 0
        else:
            self._lost += 1

    def _encoded(self, record: logging.LogRecord) -> bytes:
        return (self.format(record) + self.terminator).encode(errors="backslashreplace")

    def _written(self, send: Send, text: bytes) -> bool:
        """Whether the text was taken, or so much of it that the rest goes before the next one."""
        waits_until_s = time.monotonic() + (0 if self._lost else self._patience_ms / 1000)
        left = self._rest + text
        while left:
            try:
                left = left[send(left) :]
            except BlockingIOError:
                if (remaining_ms := (waits_until_s - time.monotonic()) * 1000) <= 0:
                    break
                _has_room(self._watched, remaining_ms)
            except OSError:  # the reader has gone
                break
        begun = len(left) < len(text)
        self._rest = left if begun else left[: len(left) - len(text)]
        return begun


def _unblocked(stream: TextIO | None) -> tuple[Send | None, int]:
    """What writes to where the stream leads, at once or not at all, and the number to watch for room. None for what
    always takes lines, such as a file. The stream stays as it is: others write to the same pipe.
    """
    if stream is None:  # it was closed before we began
        return None, -1
    try:
        number = stream.fileno()
        mode = os.fstat(number).st_mode
    except (OSError, ValueError):
        return None, -1
    if stat.S_ISSOCK(mode):
        peer = socket.socket(fileno=os.dup(number))
        return lambda text: peer.send(text, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL), peer.fileno()
    if not (stat.S_ISFIFO(mode) or os.isatty(number)):
        return None, -1
    try:
        own = os.open(f"/proc/self/fd/{number}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # another user's: then it waits if somebody takes the room between the look and the line
        return lambda text: _polled(number, text), number
    return lambda text: os.write(own, text), own


def _polled(number: int, text: bytes) -> int:
    if not _has_room(number, 0):
        raise BlockingIOError
    return os.write(number, text[: select.PIPE_BUF])


def _has_room(number: int, limit_ms: float) -> bool:
    room = select.poll()
    room.register(number, select.POLLOUT)
    return bool(room.poll(limit_ms))


def _lines_lost(count: int) -> logging.LogRecord:
    text = line("lines_lost", lines=count, reason="nobody read them")
    return logging.LogRecord("oarlock.log", logging.WARNING, __file__, 0, text, None, None)
