"""`oarlock drain` and `undrain` against a real Redis; the workers' part is played by the test."""

from __future__ import annotations

import json

import pytest

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Idle
from oarlock.cli.steer import drain
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.cli.cli_helpers import call, problems
from tests.cli.steer.steer_cases import QUEUE, claimed, oarlock, refused


def test_a_worker_is_drained(server: EmbeddedRedis, broker: RedisBroker) -> None:
    broker.register("w-2", "s2", [QUEUE])
    assert oarlock(server, "drain", "w-1", "--by", "me", "--reason", "slow") == "1 are to leave: w-1\n"
    assert claimed(broker) is Idle.DRAIN
    assert claimed(broker, "w-2") == ["shop/a", "bank/b"]
    told = json.loads(oarlock(server, "drain", "-o", "json"))
    assert [(each["worker"], each["supervisor"], each["drained"]) for each in told] == [
        ("w-1", "s", True),
        ("w-2", "s2", False),
    ]
    assert "drain w-1: by=me slow" in oarlock(server, "audit")
    assert oarlock(server, "drain").splitlines()[0].split() == ["WORKER", "SUPERVISOR", "AGE", "DRAINED"]


def test_it_waits_until_they_have_left(
    server: EmbeddedRedis, broker: RedisBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.register("w-2", "s", [QUEUE])
    left = iter(["w-1", "w-2"])
    monkeypatch.setattr(drain.time, "sleep", lambda _: broker.release(next(left)))
    said = oarlock(server, "drain", "s", "--wait")
    assert said == "2 are to leave: w-1, w-2\ns is drained\n"
    assert broker.register("w-3", "s", [QUEUE]) is False
    (row,) = json.loads(oarlock(server, "drain", "-o", "json"))
    assert (row["worker"], row["supervisor"], row["drained"]) == ("", "s", True)
    assert oarlock(server, "drain", "s") == "s has no worker\n"
    assert oarlock(server, "undrain", "s", "--by", "me") == "s may start workers again\n"
    assert broker.register("w-3", "s", [QUEUE]) is True
    assert "undrain s: by=me" in oarlock(server, "audit")


def test_those_that_do_not_leave_in_time_are_told(
    server: EmbeddedRedis, broker: RedisBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "LOOK_S", 0.0)
    result = call("drain", "w-1", "--wait", "1s", "--redis", server.url("admin"))
    assert result.exit_code == 1
    assert problems(result) == ["oarlock: after 1.0s 1 are still at work, and leave later: w-1"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["drain", "w-9"], "w-9: no such worker or supervisor is at work; there are: s, w-1"),
        (["undrain", "w-1"], "w-1 is not drained; there are: s, w-1"),
        (["drain", "w-1", "--wait", "x"], "'x' is no duration"),
    ],
)
@pytest.mark.usefixtures("broker")
def test_nobody_of_that_name(words: list[str], told: str, server: EmbeddedRedis) -> None:
    assert told in refused(server, *words)


@pytest.mark.usefixtures("broker")
def test_a_user_that_may_only_look_may_not_drain(server: EmbeddedRedis) -> None:
    result = call("drain", "w-1", "--redis", server.url("metrics"))
    assert result.exit_code == 2
    assert "this user of the Redis" in problems(result)[0]
    assert "w-1" in call("drain", "--redis", server.url("metrics")).stdout
