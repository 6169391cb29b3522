"""The cluster of these tests: each test runs over the twin and over a Redis server, and must not see a difference."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session", params=["memory", "redis"])
def cluster_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"redis": request.param == "redis"}
