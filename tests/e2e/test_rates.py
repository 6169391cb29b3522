"""Rates and weights of a real `oarlock up`: what waits, what is told of it, what outlives a loss of Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.e2e_helpers import SET, RunningUp, oarlock, until

KEYS = 80
"""At two turns a second they stand in line for longer than a busy machine takes for the commands below."""
USUAL = {"OARLOCK_LEASE_MS": "5000", "OARLOCK_RENEW_EVERY_MS": "1000", "OARLOCK_REQUEST_TIMEOUT_MS": "4000"}
"""As a fleet has them: the Lease has to come to have what is set."""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningUp]:
    root = tmp_path_factory.mktemp("rates")
    sets = [SET.format(name=f"web-{number:02}", namespace="shop") for number in range(KEYS)]
    (root / "sets.yaml").write_text("".join([*sets, SET.format(name="web", namespace="bank")]))
    running = RunningUp(root / "state", f"-f{root / 'sets.yaml'}", **USUAL)
    until(lambda: len(running.ask("get", "replicasets")) == KEYS + 1, 20, "all ReplicaSets are cached")
    until(lambda: figures(running)["queued"] + figures(running)["in_work"] == 0, 20, "all are idle")
    yield running
    running.stop()


def figures(up: RunningUp) -> dict[str, int]:
    (queue,) = [each for each in up.ask("queue") if each["name"] == "replicaset"]
    return dict(queue)


def said(up: RunningUp, *words: str) -> str:
    done = oarlock(*words, "--state-dir", str(up.state.root))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_namespace_with_a_rate_waits_and_stands_in_nobody_s_way(up: RunningUp) -> None:
    assert said(up, "rate", "-n", "shop", "2", "--reason", "slow") == "namespace shop is limited to 2 turns a second\n"
    began = time.monotonic()
    said(up, "requeue", "-n", "shop", "-c", "replicaset", "--all", "--yes")
    until(lambda: figures(up)["held"] > KEYS // 3, 20, "keys wait in line")
    said(up, "requeue", "rs/bank/web")
    waiting = next(each["key"] for each in reversed(up.ask("queue", "--keys")) if each["state"] == "held")
    told = said(up, "explain", f"rs/{waiting}")
    assert "It waits in line for the limit of its namespace, 2 turns a second: " in told
    until(lambda: figures(up)["queued"] + figures(up)["in_work"] == 0, 20, "bank/web was not in line")
    gone = KEYS - figures(up)["held"]
    assert gone <= 2 * (time.monotonic() - began) + 3
    said(up, "rate", "-n", "shop", "none")
    until(lambda: figures(up)["held"] == figures(up)["queued"] == 0, 20, "all have gone")


def test_rates_and_weights_outlive_a_loss_of_redis(up: RunningUp) -> None:
    assert said(up, "weight", "-n", "shop", "4") == "namespace shop has weight 4\n"
    assert said(up, "weight", "replicaset", "0.5") == "replicaset has weight 0.5\n"
    assert said(up, "rate", "-n", "bank", "5") == "namespace bank is limited to 5 turns a second\n"
    before = sorted(said(up, "pause").splitlines())
    assert len(before) == 3
    epoch = up.ask("epoch")["epoch"]
    up.redis().flushall()

    def there_again() -> bool:
        done = oarlock("epoch", "--state-dir", str(up.state.root), "-o", "json")
        return done.returncode == 0 and f'"epoch": {epoch}' not in done.stdout and '"OPEN"' in done.stdout

    until(there_again, 40, "a new epoch is open", pause_s=0.2)
    shown = [each["scope"] for each in up.ask("epoch")["pauses"]]
    assert sorted(shown) == ["rate namespace bank", "weight namespace shop", "weight queue replicaset"]
