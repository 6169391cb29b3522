"""The process that answers scrapers is a convenience: where it cannot be, its supervisor works on."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from oarlock.workers.counters.table import Table
from oarlock.workers.metrics.serving import metrics_process
from oarlock.workers.metrics.serving.metrics_process import MetricsProcess
from oarlock.workers.process.child import NOT_STARTED_PAUSE_MS
from oarlock.workers.process.settings import Settings


def test_where_no_process_can_be_forked_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[str] = []

    def fork(name: str, life: object, **options: object) -> int:
        tried.append(name)
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(metrics_process, "fork_process", fork)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        process = MetricsProcess(listening, Table(1), Settings())
        for now_ms in (1_000, 1_000 + NOT_STARTED_PAUSE_MS - 1, 1_000 + NOT_STARTED_PAUSE_MS):
            process.keep(now_ms)
        process.end()
    assert tried == ["metrics", "metrics"]
    assert caplog.text.count("metrics_not_started") == 1, "it is tried for as long as the shortage lasts"
