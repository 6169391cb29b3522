"""Ids of upstream's cases, for tests that are no tables."""

from __future__ import annotations

import pytest


@pytest.fixture
def inventory(request: pytest.FixtureRequest) -> str:
    """Names the upstream case in the test's id; see ``turn_inventory``."""
    return str(request.param)
