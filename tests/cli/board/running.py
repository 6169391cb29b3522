"""A board of a running fleet, in a process of its own."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.e2e_helpers import environment, stopped, until

READY_WITHIN_S = 60.0


@contextmanager
def running_board(state: Path, log: Path, command: str = "oarlock board") -> Iterator[str]:
    """The address of a board of the `oarlock up` with this state directory, at a port that is free.

    ``command``: as people type it, in the folder of ``log``, which gets what it says.
    """
    words = [sys.executable, "-m", "oarlock.cli", *shlex.split(command)[1:], "--bind", "127.0.0.1:0"]
    mine = environment(OARLOCK_STATE_DIR=str(state))
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=log.parent, env=mine)

    try:
        yield address_of(process, log)
    finally:
        stopped(process, signal.SIGTERM, 10)


def address_of(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where a board that writes this log serves, once it does."""

    def address() -> str:
        assert process.poll() is None, f"it ended: {log.read_text()}"
        found = re.search(r"the board is at (\S+)", log.read_text())
        return found[1] if found else ""

    return str(until(address, READY_WITHIN_S, f"{log}: it is ready", pause_s=0.1))
