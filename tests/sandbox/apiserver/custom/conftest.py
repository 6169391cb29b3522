"""What the tests of custom resources share."""

from __future__ import annotations

import pytest

from tests.sandbox.api_harness import Api
from tests.sandbox.apiserver.custom.definitions import DEFINITIONS, definition


@pytest.fixture
def widgets(api: Api) -> Api:
    """A server with the definition of widgets."""
    api.create(DEFINITIONS, definition())
    return api
