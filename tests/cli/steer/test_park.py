"""`oarlock park` and `replay`: a key is put aside, and queued again as if nothing had happened."""

from __future__ import annotations

import json

import pytest

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Idle
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.cli.steer.steer_cases import QUEUE, claimed, oarlock, refused


def crash(broker: RedisBroker, key: str) -> None:
    """The key kills two workers, so it is parked."""
    for turn in range(2):
        broker.register(f"x{turn}", "s", [QUEUE])
        broker.add(QUEUE, [key])
        assert claimed(broker, f"x{turn}") == [key]
        broker.release(f"x{turn}", blamed=f"{QUEUE}:{key}")


def fail(broker: RedisBroker, *keys: str) -> None:
    """A turn of each fails."""
    broker.add(QUEUE, keys)
    assert set(keys) <= set(claimed(broker))
    broker.finish([Finish(QUEUE, key, "n", Verdict.RETRY) for key in keys])


@pytest.mark.usefixtures("kept")
def test_a_key_is_parked_and_replayed(server: EmbeddedRedis, broker: RedisBroker) -> None:
    said = oarlock(server, "park", "rs/shop/a", "--by", "me", "--reason", "its webhook is broken")
    assert said == "shop/a of replicaset is parked for 1h00m; `oarlock replay shop/a -c replicaset` ends that\n"
    assert claimed(broker) == ["bank/b"]
    told = json.loads(oarlock(server, "queue", "--keys", "-o", "json"))
    (row,) = [each for each in told if each["key"] == "shop/a"]
    assert (row["state"], row["by"], row["crashes"]) == ("parked", "me", None)
    assert 3_500_000 < row["due_in_ms"] <= 3_600_000
    assert "PARKED BY" in oarlock(server, "queue", "--keys")
    assert "parked: key replicaset:shop/a for another 59m" in oarlock(server, "explain", "rs/shop/a")
    assert oarlock(server, "replay", "rs/shop/a", "--by", "you").startswith("1 of replicaset (shop/a): ")
    broker.due()
    assert claimed(broker) == ["shop/a"]
    assert broker.pauses().texts == {}
    audit = oarlock(server, "audit")
    for line in ("pause key replicaset:shop/a: by=me its webhook", "resume key replicaset:shop/a: by=you"):
        assert line in audit
    assert "replay replicaset:shop/a: by=you" in audit


@pytest.mark.usefixtures("kept")
def test_an_idle_key_that_is_parked_is_queued_at_the_end(server: EmbeddedRedis, broker: RedisBroker) -> None:
    broker.finish([Finish(QUEUE, str(key), "n", Verdict.OK) for key in claimed(broker)])
    oarlock(server, "park", "rs/shop/a", "--for", "2d")
    assert claimed(broker) is Idle.EMPTY
    oarlock(server, "replay", "rs/shop/a")
    while broker.due()[1] is not None:
        pass
    assert claimed(broker) == ["shop/a"]


def test_a_replay_forgets_failures_and_crashes(server: EmbeddedRedis, broker: RedisBroker) -> None:
    fail(broker, "shop/a", "bank/b")
    crash(broker, "shop/c")
    assert broker.num_requeues(QUEUE, "shop/a") == 1
    told = json.loads(oarlock(server, "replay", "-n", "shop", "-o", "json"))
    assert told == {"selected": 2, "queued": 2, "queues": {QUEUE: 2}}
    assert [broker.num_requeues(QUEUE, key) for key in ("shop/a", "bank/b")] == [0, 1]
    assert claimed(broker) == ["shop/a", "shop/c"]
    assert not broker._client.hexists(broker.keys.crashes(QUEUE), "shop/c")
    assert oarlock(server, "replay", "--all") == "1 of replicaset (bank/b): 1 queued\n"


def test_a_paused_key_stays_so(server: EmbeddedRedis, broker: RedisBroker) -> None:
    fail(broker, "shop/a")
    broker.steer("pause", f"key {QUEUE}:shop/a", "by=me")
    oarlock(server, "replay", "rs/shop/a")
    assert list(broker.pauses().texts) == [f"key {QUEUE}:shop/a"]
    assert "shop/a" not in claimed(broker)


@pytest.mark.usefixtures("unkept")
def test_a_park_that_no_ingestor_keeps_is_taken_back(server: EmbeddedRedis, broker: RedisBroker) -> None:
    assert "is not paused: no ingestor has written it into the Lease" in refused(server, "park", "rs/shop/a", code=1)
    assert broker.pauses().texts == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "replay what? name KEYs, or pick them with -l, -n, -c or --all"),
        (["rs/shop/a", "--all"], "--all: with KEY nothing is picked"),
        (["rs/shop/a"], "shop/a of replicaset is neither parked nor failing; `oarlock requeue shop/a` queues any key"),
    ],
)
@pytest.mark.usefixtures("broker")
def test_what_cannot_be_replayed(words: list[str], told: str, server: EmbeddedRedis) -> None:
    assert told in refused(server, "replay", *words)


@pytest.mark.usefixtures("broker")
def test_nothing_is_parked(server: EmbeddedRedis) -> None:
    assert oarlock(server, "replay", "--all") == "no key is picked\n"
