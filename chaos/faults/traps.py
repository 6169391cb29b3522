"""Traps at named points: the campaign sets one, and the worker that comes to it for the n-th time kills itself.

They lie in a file that the campaign and all processes of the fleet map into memory: a byte for each point, 0 where no
trap is set. So a point without a trap costs a worker the look at a byte.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from oarlock.chaos.faults.points import NUMBER, POINTS

FOLDER = "OARLOCK_CHAOS_TRAPS"
"""Environment: where they lie."""
MEMORY, DEATHS = "traps", "deaths.jsonl"


class Death(NamedTuple):
    """A worker that has killed itself."""

    at_s: float
    pid: int
    holder: str
    point: str


class Traps:
    """Those of one folder. ``holder``: the worker that this process is; "" for any other process, which lives on."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._deaths, self._read_to = folder / DEATHS, 0
        self._file = os.open(folder / MEMORY, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self._file, len(POINTS))
        self._memory = mmap.mmap(self._file, len(POINTS))
        self._threads = threading.Lock()
        self.holder = ""

    # -- the campaign

    def set(self, point: str, visits: int) -> None:
        """Let the worker die that makes the n-th visit from now on. One trap a point."""
        with self._alone():
            self._memory[NUMBER[point]] = visits

    def is_set(self, point: str) -> bool:
        return self._memory[NUMBER[point]] != 0

    def clear(self, point: str) -> bool:
        """Take a trap away. Whether it was still there."""
        with self._alone():
            left, self._memory[NUMBER[point]] = self._memory[NUMBER[point]], 0
        return left != 0

    def new_deaths(self) -> list[Death]:
        """Those since the last call."""
        with self._alone():
            if not self._deaths.exists():
                return []
            with self._deaths.open() as file:
                file.seek(self._read_to)
                lines = file.readlines()
                self._read_to = file.tell()
        return [Death(*json.loads(line)) for line in lines]

    # -- a worker

    def reached(self, point: str) -> None:
        """A point is reached. Does not return where this was the visit that a trap waited for."""
        if self.holder and self._memory[NUMBER[point]]:
            self._step_into(point)

    def _step_into(self, point: str) -> None:
        with self._alone():
            left = self._memory[NUMBER[point]]
            if left == 1:  # the campaign reads what is written as soon as the byte is 0
                with self._deaths.open("a") as file:
                    file.write(json.dumps(Death(time.time(), os.getpid(), self.holder, point)) + "\n")
                self._memory[NUMBER[point]] = 0
                os.kill(os.getpid(), signal.SIGKILL)
            if left:
                self._memory[NUMBER[point]] = left - 1

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Against other processes (the kernel unlocks for one that dies) and threads of this one."""
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
