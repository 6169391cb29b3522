"""What the tests of the embedded API share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.api_harness import Api, running


@pytest.fixture
def api() -> Iterator[Api]:
    """A fresh server and a client for it."""
    with running() as client:
        yield client
