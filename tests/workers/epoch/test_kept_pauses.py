"""What people have paused outlives the data in Redis, by the Lease."""

from __future__ import annotations

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.pauses import digest, packed
from oarlock.broker.redis_broker import RedisBroker
from oarlock.workers.epoch.fleet_lease import FleetLease
from oarlock.workers.epoch.kept_pauses import restore
from oarlock.workers.process.settings import Settings
from tests.broker.broker_cases import TEST_CLOCK
from tests.workers.ingest.ingest_api import REPLICASETS, replicaset_json
from tests.workers.ingest.ingest_rig import SETTINGS, Rig


def opened(rig: Rig, *names: str, settings: Settings = SETTINGS) -> Rig:
    rig.api.put(REPLICASETS, replicaset_json("x", "web", "rs1", labels={"app": "a"}))
    for name in names:
        rig.start(name, settings=settings)
    rig.open()
    return rig


def broker(rig: Rig) -> RedisBroker:
    return RedisBroker(rig.server.admin, rig.server.epoch().epoch, clock=TEST_CLOCK)


def lease(rig: Rig) -> FleetLease:
    assert rig.lease.held is not None
    return FleetLease.of(rig.lease.held.spec)


def kept(rig: Rig) -> str:
    return (rig.server.admin.get(broker(rig).keys.of("pauses_kept")) or b"").decode()


def pass_time(rig: Rig, ms: int = 3_000) -> None:
    for _ in range(0, ms, 250):
        rig.advance(250)
        rig.settle()


def test_a_pause_is_in_the_lease_soon_and_redis_says_so(rig: Rig) -> None:
    opened(rig, "a")
    broker(rig).steer("pause", "namespace x", "by=me it burns")
    assert lease(rig).pauses == ""
    pass_time(rig)
    pauses = broker(rig).pauses().texts
    assert lease(rig).pauses == packed(pauses) != ""
    assert kept(rig) == digest(pauses)
    broker(rig).steer("resume", "namespace x", "by=me")
    pass_time(rig)
    assert (lease(rig).pauses, kept(rig)) == ("", digest({}))
    assert "oarlock.io/pauses" not in rig.lease.held.spec.annotations  # type: ignore[union-attr]


def test_a_lease_that_is_read_more_often_than_redis_is_looked_at_has_it_too(rig: Rig) -> None:
    short = Settings(lease_ms=1_500, renew_every_ms=400, request_timeout_ms=700)
    opened(rig, "a", settings=short)
    broker(rig).steer("pause", "namespace x", "by=me it burns")
    pass_time(rig)
    pauses = broker(rig).pauses().texts
    assert lease(rig).pauses == packed(pauses) != ""
    assert kept(rig) == digest(pauses)


def test_what_another_ingestor_told_redis_late_does_not_stay(rig: Rig) -> None:
    opened(rig, "a")
    broker(rig).steer("pause", "namespace x", "by=me it burns")
    pass_time(rig)
    broker(rig).steer("kept", digest({}), "")
    pass_time(rig)
    assert kept(rig) == digest(broker(rig).pauses().texts)


def test_a_lost_redis_begins_with_the_pauses_of_the_lease(rig: Rig) -> None:
    opened(rig, "a", "b")
    broker(rig).steer("pause", "namespace x", "by=me it burns")
    broker(rig).steer("pause", "queue daemonset", "by=you")
    broker(rig).steer("limit", "rate namespace x", "by=me rate=5")
    broker(rig).steer("set", "weight namespace x", "by=me weight=0.5")
    pass_time(rig)
    before = broker(rig).pauses().texts
    assert len(before) == 4
    rig.server.admin.flushall()
    pass_time(rig, 30_000)
    assert rig.server.epoch().epoch == 2
    assert rig.server.epoch().phase == "OPEN"
    assert broker(rig).pauses().texts == before
    assert kept(rig) == digest(before)


def test_a_pause_of_a_fleet_that_is_draining_is_kept_once_it_is_open(rig: Rig) -> None:
    rig.server.admin.set("oarlock:{0}:epoch", 41)
    rig.start("a")
    rig.settle()
    assert rig.server.epoch().phase == "DRAIN"
    broker(rig).steer("pause", "all", "by=me")
    rig.open()
    pass_time(rig)
    assert lease(rig).pauses == packed(broker(rig).pauses().texts) != ""


def test_what_no_command_paused_does_not_outlive_a_lost_redis(rig: Rig) -> None:
    opened(rig, "a")
    planted = {"namespace y": "by=me\nby=you", "all\nby=me": "", "namespace z": "x" * 1_000_000}
    rig.server.admin.hset(broker(rig).keys.of("pauses"), mapping=planted)
    broker(rig).steer("pause", "namespace x", "by=me it burns")
    pass_time(rig)
    before = broker(rig).pauses().texts["namespace x"]
    rig.server.admin.flushall()
    pass_time(rig, 30_000)
    assert (rig.server.epoch().epoch, rig.server.epoch().phase) == (2, "OPEN")
    assert broker(rig).pauses().texts == {"namespace x": before}


def test_what_is_no_pause_in_the_lease_is_passed_over() -> None:
    store = MemoryStore(lambda: 5)
    store.bootstrap(1)
    twin = MemoryBroker(store, 1)
    restore(twin, FleetLease("f", 4, 1, "r", "DRAIN", "a", 0, pauses="{not json"))
    assert twin.pauses().texts == {}
    there = {"all": "since_ms=5 by=me", "namespace x": "since_ms=5 by=me\nby=you", "queue x": "x" * 5_000}
    restore(twin, FleetLease("f", 4, 1, "r", "DRAIN", "a", 0, pauses=packed(there)))
    assert twin.pauses().texts == {"all": "since_ms=5 by=me"}
