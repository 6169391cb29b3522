"""`oarlock rate` and `oarlock weight` against a real Redis; an ingestor's part is played by the test."""

from __future__ import annotations

import json

import pytest

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Idle
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.cli.cli_helpers import call
from tests.cli.steer.steer_cases import QUEUE, claimed, oarlock, refused


@pytest.mark.usefixtures("kept")
def test_a_limit_of_a_namespace(server: EmbeddedRedis, broker: RedisBroker) -> None:
    """The key that waits is told why and how long, everywhere."""
    broker.add(QUEUE, ["shop/b", "shop/c"])
    assert oarlock(server, "rate", "-n", "shop", "0.1", "--by", "me", "--reason", "slow") == (
        "namespace shop is limited to 0.1 turns a second\n"
    )
    assert claimed(broker) == ["shop/a", "bank/b"]
    for words in (["pause"], ["epoch"]):
        assert "limited: namespace shop to 0.1 turns a second since " in oarlock(server, *words), words
    assert "limited: namespace shop" in call("queue", "--redis", server.url("metrics")).stderr
    assert "limit rate namespace shop: by=me rate=0.1 slow" in oarlock(server, "audit")
    said = oarlock(server, "explain", "rs/shop/c")
    assert "It waits in line for the limit of its namespace, 0.1 turns a second: 1 key is before it" in said
    facts = json.loads(oarlock(server, "explain", "rs/shop/c", "-o", "json"))
    assert (facts["line"]["rate_per_s"], facts["line"]["ahead"]) == (0.1, 1)
    assert 10_000 < facts["line"]["wait_ms"] <= 20_000
    assert json.loads(oarlock(server, "explain", "rs/bank/b", "-o", "json"))["line"] is None
    (shown,) = json.loads(oarlock(server, "top", "--once", "-o", "json"))["shards"][0]["pauses"]
    assert shown["scope"] == "rate namespace shop"
    assert oarlock(server, "rate", "-n", "shop", "none") == "namespace shop is limited no more\n"
    broker.due()
    assert claimed(broker) == ["shop/b", "shop/c"]


@pytest.mark.usefixtures("kept")
def test_a_weight_of_a_namespace(server: EmbeddedRedis, broker: RedisBroker) -> None:
    assert oarlock(server, "weight", "-n", "shop", "2.5", "--by", "me", "--reason", "it pays") == (
        "namespace shop has weight 2.5\n"
    )
    assert oarlock(server, "pause").startswith("weight 2.5: namespace shop since ")
    assert "by me: it pays" in oarlock(server, "pause")
    assert "set weight namespace shop: by=me weight=2.5 it pays" in oarlock(server, "audit")
    (told,) = json.loads(oarlock(server, "epoch", "-o", "json"))["pauses"]
    assert (told["scope"], told["reason"]) == ("weight namespace shop", "weight=2.5 it pays")
    assert oarlock(server, "weight", "-n", "shop", "none") == "namespace shop has weight 1 again\n"
    assert oarlock(server, "weight", "-n", "shop", "none") == "namespace shop had no weight of its own\n"
    assert broker.pauses().texts == {}


@pytest.mark.usefixtures("kept")
def test_a_weight_of_a_controller(server: EmbeddedRedis, broker: RedisBroker) -> None:
    assert oarlock(server, "weight", QUEUE, "4", "--by", "me") == "replicaset has weight 4\n"
    assert list(broker.pauses().texts) == ["weight queue replicaset"]
    assert oarlock(server, "pause").startswith("weight 4: queue replicaset since ")
    assert oarlock(server, "weight", QUEUE, "none") == "replicaset has weight 1 again\n"


@pytest.mark.usefixtures("kept")
def test_a_rate_of_a_controller(server: EmbeddedRedis, broker: RedisBroker) -> None:
    assert oarlock(server, "rate", QUEUE, "1", "--by", "me", "--reason", "slow") == (
        "replicaset is limited to 1 turn a second\n"
    )
    assert oarlock(server, "pause").startswith("limited: replicaset to 1 turn a second since ")
    assert claimed(broker) == ["shop/a"]
    assert claimed(broker) is Idle.LIMITED
    assert "limit rate replicaset: by=me rate=1 slow" in oarlock(server, "audit")
    assert oarlock(server, "rate", QUEUE, "none") == "replicaset is limited no more\n"
    assert claimed(broker) == ["bank/b"]


@pytest.mark.usefixtures("kept")
def test_a_large_rate_is_kept_as_the_scripts_read_it(server: EmbeddedRedis, broker: RedisBroker) -> None:
    oarlock(server, "rate", QUEUE, "1000000", "--by", "me")
    assert broker.pauses().texts[f"rate {QUEUE}"].endswith(" by=me rate=1000000")
    assert "limited: replicaset to 1e+06 turns a second" in oarlock(server, "pause")


@pytest.mark.usefixtures("unkept")
@pytest.mark.parametrize(
    ("words", "told"),
    [(("rate", "-n", "shop", "5"), "shop is not limited"), (("weight", "-n", "shop", "5"), "shop has no weight")],
)
def test_what_no_ingestor_keeps_is_taken_back(
    words: tuple[str, ...], told: str, server: EmbeddedRedis, broker: RedisBroker
) -> None:
    assert f"{told}: no ingestor has written it into the Lease" in refused(server, *words, code=1)
    assert broker.pauses().texts == {}
    oarlock(server, *words, "--not-kept")
    assert len(broker.pauses().texts) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        *(
            (("rate", QUEUE, "--", each), f"{each!r} is no rate; write turns a second")
            for each in ("0", "x", "-1", "nan")
        ),
        (("rate", QUEUE, "1e9"), "'1e9' is no rate"),
        (("rate", "5"), "'5': write `oarlock rate CONTROLLER NUMBER` or `oarlock rate -n NAMESPACE NUMBER`"),
        (("rate", QUEUE, "5", "-n", "shop"), "'replicaset 5': write"),
        (("rate", "nothing", "5"), "'nothing' is not one of"),
        (("rate",), "'nothing': write"),
        (("weight", "-n", "shop", "0.05"), "'0.05' is no weight; write a number from 0.1 to 100, such as 4, or none"),
        (("weight", "-n", "shop", "101"), "'101' is no weight"),
    ],
)
@pytest.mark.usefixtures("broker")
def test_what_is_no_number(words: tuple[str, ...], told: str, server: EmbeddedRedis) -> None:
    assert told in refused(server, *words)
