"""The order of all tests: files that take long begin first, so that no process is left alone with one at the end."""

from __future__ import annotations

import pytest

LONG = ("tests/simulation/", "tests/model/", "tests/chaos/test_campaign", "tests/cluster/acceptance/", "tests/e2e/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
