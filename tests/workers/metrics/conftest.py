"""A Redis for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """With nothing in it."""
    with EmbeddedRedis(tmp_path_factory.mktemp("metrics") / "redis") as running:
        yield running
