"""The fleet-wide figures against a real Redis, with each user's rights, and with hostile content."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import redis

from oarlock.broker import epoch, keys
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, ClaimLimits, LoadSpec
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.metrics.fleet_reader import COUNTS, FleetReader
from oarlock.workers.metrics.latest import FRESH_S, Latest

QUEUE = "replicaset"
SPEC = LoadSpec(QUEUE, "replicasets")
NUMBER = 7


@pytest.fixture
def admin(server: EmbeddedRedis) -> Iterator[redis.Redis]:
    client = connect(server.url("admin"))
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def broker(admin: redis.Redis) -> RedisBroker:
    epoch.bootstrap(admin, NUMBER)
    made = RedisBroker(admin, NUMBER)
    made.register("w-1", "s", [QUEUE])
    return made


def server_ms(admin: redis.Redis) -> int:
    seconds, micros = admin.time()
    return int(seconds) * 1_000 + int(micros) // 1_000


@pytest.mark.parametrize("user", ["worker", "ingestor", "metrics"])
def test_what_is_read_with_whose_rights(
    admin: redis.Redis, broker: RedisBroker, server: EmbeddedRedis, user: str
) -> None:
    listed = [Event("a/web", "5", "u-1", b"blob"), Event("a/db", "6", "u-2", b"blob")]
    assert broker.stage("replicasets", "g1", listed)
    broker.commit_list("replicasets", "g1", "9")
    broker.open([])
    while broker.republish():
        pass
    broker.add(QUEUE, ["a/1", "a/2", "a/3", "a/4"])
    broker.add_after(QUEUE, "a/5", 60_000)
    batch = broker.claim("w-1", "nonce", [SPEC], ClaimLimits(lease_ms=5_000, drain_ms=1, keys_max=1))
    assert isinstance(batch, Batch)
    own = broker.keys
    admin.hset(own.unsettled(QUEUE), mapping={"a/1": server_ms(admin) - 90_000, "a/2": server_ms(admin) - 30_000})
    admin.zadd(own.parked(QUEUE), {"a/6": 1})
    admin.sadd(own.held(QUEUE), "a/8", "a/9", "a/10")
    admin.hset(own.crashes(QUEUE), "a/6", 2)
    admin.hset(own.failures(QUEUE), "a/7", 1)
    broker.steer("pause", "namespace x", "by=me")
    broker.steer("limit", f"rate {QUEUE}", "by=me rate=2.5 slow")
    broker.steer("set", f"weight queue {QUEUE}", "by=me weight=4 slow")
    admin.set(own.of("history_bytes"), 4_096)

    found = FleetReader(connect(server.url(user))).read()

    assert (found.epoch, found.intact, found.phase, found.registered, found.idle) == (NUMBER, True, "OPEN", 1, 0)
    assert found.memory_bytes > 100_000
    assert found.objects == {"replicasets": 2}
    assert 0 <= found.watermark_age_s["replicasets"] < 60
    of = found.queues[QUEUE]
    assert (found.pauses, of.pop("oarlock_rate_limit_turns"), found.history_bytes) == (3, 2.5, 4_096)
    assert of.pop("oarlock_controller_weight") == 4
    assert all("oarlock_rate_limit_turns" not in each for each in found.queues.values())
    assert {name: of[name] for name in COUNTS} == {
        "workqueue_depth": 3,
        "oarlock_keys_in_work": 1,
        "oarlock_keys_delayed": 1,
        "oarlock_keys_parked": 1,
        "oarlock_keys_held": 3,
        "oarlock_keys_crashing": 1,
        "oarlock_keys_failing": 1,
        "oarlock_records_unanswered": 2,
    }
    assert of["oarlock_record_age_seconds"] == pytest.approx(90, abs=30)
    assert of["oarlock_oldest_queued_seconds"] is not None
    assert 0 <= of["oarlock_oldest_queued_seconds"] < 60
    version = int(str(admin.info("server")["redis_version"]).split(".")[0])
    assert of["workqueue_adds_total"] == (4 if version >= 7 else None)
    assert found.queues["daemonset"]["workqueue_depth"] == 0


def test_a_claim_says_how_long_its_keys_were_queued(admin: redis.Redis, broker: RedisBroker) -> None:
    broker.open([])
    stream, state = broker.keys.stream(QUEUE), broker.keys.state(QUEUE)
    for key, ago_ms in (("a/old", 9_000), ("a/young", 4_000)):
        admin.xadd(stream, {"key": key}, id=f"{server_ms(admin) - ago_ms}-0")
        admin.hset(state, key, "queued")
    batch = broker.claim("w-1", "nonce", [SPEC], ClaimLimits(lease_ms=5_000, drain_ms=1))
    assert isinstance(batch, Batch)
    assert [each.key for each in batch.claims] == ["a/old", "a/young"]
    old_ms, young_ms = batch.waited_ms
    assert 9_000 <= old_ms < 60_000
    assert 4_000 <= young_ms < old_ms
    broker.finish([Finish(QUEUE, each.key, each.nonce, Verdict.OK) for each in batch.claims])
    broker.add(QUEUE, ["a/new"])
    batch = broker.claim("w-1", "nonce-2", [SPEC], ClaimLimits(lease_ms=5_000, drain_ms=1))
    assert isinstance(batch, Batch)
    assert 0 <= batch.waited_ms[0] < 4_000


def test_nothing_is_there(admin: redis.Redis, server: EmbeddedRedis) -> None:
    found = FleetReader(connect(server.url("metrics"))).read()
    assert (found.epoch, found.intact, found.phase, found.queues) == (0, False, "", {})


def test_data_of_another_server(admin: redis.Redis, broker: RedisBroker, server: EmbeddedRedis) -> None:
    admin.set(broker.keys.of("run"), "0" * 39 + "1")
    assert FleetReader(connect(server.url("metrics"))).read().intact is False


def test_hostile_content_leaves_out_what_it_spoils_and_makes_no_labels(
    admin: redis.Redis, broker: RedisBroker, server: EmbeddedRedis
) -> None:
    own = broker.keys
    admin.sadd(own.of("queues"), *(f"planted-{number}" for number in range(1_000)))
    admin.hset(own.of("watermark_at"), mapping={"planted": 1, "pods": "not a number", "nodes": b"\xff\x00"})
    admin.hset(own.of("generation"), mapping={"pods": "9" * 5_000, "nodes": b"\xff"})
    for name in (own.stream("daemonset"), own.locks("daemonset"), own.parked("daemonset"), own.unsettled("daemonset")):
        admin.set(name, b"\x00wrong type")
    admin.hset(own.unsettled(QUEUE), mapping={"a/1": "x" * 100_000, "a/2": "-5", "a/3": ""})
    admin.set(own.of("phase"), b"\xff\xfeWHAT" * 1_000)
    found = FleetReader(connect(server.url("metrics"))).read()
    assert "planted-1" not in found.queues
    assert found.watermark_age_s == {}
    read = {name for name, value in found.queues["daemonset"].items() if value is not None}
    assert read == {"oarlock_keys_delayed", "oarlock_keys_held", "oarlock_keys_crashing", "oarlock_keys_failing"}
    assert found.queues[QUEUE]["oarlock_record_age_seconds"] == 0.0
    admin.set(keys.epoch(), "1" * 400)
    assert FleetReader(connect(server.url("metrics"))).read().epoch == 0


def test_a_silent_server_is_waited_for_once_and_asked_again_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        reader = FleetReader(connect(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", timeout_s=0.05))
        with pytest.raises(BrokerUnreachable):
            reader.read()
        now_s, asked = [100.0], [0]

        class Counting(FleetReader):
            def read(self) -> None:  # type: ignore[override]
                asked[0] += 1
                raise BrokerUnreachable("silent")

        latest = Latest([Counting(connect("redis://127.0.0.1:1/0"))], lambda: now_s[0])
        assert latest.look().fleets is None
        assert latest.look().fleets is None
        assert asked == [1]
        now_s[0] += FRESH_S
        latest.look()
        assert asked == [2]
