"""The order of all tests: files that take long begin first, so that no process is left alone with one at the end. Then
come campaigns of faults, which want a machine that is not busy with other fleets. What a process of tests has in common
with one of ours: it collects garbage as seldom, and hears SIGINT. What tests change in it is put back. And property
tests, wherever they are, do not fail for a machine that is busy with others; failures print how to be replayed.
"""

from __future__ import annotations

import gc
import logging
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from oarlock.workers.process.collecting import YOUNG_MAX

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell has it so in the background, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("oarlock", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("oarlock")

LONG = (
    *("tests/simulation/", "tests/model/", "tests/cluster/acceptance/", "tests/e2e/"),
    *("tests/workers/ingest/test_interleaved", "tests/workers/ingest/test_process", "tests/workers/supervisor/"),
    *("tests/workers/rq/test_rq_tools", "tests/cli/board/test_board_page", "tests/cli/nodes/test_nodes_run"),
)
CAMPAIGNS = "tests/chaos/test_campaigns"
LOGGERS = (logging.getLogger(), logging.getLogger("oarlock"))
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def what_commands_set_is_put_back() -> Iterator[None]:
    """A command that a test runs in this process sets levels of loggers and handlers of signals for good, and the next
    test may want other lines, or an end.
    """
    levels = [each.level for each in LOGGERS]
    handlers = [signal.getsignal(each) for each in SIGNALS]
    yield
    for logger, level in zip(LOGGERS, levels, strict=True):
        logger.setLevel(level)
    for number, handler in zip(SIGNALS, handlers, strict=True):
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (not item.nodeid.startswith(LONG), not item.nodeid.startswith(CAMPAIGNS)))


gc.disable()  # what is made while tests are collected stays; looking through it again and again takes two fifths


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, 20, 20)
    gc.enable()
