"""A `redis-server` in front of the real one on PATH: it sets the server's clock, or keeps an append-only file.

`oarlock up` starts it as any other; nothing of the fleet knows of it.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from oarlock.sandbox.host import write_file
from oarlock.sandbox.redis.redis_binary import ServerBinary

_LIBRARIES = ("/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/lib64/faketime", "/usr/local/lib/faketime")
_NAME = "libfaketimeMT.so.1"
CUT_FILE = "cut-at"
LOG_OPTIONS = "--appendonly yes --appendfsync everysec --auto-aof-rewrite-percentage 0 --aof-use-rdb-preamble no"


class NoClock(Exception):
    """No library is there that could set a program's clock; one line with the mend."""


def find_library() -> Path:
    """libfaketime. Raises NoClock."""
    for pattern in _LIBRARIES:
        for found in sorted(Path("/").glob(f"{pattern.lstrip('/')}/{_NAME}")):
            return found
    raise NoClock(f"to set the clock of a Redis takes {_NAME} (Debian: apt-get install faketime)")


class ClockFile:
    """What time the server takes it to be: ``set`` an offset in seconds, which it follows within a second."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set(0)

    def set(self, offset_s: int) -> None:
        write_file(self.path, f"{offset_s:+d}\n")


def program_with_clock(folder: Path, real: ServerBinary, clock: ClockFile, library: Path) -> Path:
    """Its folder, for the head of PATH."""
    environment = {
        # The C library's own malloc: jemalloc asks for the time before libfaketime can tell it, and the server ends.
        "LD_PRELOAD": f"{library} libc.so.6",
        "FAKETIME_TIMESTAMP_FILE": str(clock.path),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    return _write(folder, f'exec env {words} {shlex.quote(real.path)} "$@"')


def program_with_log(folder: Path, real: ServerBinary) -> Path:
    """Its folder, for the head of PATH. Where ``CUT_FILE`` lies in it, the log is cut to that size before the start."""
    cut = shlex.quote(str(folder / CUT_FILE))
    text = f"""if [ -s {cut} ]; then
  read -r size log < {cut} && truncate -s "$size" "$log" && rm {cut}
fi
exec {shlex.quote(real.path)} "$@" {LOG_OPTIONS}"""
    return _write(folder, text)


def _write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "redis-server"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return folder


def path_with(folder: Path) -> str:
    """PATH for the processes that are to find it."""
    return f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
