"""A Redis for the tests of a module; what tests of several folders share stands beside these folders."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis

sys.path.append(str(Path(__file__).parents[1] / "e2e"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """With nothing in it."""
    with EmbeddedRedis(tmp_path_factory.mktemp("metrics") / "redis") as running:
        yield running
