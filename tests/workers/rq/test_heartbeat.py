"""A worker's exchange with RQ's keys."""

from __future__ import annotations

from typing import Any

import fakeredis
import pytest

from oarlock.workers.rq.heartbeat import Heartbeat

WORKER = "rq:worker:w"


def test_what_a_signal_handler_notes_meanwhile_goes_out_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    client = fakeredis.FakeRedis(protocol=2)
    heartbeat, pipeline = Heartbeat(client, WORKER, 60, []), type(client.pipeline())
    execute = pipeline.execute

    def interrupted(*args: Any, **options: Any) -> Any:
        heartbeat.facts["shutdown_requested_date"] = "noon"
        return execute(*args, **options)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(pipeline, "execute", interrupted)
        heartbeat.beat("busy")
    assert client.hget(WORKER, "shutdown_requested_date") is None
    heartbeat.beat("busy")
    assert client.hget(WORKER, "shutdown_requested_date") == b"noon"
    assert heartbeat.facts == {}
