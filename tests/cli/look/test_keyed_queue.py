"""`oarlock queue stats`, `parked`, `requeue`, `explain` against a real Redis."""

from __future__ import annotations

import json

import pytest

from oarlock.broker.connection.client import connect
from oarlock.queue import Context, KeyedQueue
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.cli.cli_helpers import call, problems


@pytest.fixture
def given(server: EmbeddedRedis) -> list[str]:
    """Of queue "invoices": eu/bad is parked, eu/later delayed, eu/17 and 18 are queued."""
    url = server.url("admin")
    connect(url).flushall()
    queue = KeyedQueue("invoices", url)

    def sync(key: str, ctx: Context) -> None:
        raise RuntimeError("no such customer")

    queue.add("eu/bad")
    queue.run(sync, burst=True, retries=0)
    queue.add_after("eu/later", 60)
    queue.add("eu/17", "18")
    return ["--queue", "invoices", "--redis", url]


def test_stats(given: list[str]) -> None:
    told = json.loads(call("queue", "stats", *given, "-o", "json").stdout)
    assert told.pop("oldest_age_ms") >= 0
    counts = {"queued": 2, "running": 0, "delayed": 1, "parked": 1, "failing": 1, "groups": 2, "consumers": 1}
    assert told == counts
    table = call("queue", "stats", *given).stdout.splitlines()
    assert table[0].split() == ["QUEUED", "RUNNING", "DELAYED", "PARKED", "FAILING", "GROUPS", "CONSUMERS", "OLDEST"]
    assert table[1].split()[:4] == ["2", "0", "1", "1"]


def test_parked(given: list[str]) -> None:
    (told,) = json.loads(call("queue", "parked", *given, "-o", "json").stdout)
    assert (told["key"], told["failures"]) == ("eu/bad", 1)
    assert "in sync" in told["error"]
    assert call("queue", "parked", *given).stdout.splitlines()[1].split("  ")[-1] == "RuntimeError: no such customer"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eu/bad"], "1 parked keys are queued again\n"),
        (["--all"], "1 parked keys are queued again\n"),
        (["eu/17", "us/new"], "0 parked keys are queued again; added: us/new\n"),
    ],
)
def test_requeue(given: list[str], arguments: list[str], said: str) -> None:
    assert call("queue", "requeue", *arguments, *given).stdout == said
    queue = KeyedQueue("invoices", given[-1])
    assert queue.look("us/new").group == ("us" if "us/new" in arguments else "")
    assert len(queue.parked()) == (0 if "1 parked" in said else 1)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("eu/bad", "eu/bad is parked since"),
        ("eu/17", "eu/17 is queued: one of 1 keys of group 'eu'; 2 groups with keys take turns."),
        ("eu/later", "eu/later is idle: nothing is to be done yet."),
        ("x", "x is idle: nothing is to be done."),
    ],
)
def test_explain(given: list[str], key: str, sentence: str) -> None:
    result = call("queue", "explain", key, *given)
    assert result.stdout.startswith(sentence)
    assert ("no such customer" in result.stdout) == (key == "eu/bad")
    assert json.loads(call("queue", "explain", key, *given, "-o", "json").stdout)["key"] == key


def test_explain_running(given: list[str]) -> None:
    queue = KeyedQueue("invoices", given[-1])
    seen: list[str] = []

    def sync(key: str, ctx: Context) -> None:
        queue.add(key) if not seen else None
        seen.append(call("queue", "explain", key, *given).stdout)

    queue.run(sync, burst=True)
    assert "eu/17 is in work since 0." in seen[0]
    assert "It was added again meanwhile, so it runs once more afterwards." in seen[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["stats", "--queue", "a b", "--redis", "redis://localhost:1"], "oarlock: --queue 'a b': a name has letters"),
        (["stats", "--redis", "redis://localhost:1"], "oarlock: Missing option '--queue'"),
        (["stats", "--queue", "q", "--redis", "redis://localhost:1"], "oarlock: --redis: no Redis answers"),
        (["requeue", "--queue", "q"], "oarlock: requeue: name keys, or give --all"),
        (["--redis", "redis://x", "stats", "--queue", "q"], "oarlock: --redis: write options behind 'stats'"),
    ],
)
def test_bad_input(given: list[str], arguments: list[str], said: str) -> None:
    if arguments[0] == "requeue":
        arguments = ["requeue", *given]
    result = call("queue", *arguments)
    assert result.exit_code == 2
    assert problems(result)[0].startswith(said)


def test_a_key_that_somebody_else_wrote(given: list[str]) -> None:
    connect(given[-1]).set("oarlock:queue:{other}:locks", "theirs")
    result = call("queue", "stats", "--queue", "other", "--redis", given[-1])
    assert result.exit_code == 2
    assert "the keys oarlock:queue:{other}:* were changed by hand" in problems(result)[0]
