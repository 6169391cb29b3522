"""Functions that take longer than a turn may, in a whole cluster: the real turns on threads."""

from __future__ import annotations

import threading
from functools import partial

import pytest

import oarlock
from oarlock.testing import Cluster, running
from oarlock.workers.process.settings import Settings

LIMIT_MS = 1_000


@oarlock.resource("slow.example.com/v1")
class Slow(oarlock.Object):
    pass


RUNS = threading.Semaphore(0)
DONE = threading.Event()


@oarlock.steps(Slow)
def slow(obj: Slow, ctx: oarlock.Context) -> None:
    RUNS.release()
    while not DONE.wait(0.02):
        ctx.still_mine()


def test_a_function_that_takes_longer_than_a_turn_is_told_of_and_not_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "Settings", partial(Settings, turn_limit_ms=LIMIT_MS))
    with Cluster(operator=[slow], controllers="") as cluster:
        cluster.create({"apiVersion": "slow.example.com/v1", "kind": "Slow", "metadata": {"name": "a"}})
        for _ in range(3):  # so that two were given up
            assert RUNS.acquire(timeout=30)
        DONE.set()
        (told,) = cluster.wait("events", lambda listed: [each for each in listed if each["reason"] == "Failed"])
    assert told.get("count", 1) == 1
    assert "the function of slow was not done after 1 s, the limit of a turn" in told["message"]
    assert "raise --turn-limit-ms" in told["message"]
