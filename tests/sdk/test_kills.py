"""Worker processes killed with SIGKILL while functions of users run in them: no effect outside is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from oarlock.broker.connection.client import connect
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.testing import Cluster
from oarlock.testing.until import gone
from tests import ROOT
from tests.e2e.e2e_helpers import environment
from tests.workers.fleet_rig import alive

OBJECTS, WORKERS, KILLS = 32, 3, 8
EACH = OBJECTS // KILLS
"""Payments that come right before each kill."""
LIMIT_S = 60.0


class Operator:
    """`oarlock operator` over the API server of a cluster, and a Redis."""

    def __init__(self, cluster: Cluster, server: EmbeddedRedis, folder: Path) -> None:
        self.ledger, self.log = folder / "ledger", folder / "operator.log"
        self.admin: redis.Redis = connect(server.url("admin"))
        options = ["--workers", str(WORKERS), "--install-crds", "--embedded", "--redis", server.url("admin")]
        command = [sys.executable, "-m", "oarlock.cli", "operator", str(ROOT / "tests/sdk/payments.py"), *options]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*command, "--kubeconfig", str(cluster.kubeconfig)],
                env=environment(PAYMENTS=str(self.ledger)),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def workers(self) -> list[int]:
        """Process ids of the workers that RQ knows and that live."""
        found = []
        for key in self.admin.smembers("rq:workers"):
            pid = int(self.admin.hget(key, "pid") or 0)
            if alive(pid):
                found.append(pid)
        return sorted(found)

    def lines(self, what: str) -> list[list[str]]:
        """Key, idempotency key and process of each line so far."""
        text = self.ledger.read_text() if self.ledger.exists() else ""
        return [line.split()[1:] for line in text.splitlines() if line.startswith(f"{what} ")]

    def close(self) -> None:
        self.admin.close()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers="") as cluster:
        yield cluster


@pytest.fixture
def operator(cluster: Cluster, tmp_path: Path) -> Iterator[Operator]:
    with EmbeddedRedis(tmp_path / "redis") as server:
        running = Operator(cluster, server, tmp_path)
        try:
            until(lambda: len(running.workers()) == WORKERS, running)
            yield running
        finally:
            running.close()


def until(condition: Callable[[], Any], operator: Operator) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert operator.process.poll() is None, operator.log.read_text()
        assert time.monotonic() < end, operator.log.read_text()[-4_000:]
        time.sleep(0.005)


def living(operator: Operator) -> list[int]:
    """Workers that live now; where none does, the first that comes."""
    found: list[int] = []
    until(lambda: found.extend(operator.workers()) or found, operator)
    return found


def payment(number: int) -> dict[str, Any]:
    kind = {"apiVersion": "shop.example.com/v1", "kind": "Payment"}
    return {**kind, "metadata": {"name": f"p{number:02d}"}}


def by_key(lines: list[list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for key, idempotency_key, _ in lines:
        found[key].append(idempotency_key)
    return found


@pytest.mark.timeout(300)
def test_no_effect_outside_is_lost_and_each_has_one_key(cluster: Cluster, operator: Operator) -> None:
    """Each kill has work of its own to strike: payments that are new, and the process that began one last."""
    chance, uids = random.Random(7), dict[str, str]()
    for kill in range(KILLS):
        begun = len(operator.lines("begun"))
        for number in range(kill * EACH, (kill + 1) * EACH):
            uids[f"default/p{number:02d}"] = cluster.create(payment(number))["metadata"]["uid"]
        until(lambda begun=begun: len(operator.lines("begun")) > begun, operator)
        last, workers = int(operator.lines("begun")[-1][-1]), living(operator)
        os.kill(last if last in workers else chance.choice(workers), signal.SIGKILL)
    until(lambda: _all_paid(cluster), operator)
    paid, begun_by_key = by_key(operator.lines("paid")), by_key(operator.lines("begun"))
    assert set(paid) == set(uids)
    assert {key: set(keys) for key, keys in paid.items()} == {key: {f"{uid}-1"} for key, uid in uids.items()}
    cut_off = sum(len(begun_by_key[key]) - len(paid[key]) for key in uids)
    assert cut_off > 0, "no kill struck while a function ran: this proved nothing"

    for number in range(OBJECTS):
        cluster.delete(f"payments/p{number:02d}")
    os.kill(chance.choice(living(operator)), signal.SIGKILL)
    for number in range(OBJECTS):
        cluster.wait(f"payments/p{number:02d}", gone, timeout_s=LIMIT_S)
    assert set(by_key(operator.lines("refunded"))) == set(uids)


def _all_paid(cluster: Cluster) -> bool:
    return all(each.get("status", {}).get("paid") for each in cluster.list("payments"))
