"""Inspecting commands over several shards: a column and a field more, and nothing of it where there is one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.events import Event
from oarlock.cli.look import view
from oarlock.cli.options import redis_options
from oarlock.cli.problems import InputProblem
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.shards import shard_of
from tests.cli.cli_helpers import call

QUEUE = "replicaset"
KEYS = {shard_of(f"team-{i}", 3): f"team-{i}/web" for i in range(9)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """Shards 0 and 1 of three, each with a key queued; shard 2 has no epoch."""
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as running:
        client = connect(running.url("admin"))
        for shard in "01":
            epoch.bootstrap(client, 4, shard)
            broker = RedisBroker(client, 4, shard=shard)
            for resource in ("replicasets", "nodes"):
                events = [Event("node-1", "3", "u", b"")] if resource == "nodes" else []
                broker.stage(resource, "g", events)
                broker.commit_list(resource, "g", "7")
            while broker.republish():
                pass
            assert broker.open(["replicasets"]) == ""
            broker.register(f"w-s{shard}-0", "s", [QUEUE])
            broker.add(QUEUE, [KEYS[shard]])
        client.close()
        yield running


def asked(server: EmbeddedRedis, *arguments: str, shards: int = 3) -> tuple[Any, str]:
    """JSON, and what was said beside it."""
    given = (*arguments, "--redis", server.url("admin"), "--shards", str(shards), "-o", "json")
    result = call(*given)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def test_every_shard_that_has_an_epoch_is_shown_and_the_others_are_named(server: EmbeddedRedis) -> None:
    rows, said = asked(server, "queue", "-c", QUEUE)
    assert [(row["shard"], row["name"], row["queued"]) for row in rows] == [("0", QUEUE, 1), ("1", QUEUE, 1)]
    assert said == "oarlock: shard 2 of 3 has no epoch; is an ingestor of it running?\n"
    rows, _ = asked(server, "queue", "--keys", "-c", QUEUE)
    assert [(row["shard"], row["key"]) for row in rows] == [("0", KEYS["0"]), ("1", KEYS["1"])]
    facts, _ = asked(server, "epoch")
    assert [(each["shard"], each["epoch"], each["phase"]) for each in facts] == [("0", 4, "OPEN"), ("1", 4, "OPEN")]


def test_of_one_shard_nothing_is_said_of_shards(server: EmbeddedRedis) -> None:
    rows, said = asked(server, "queue", "-c", QUEUE, shards=1)
    assert [sorted(row) for row in rows] == [
        ["delayed", "failing", "held", "in_work", "name", "oldest_age_ms", "parked", "queued"]
    ]
    assert said == ""
    facts, _ = asked(server, "epoch", shards=1)
    assert "shard" not in facts
    table = call("queue", "--redis", server.url("admin"))
    assert "SHARD" not in table.stdout
    assert "SHARD" in call("queue", "--redis", server.url("admin"), "--shards", "2").stdout


def test_a_key_is_looked_for_in_its_shard(server: EmbeddedRedis) -> None:
    told, _ = asked(server, "explain", KEYS["1"], "-c", QUEUE)
    assert (told["shard"], told["state"]) == ("1", "queued")
    lost = call("explain", KEYS["2"], "-c", QUEUE, "--redis", server.url("admin"), "--shards", "3")
    assert lost.exit_code == 2
    assert f"{KEYS['2']} is of shard 2, which has no epoch" in lost.stderr
    rows, _ = asked(server, "expectations", KEYS["0"])
    assert rows == []
    assert asked(server, "locks")[0] == []


def test_a_node_is_looked_at_in_every_shard(server: EmbeddedRedis) -> None:
    given = ("--redis", server.url("admin"), "--shards", "3")
    said = call("requeue", "node-1", "-c", "daemonset-node-updates", "--force", *given)
    assert said.exit_code == 0, said.stderr
    assert [line.partition(":")[0] for line in said.stdout.splitlines()] == ["shard 0", "shard 1"]
    rows, _ = asked(server, "queue", "-c", "daemonset-node-updates")
    assert [row["queued"] for row in rows] == [1, 1]


def test_a_hold_of_one_shard_is_shown_as_its_own_and_ended_with_the_others(server: EmbeddedRedis) -> None:
    client = connect(server.url("admin"))
    RedisBroker(client, 4, shard="1").pause("k created pod x/y")
    client.close()
    given = ("--redis", server.url("admin"), "--shards", "2")
    assert "shard 1: paused, nobody works: k created pod x/y" in call("queue", *given).stderr
    assert call("resume", *given).stdout.splitlines() == [
        "shard 0: it was not paused, phase OPEN",
        "shard 1: resumed, phase OPEN; it was paused: k created pod x/y",
    ]


def test_a_shard_that_cannot_be_reached_hides_no_other(server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_redis(source: redis_options.Source, *, shard: str) -> Any:
        if shard == "0":
            raise InputProblem("no Redis answers")
        return redis_options.open_redis(source, shard=shard)

    monkeypatch.setattr(view, "open_redis", open_redis)
    rows, said = asked(server, "queue", "-c", QUEUE, shards=2)
    assert [row["shard"] for row in rows] == ["1"]
    assert said == "oarlock: shard 0 of 2: no Redis answers\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("queue", "--shards", "0"), "0 is not in the range 1<=x<=16"),
        (("queue", "--shards", "many"), "'many' is not a valid integer"),
        (("worker", "--shards", "3", "--workers", "2"), "--workers 2: too few for --shards 3"),
        (("up", "--shards", "3", "--workers", "2"), "--workers 2: too few for --shards 3"),
        (("ingest", "--shards", "3", "--shard", "3"), "--shard 3: of --shards 3 there are 0 to 2"),
        (("worker", "--shard", "1"), "--shard 1: of --shards 1 there are only 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1
