"""How many jobs a peer's worker has done, in memory that it shares with the benchmark: that costs Redis nothing."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

COUNT_FILE = "OARLOCK_BENCH_COUNT_FILE"
REDIS_URL = "OARLOCK_BENCH_REDIS_URL"
"""Environment variables that the benchmark gives to a peer's worker."""


class Count:
    """One number in a file. One process adds to it, on one thread."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._cells = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")

    @property
    def value(self) -> int:
        return self._cells[0]

    def add(self) -> None:
        """The job."""
        self._cells[0] += 1


def count_of_this_worker() -> Count:
    """The one that the benchmark reads."""
    return Count(Path(os.environ[COUNT_FILE]))


def redis_url() -> str:
    """Where the queue is."""
    return os.environ[REDIS_URL]
