"""The process that answers scrapers is a convenience: where it cannot be, its supervisor works on."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from oarlock.workers.counters.table import Table
from oarlock.workers.metrics.serving import sibling
from oarlock.workers.metrics.serving.sibling import AGAIN_MS, Sibling
from oarlock.workers.process.settings import Settings


def test_where_no_process_can_be_forked_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[str] = []

    def fork(name: str, life: object) -> int:
        tried.append(name)
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(sibling, "fork_process", fork)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kept = Sibling(listening, Table(1), Settings())
        for now_ms in (1_000, 1_000 + AGAIN_MS - 1, 1_000 + AGAIN_MS):
            kept.keep(now_ms)
        kept.end()
    assert tried == ["metrics", "metrics"]
    assert caplog.text.count("metrics_not_started") == 2
