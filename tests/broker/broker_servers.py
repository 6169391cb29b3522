"""Which servers the broker's tests run against."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from oarlock.sandbox.redis import redis_binary
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sandbox.redis.redis_binary import ServerBinary

Serve = Callable[[ServerBinary], tuple[EmbeddedRedis, dict[str, Any]]]
"""A running server of a kind, with a client for each user."""


@contextmanager
def held(pid: int) -> Iterator[None]:
    """A server answers nothing meanwhile, however long that takes, and then does all that it was asked."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@cache
def server_binaries() -> tuple[redis_binary.ServerBinary, ...]:
    """The preferred redis-server and valkey-server of this machine and, where it is another, the one of the 6.2 line.

    Empty where there is none at all; then the tests are skipped, or fail where the environment has CI set.
    """
    found = list(redis_binary.installed())
    newest: dict[str, redis_binary.ServerBinary] = {}
    for binary in found:
        if binary.version >= (7, 0):
            newest.setdefault(Path(binary.path).name, binary)
    newer = list(newest.values())
    older = [binary for binary in found if binary.version < (7, 0)][:1]
    if os.environ.get("CI"):
        assert newer + older, "CI is set, and there is no Redis server to test against"
    return tuple(newer + older)


REAL = [pytest.param(binary, id=str(binary).replace("redis-server ", "redis-")) for binary in server_binaries()]
if not REAL and not os.environ.get("CI"):
    REAL = [pytest.param(None, id="no-server", marks=pytest.mark.skip(reason="no Redis server on this machine"))]
