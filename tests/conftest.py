"""The order of all tests: files that take long begin first, so that no process is left alone with one at the end. And
how often a process of tests collects garbage: as seldom as one of ours.
"""

from __future__ import annotations

import gc

import pytest

LONG = (
    *("tests/simulation/", "tests/model/", "tests/chaos/test_campaign", "tests/cluster/acceptance/", "tests/e2e/"),
    *("tests/workers/ingest/test_interleaved", "tests/workers/ingest/test_process", "tests/workers/supervisor/"),
    *("tests/workers/rq/test_rq_tools", "tests/cli/board/test_board_page", "tests/cli/nodes/test_nodes_run"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_collection_finish() -> None:
    gc.set_threshold(20_000, 20, 20)
