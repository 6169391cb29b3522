"""RQ's keys on a server of their own, which only show what happens: the fleet works while that server says nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from oarlock.broker.connection.client import connect
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.e2e.e2e_helpers import SET, RunningUp, oarlock, until

ROUNDS, WITHIN_S = 6, 12
"""A command of a client with RQ's own patience would hold the worker for 30 s."""


@pytest.fixture
def rq(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis(tmp_path / "rq") as server:
        yield server


@pytest.fixture
def up(rq: EmbeddedRedis, tmp_path: Path) -> Iterator[RunningUp]:
    (tmp_path / "web.yaml").write_text(SET.format(name="web", namespace="shop"))
    words = ("--workers", "1", "--ingestors", "1", "-f", str(tmp_path / "web.yaml"))
    running = RunningUp(tmp_path / "state", *words, OARLOCK_RQ_REDIS_URL=rq.url("worker"))
    yield running
    assert running.stop() == 0


def silent(rq: EmbeddedRedis) -> None:
    os.kill(rq.pid, signal.SIGSTOP)


def speaking(rq: EmbeddedRedis) -> None:
    os.kill(rq.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("away", "back"),
    [pytest.param(silent, speaking, id="silent"), pytest.param(EmbeddedRedis.kill, EmbeddedRedis.restart, id="gone")],
)
def test_the_fleet_works_while_rq_is_away(
    up: RunningUp, rq: EmbeddedRedis, away: Callable[[EmbeddedRedis], None], back: Callable[[EmbeddedRedis], None]
) -> None:
    """Also a worker that begins meanwhile. RQ knows it when it is back, and is heard by it."""
    until(lambda: heard_by(rq), 20, "RQ knows the worker")
    away(rq)
    try:
        for number in range(ROUNDS):
            before = turns(up)
            if number == ROUNDS // 2:
                (worker,) = up.processes("worker")
                os.kill(worker.pid, signal.SIGKILL)
            done = oarlock("requeue", "rs/shop/web", "--state-dir", str(up.state.root))
            assert done.returncode == 0, done.stderr
            until(lambda seen=before: turns(up) > seen, WITHIN_S, f"turn {number} has come")
    finally:
        back(rq)
    until(lambda: heard_by(rq) == [worker.name for worker in up.processes("worker")], 30, "RQ knows the new worker")


def heard_by(rq: EmbeddedRedis) -> list[str]:
    """The names of the workers that RQ knows, and whose commands they listen to."""
    client = connect(rq.url("admin"))
    try:
        keys = [key.decode() for key in cast(set[bytes], client.smembers("rq:workers"))]
        names = [key.removeprefix("rq:worker:") for key in keys]
        return [name for name in names if client.execute_command("PUBSUB", "NUMSUB", f"rq:pubsub:{name}")[1]]
    finally:
        client.close()


def turns(up: RunningUp) -> int:
    """How many its history has."""
    return sum(each["turns"] for each in up.ask("history", "rs/shop/web"))
