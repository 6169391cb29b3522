"""`oarlock history` against a real Redis."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, ClaimLimits, LoadSpec
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.cli.explain import history as command
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.cli.cli_helpers import call, problems

QUEUE = "replicaset"
Turn = Callable[..., None]


@pytest.fixture
def turn(broker: RedisBroker) -> Turn:
    """Has a turn of shop/web carried out."""

    def carry_out(did: str, verdict: Verdict = Verdict.OK) -> None:
        broker.add(QUEUE, ["shop/web"], why="set pods/shop/web-1")
        batch = broker.claim("w-1", "n", [LoadSpec(QUEUE, "replicasets")], ClaimLimits(5_000, 14_000))
        assert isinstance(batch, Batch)
        broker.finish([Finish(QUEUE, "shop/web", "n", verdict, 60_000, did=did)])

    return carry_out


def test_the_newest_is_the_last(server: EmbeddedRedis, turn: Turn) -> None:
    turn("create pods x3")
    turn("create pods: 403 quota", Verdict.RETRY)
    turn("create pods: 403 quota", Verdict.RETRY)
    head, first, second = call("history", "rs/shop/web", "--redis", server.url("metrics")).stdout.splitlines()
    assert head.split() == ["ENDED", "OUTCOME", "TURNS", "WAITED", "TOOK", "WORKER", "DID", "BECAUSE"]
    assert first.split()[1:4] == ["ago", "ok", "1"]
    assert second.split()[1:4] == ["ago", "retry", "2"]
    assert "w-1" in second
    assert second.endswith("could not create pods: 403 quota  pods/shop/web-1 was written")


def test_json(server: EmbeddedRedis, turn: Turn) -> None:
    turn("create pods x3")
    (row,) = json.loads(call("history", "rs/shop/web", "-o", "json", "--redis", server.url("metrics")).stdout)
    assert row["triggers"] == {"events": 1, "first": "set pods/shop/web-1"}
    assert row.pop("ended_ms") > 0
    assert (row.pop("waited_ms") >= 0, row.pop("took_ms") >= 0) == (True, True)
    row.pop("triggers")
    assert row == {
        "queue": QUEUE,
        "key": "shop/web",
        "verdict": "ok",
        "did": "create pods x3",
        "turns": 1,
        "holder": "w-1",
    }


def test_nothing_is_remembered(server: EmbeddedRedis, turn: Turn) -> None:
    result = call("history", "shop/other", "--redis", server.url("metrics"))
    assert (result.exit_code, result.stdout) == (0, "no turn of this key is remembered\n")


def test_a_key_that_is_none(server: EmbeddedRedis) -> None:
    result = call("history", "a/b/c/d", "--redis", server.url("metrics"))
    assert result.exit_code == 2
    assert len(problems(result)) == 1


@pytest.mark.parametrize("output", ["table", "json"])
def test_watch_tells_each_turn_that_ends_once(
    output: str, server: EmbeddedRedis, turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile: list[Any] = [lambda: turn("second"), lambda: None, lambda: turn("third")]

    def look_again(_: float) -> None:
        if not meanwhile:
            raise KeyboardInterrupt
        meanwhile.pop(0)()

    monkeypatch.setattr(command.time, "sleep", look_again)
    turn("first")
    result = call("history", "rs/shop/web", "-w", "-o", output, "--redis", server.url("metrics"))
    assert result.exit_code == 130
    lines = result.stdout.splitlines()[-3:]
    if output == "json":
        assert [json.loads(line)["did"] for line in lines] == ["first", "second", "third"]
    else:
        assert "first" in lines[0]
        assert lines[1].startswith("replicaset shop/web ok: second (waited ")
        assert lines[2].startswith("replicaset shop/web ok: third (waited ")
        assert lines[2].endswith(" on w-1), because pods/shop/web-1 was written")
