"""`oarlock pause`, `resume` and `audit` against a real Redis; an ingestor's part is played by the test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Idle
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.cli.cli_helpers import call
from tests.cli.steer.steer_cases import cached, claimed, oarlock, refused


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("words", "scope", "left"),
    [
        (("-n", "shop"), "namespace shop", ["bank/b"]),
        (("rs/shop/a",), "key replicaset:shop/a", ["bank/b"]),
        (("a", "-n", "shop", "-c", "replicaset"), "key replicaset:shop/a", ["bank/b"]),
        (("-c", "replicaset"), "queue replicaset", Idle.EMPTY),
        (("--all",), "all", Idle.WAIT),
    ],
)
def test_a_pause_and_its_end(
    words: tuple[str, ...], scope: str, left: Any, server: EmbeddedRedis, broker: RedisBroker
) -> None:
    said = oarlock(server, "pause", *words, "--by", "me")
    assert said.startswith(f"{scope} is paused; `oarlock resume ")
    assert claimed(broker) == left
    told = said.partition("`oarlock resume ")[2].removesuffix("` ends it\n").split()
    assert oarlock(server, "resume", *told, "--by", "me") == f"{scope} is resumed\n", "the words that were told do"
    broker.due()
    assert isinstance(claimed(broker), list)
    acts = json.loads(oarlock(server, "audit", "-o", "json"))
    assert [each["act"] for each in acts] == [f"pause {scope}: by=me", f"resume {scope}: by=me"]


@pytest.mark.usefixtures("kept")
def test_it_is_shown_everywhere(server: EmbeddedRedis, broker: RedisBroker) -> None:
    oarlock(server, "pause", "-n", "shop", "--by", "me", "--reason", "quota is being raised")
    claimed(broker)
    line = "paused: namespace shop since"
    reason = "by me: quota is being raised"
    for words in (["pause"], ["epoch"], ["explain", "rs/shop/a"]):
        said = oarlock(server, *words)
        assert line in said, words
        assert reason in said, words
    result = call("queue", "--redis", server.url("metrics"))
    assert line in result.stderr
    assert [each for each in result.stdout.splitlines()[0].split() if each == "HELD"] == ["HELD"]
    assert line not in oarlock(server, "explain", "rs/bank/b")
    assert "It is held back by a pause" in oarlock(server, "explain", "rs/shop/a")
    (over,) = json.loads(oarlock(server, "explain", "rs/shop/a", "-o", "json"))["pauses"]
    assert (over["scope"], over["by"], over["reason"]) == ("namespace shop", "me", "quota is being raised")
    (held,) = [each for each in json.loads(oarlock(server, "queue", "--keys", "-o", "json")) if each["state"] == "held"]
    assert held["key"] == "shop/a"
    assert json.loads(oarlock(server, "epoch", "-o", "json"))["pauses"][0]["reason"] == "quota is being raised"


@pytest.mark.usefixtures("unkept")
def test_a_pause_that_no_ingestor_keeps_is_taken_back(server: EmbeddedRedis, broker: RedisBroker) -> None:
    assert "namespace shop is not paused: no ingestor has written it into the Lease" in refused(
        server, "pause", "-n", "shop", code=1
    )
    assert broker.pauses().texts == {}
    oarlock(server, "pause", "-n", "shop", "--not-kept")
    assert list(broker.pauses().texts) == ["namespace shop"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-n", "shop", "-c", "replicaset"], "-c and -n: a pause is over one of them"),
        (["--all", "-n", "shop"], "--all and -n: a pause is over one of them"),
        (["--all", "shop/a"], "--all is over every key; leave it or the keys out"),
        (["a/b/c/d"], "'a/b/c/d' is no key"),
        (["-n", "shop,bank"], "-n 'shop,bank': no namespace is called so; write one name, such as shop"),
        (["-n", ""], "-n '': no namespace is called so"),
        (["-n", "shop", "--reason", "x" * 201], "--reason has 201 characters; 200 are kept"),
    ],
)
@pytest.mark.usefixtures("broker")
def test_what_is_no_scope(words: list[str], told: str, server: EmbeddedRedis) -> None:
    assert told in refused(server, "pause", *words)


@pytest.mark.usefixtures("broker")
def test_a_script_s_empty_variable_does_not_end_the_fleet_s_own_pause(server: EmbeddedRedis) -> None:
    assert "-n '': no namespace is called so" in refused(server, "resume", "-n", "")


@pytest.mark.usefixtures("broker")
def test_nothing_is_paused(server: EmbeddedRedis) -> None:
    assert oarlock(server, "pause") == "nothing is paused\n"
    assert oarlock(server, "resume", "-n", "shop") == "namespace shop was not paused\n"
    assert oarlock(server, "resume") == "it was not paused, phase OPEN\n"


def test_a_requeue_is_an_act_too(server: EmbeddedRedis, broker: RedisBroker) -> None:
    oarlock(server, "requeue", "rs/shop/a", "--force", "--by", "a b")
    assert "requeue replicaset:shop/a: by=a-b" in oarlock(server, "audit")


def test_a_user_that_may_only_look_may_not_pause(server: EmbeddedRedis, broker: RedisBroker) -> None:
    assert "this user of the Redis" in refused(server, "pause", "-n", "shop", user="metrics")
    assert broker.pauses().texts == {}


@pytest.mark.usefixtures("kept")
def test_a_pause_with_an_end(server: EmbeddedRedis, broker: RedisBroker) -> None:
    said = oarlock(server, "pause", "-n", "shop", "--for", "1h30m", "--by", "me")
    assert said == "namespace shop is paused for 1h30m; `oarlock resume -n shop` ends it\n"
    assert "paused: namespace shop for another 1h" in oarlock(server, "pause")
    (pause,) = json.loads(oarlock(server, "epoch", "-o", "json"))["pauses"]
    assert pause["until_ms"] - pause["since_ms"] == 5_400_000
    assert broker.due()[1] is not None


@pytest.mark.parametrize("span", ["0s", "x", "-1h", "10", "367d", "1h 5m", ""])
@pytest.mark.usefixtures("broker")
def test_what_is_no_duration(span: str, server: EmbeddedRedis) -> None:
    assert f"{span!r} is no duration; write one such as 90s, 10m" in refused(
        server, "pause", "-n", "shop", "--for", span
    )


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("command", ["pause", "park"])
def test_a_key_of_no_object_is_told(command: str, server: EmbeddedRedis, broker: RedisBroker) -> None:
    """It is held all the same, as the object may come. But it may be mistyped, or of another kind."""
    told = "oarlock: there is no replicaset default/db in the cache: see `oarlock get replicasets`; of another kind it"
    result = call(command, "--redis", server.url("admin"), "db")
    assert result.exit_code == 0
    assert told in result.stderr
    assert list(broker.pauses().texts) == ["key replicaset:default/db"]
    cached(broker, "default/db")
    assert "there is no" not in call(command, "--redis", server.url("admin"), "db").stderr
