"""Hostile values in every key of ours, one after another, beneath a fleet at work on a real Redis.

Whoever may write to Redis may put anything anywhere. What comes of it is one of four things, said here for each kind of
key and of value, and no other: a process that ends, a loop, a wrong write.

    harmless   the fleet does its work with it in place
    epoch      the epoch is ended by whoever meets it, with a line that says so, and a new one is begun by itself
    refused    a line says so, the key waits, and goes on by itself or when it is taken away
    blind      no owner is seen, so nothing is done; it lasts until a new epoch is begun (DEL oarlock:{0}:epoch)
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from oarlock.broker import keys
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sandbox.redis.redis_binary import NoRedisBinary
from tests.security import planting
from tests.security.mini_fleet import KEY, QUEUE, UID, Fleet

pytestmark = pytest.mark.real

HARMLESS, EPOCH, REFUSED, BLIND = "harmless", "epoch", "refused", "blind"


class Expected(NamedTuple):
    """What comes of a value of another type, of binary, of numbers out of any range, and of a huge one."""

    type: str
    binary: str
    numbers: str
    huge: str


ALL_HARMLESS = Expected(HARMLESS, HARMLESS, HARMLESS, HARMLESS)
SHOWS_BY_TYPE = Expected(EPOCH, HARMLESS, HARMLESS, HARMLESS)
NO_LONGER_OURS = Expected(EPOCH, EPOCH, EPOCH, EPOCH)

EXPECTED: dict[str, Expected] = {
    "epoch": NO_LONGER_OURS,
    "phase": NO_LONGER_OURS,
    "hold": ALL_HARMLESS,
    "run": NO_LONGER_OURS,
    "fleet": ALL_HARMLESS,  # to those that are at work; tests/broker/test_epoch.py has those that come
    "queues": SHOWS_BY_TYPE,
    "<queue>:stream": Expected(EPOCH, EPOCH, HARMLESS, HARMLESS),
    "<queue>:backlog": Expected(EPOCH, EPOCH, HARMLESS, HARMLESS),
    "<queue>:passed": ALL_HARMLESS,
    "<queue>:rounds": SHOWS_BY_TYPE,
    "<queue>:state": NO_LONGER_OURS,
    "<queue>:delayed": Expected(EPOCH, EPOCH, HARMLESS, HARMLESS),
    "<queue>:parked": Expected(EPOCH, EPOCH, HARMLESS, HARMLESS),
    "<queue>:held": SHOWS_BY_TYPE,
    "<queue>:locks": SHOWS_BY_TYPE,
    "<queue>:turns": SHOWS_BY_TYPE,
    "<queue>:history": SHOWS_BY_TYPE,
    "<queue>:failures": SHOWS_BY_TYPE,
    "<queue>:crashes": Expected(EPOCH, EPOCH, HARMLESS, EPOCH),
    "<queue>:bucket": SHOWS_BY_TYPE,
    "<queue>:rate": SHOWS_BY_TYPE,
    "<queue>:expect:<key>": Expected(EPOCH, EPOCH, REFUSED, REFUSED),
    "<queue>:needs": Expected(EPOCH, HARMLESS, HARMLESS, EPOCH),
    "<queue>:unsettled": SHOWS_BY_TYPE,
    "<queue>:wake": SHOWS_BY_TYPE,
    "leases": NO_LONGER_OURS,
    "holders": SHOWS_BY_TYPE,
    "seen": SHOWS_BY_TYPE,
    "holder:<holder>": SHOWS_BY_TYPE,
    "lone": SHOWS_BY_TYPE,
    "waiters": SHOWS_BY_TYPE,
    "timer": SHOWS_BY_TYPE,
    "tick": Expected(EPOCH, EPOCH, HARMLESS, HARMLESS),
    "no_reclaim_until": Expected(EPOCH, EPOCH, HARMLESS, HARMLESS),
    "capping": SHOWS_BY_TYPE,
    "histories": SHOWS_BY_TYPE,
    "history_bytes": ALL_HARMLESS,
    "pauses": SHOWS_BY_TYPE,
    "strides": ALL_HARMLESS,
    "limits": SHOWS_BY_TYPE,
    "limited:<namespace>": ALL_HARMLESS,
    "pauses_kept": ALL_HARMLESS,
    "resuming": SHOWS_BY_TYPE,
    "drains": ALL_HARMLESS,
    "audit": SHOWS_BY_TYPE,
    "budget": ALL_HARMLESS,
    "shares": ALL_HARMLESS,
    "ingestors": ALL_HARMLESS,
    "audit_told": ALL_HARMLESS,
    "shadow:<queue>": ALL_HARMLESS,
    "shadow_windows": ALL_HARMLESS,
    "shadow_differences": ALL_HARMLESS,
    "watermark": NO_LONGER_OURS,
    "watermark_at": NO_LONGER_OURS,
    "unread:<resource>": SHOWS_BY_TYPE,
    "generation": Expected(EPOCH, EPOCH, BLIND, EPOCH),
    "cache:<resource>:<generation>": NO_LONGER_OURS,
    "index:<resource>:<generation>:<entry>": SHOWS_BY_TYPE,
    "summary:<resource>:<generation>:<entry>": NO_LONGER_OURS,
    "apart:<resource>:<generation>": NO_LONGER_OURS,
    "changes:<resource>:<generation>": SHOWS_BY_TYPE,
    "changes_at:<resource>:<generation>": SHOWS_BY_TYPE,
    "staging:<resource>": ALL_HARMLESS,
    "abandoned": ALL_HARMLESS,
    "republish": NO_LONGER_OURS,
}
SECONDS_LATER = 8_000
"""Time enough for a new epoch, in ms of the fleet's clock."""


def test_the_table_has_every_key_and_every_kind_of_value() -> None:
    assert list(EXPECTED) == [spec.pattern for spec in planting.SPECS] == ["epoch", *(s.pattern for s in keys.TABLE)]
    assert len(planting.KINDS) == len(Expected._fields)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    try:
        embedded = EmbeddedRedis(tmp_path_factory.mktemp("hostile-redis")).start()
    except NoRedisBinary as error:
        pytest.skip(str(error))
    yield embedded
    embedded.stop()


class Kept:
    """One fleet for all cases: it has to be well again after each of them."""

    fleet: Fleet | None = None


@pytest.fixture
def fleet(server: EmbeddedRedis) -> Iterator[Fleet]:
    if Kept.fleet is None:
        Kept.fleet = Fleet(server)
    fleet, Kept.fleet = Kept.fleet, None
    fleet.forget_history()
    fleet.leaves.clear()
    assert fleet.healthy(), fleet.story()
    yield fleet
    if not fleet.crashes and not fleet.cluster.wrong and fleet.healthy():
        Kept.fleet = fleet


def place_of(pattern: str, fleet: Fleet) -> str:
    """The key's name, with what the fleet works on in it."""
    assert fleet.broker is not None
    assert fleet.worker is not None
    names = fleet.broker.keys
    if pattern == "epoch":
        return names.epoch
    first = pattern.partition(":")[0]
    resource = "pods" if first in ("index", "summary", "changes", "changes_at", "unread", "staging") else "replicasets"
    generation = fleet.admin.hget(names.of("generation"), resource)
    assert isinstance(generation, bytes)
    words = {
        "queue": QUEUE,
        "key": KEY,
        "holder": fleet.worker._holder,
        "namespace": KEY.partition("/")[0],
        "resource": resource,
        "generation": generation.decode(),
        "entry": f"owner={UID}",
    }
    return planting.name_of(pattern, names.base, words)


CASES = [
    pytest.param(spec, kind, expected, id=f"{spec.pattern} {kind}")
    for spec in planting.SPECS
    for kind, expected in zip(planting.KINDS, EXPECTED[spec.pattern], strict=True)
]


@pytest.mark.parametrize(("spec", "kind", "expected"), CASES)
def test_a_hostile_value(
    spec: keys.KeySpec, kind: str, expected: str, fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert fleet.broker is not None
    number, name = fleet.broker.epoch, place_of(spec.pattern, fleet)
    most = max(fleet.replicas, 5)
    planting.plant(spec, kind, fleet.admin, name)
    fleet.want(5 if fleet.replicas == 3 else 3)  # there is something to do

    well = fleet.run(600) if expected is not BLIND else fleet.run(3_000)
    if expected is HARMLESS:
        well = well or fleet.run(3_000, until_healthy=True)
    if expected is EPOCH:
        well = fleet.run(SECONDS_LATER, until_healthy=True)
        assert fleet.broker is not None, fleet.story()
        assert fleet.broker.epoch == number + 1, fleet.story()
        assert any(word in caplog.text for word in ("damaged", "is over", "phase went back", "Redis shows epoch")), (
            caplog.text
        )
    if expected is REFUSED:
        well = well or fleet.run(SECONDS_LATER, until_healthy=True)
        assert "none of ours announces" in caplog.text
    if expected is BLIND:
        assert not well
        assert fleet.broker is not None
        fleet.admin.delete(fleet.broker.keys.epoch)
        well = fleet.run(SECONDS_LATER, until_healthy=True)
        number += 1
    assert well, fleet.story()
    if expected is not EPOCH:
        assert fleet.broker is not None
        assert fleet.broker.epoch == number, fleet.story()

    assert fleet.crashes == []
    assert fleet.cluster.wrong == []
    assert len(fleet.leaves) <= 6, f"workers come and go: {fleet.leaves}"
    assert fleet.most_pods <= most
    assert len(caplog.records) <= 40, "the log is flooded"
    assert all(len(record.getMessage()) < 2_000 for record in caplog.records), "the log repeats what was planted"
    if expected in (HARMLESS, REFUSED):  # and nothing is left behind by taking it away
        planting.take_away(spec, kind, fleet.admin, name)
        fleet.want(5 if fleet.replicas == 3 else 3)
        assert fleet.run(SECONDS_LATER, until_healthy=True), fleet.story()


def test_the_last_number_of_an_epoch_is_not_counted_on_from(fleet: Fleet) -> None:
    """Whoever did would write it into the Lease, where it outlives Redis, and have none left for the next one."""
    for _ in range(2):
        assert fleet.broker is not None
        number = fleet.broker.epoch
        fleet.admin.set(fleet.broker.keys.epoch, 10**18 - 1)
        assert fleet.run(SECONDS_LATER, until_healthy=True), fleet.story()
        assert fleet.broker is not None
        assert fleet.broker.epoch == number + 1
    assert fleet.crashes == []
