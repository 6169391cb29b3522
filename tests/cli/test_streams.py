"""Commands whose standard streams are closed, or full."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = (sys.executable, "-m", "oarlock.cli", "config")


@pytest.mark.parametrize("how", [(), ("-o", "json"), ("--help",)])
def test_a_full_disk_is_told_in_one_line(how: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*CONFIG, *how], check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (
        1,
        "oarlock: cannot write: No space left on device; make room, and try again\n",
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_none_s_business(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *CONFIG], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_socket_is_taken_for_a_closed_stream() -> None:
    """uvloop aborts a process that closes a descriptor of such a number."""
    looks = "import os, sys; from oarlock.cli import streams; streams.open_what_is_closed(); sys.exit(os.pipe()[0] < 3)"
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", looks]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
