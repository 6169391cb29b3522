"""A fleet that signs, on a real Redis, and somebody who writes there: nothing of his reaches the cluster, nothing ends,
and the fleet goes on when what he wrote is gone, or when everything is written anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from oarlock.broker.values.objects import Cached
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sandbox.redis.redis_binary import NoRedisBinary
from tests.security.mini_fleet import KEY, Fleet

pytestmark = pytest.mark.real

OWNERS = "replicasets"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    try:
        embedded = EmbeddedRedis(tmp_path_factory.mktemp("signed-redis")).start()
    except NoRedisBinary as error:
        pytest.skip(str(error))
    yield embedded
    embedded.stop()


@pytest.fixture
def fleet(server: EmbeddedRedis) -> Iterator[Fleet]:
    fleet = Fleet(server, signs=True)
    yield fleet
    assert (fleet.crashes, fleet.cluster.wrong) == ([], [])


def cache_of(fleet: Fleet, resource: str = OWNERS) -> str:
    assert fleet.broker is not None
    names = fleet.broker.keys
    generation = fleet.admin.hget(names.of("generation"), resource)
    assert isinstance(generation, bytes)
    return names.objects(resource, generation.decode())


def value_of(fleet: Fleet, resource: str = OWNERS, key: str = KEY) -> bytes:
    value = fleet.admin.hget(cache_of(fleet, resource), key)
    assert isinstance(value, bytes)
    return value


def put(fleet: Fleet, value: bytes) -> None:
    """Into the owner's place; and its key is queued."""
    assert fleet.broker is not None
    fleet.admin.hset(cache_of(fleet), KEY, value)  # type: ignore[arg-type]
    fleet.broker.add("replicaset", [KEY])


def tampered(value: bytes) -> bytes:
    """With other content: another digest of a template."""
    head, entries, wakes, blob = value.split(b"\n", 3)
    at = blob.index(b"\xb4") + 1  # a text of twenty letters
    changed = blob[:at] + bytes(20) + blob[at + 20 :]
    assert changed != blob
    return b"\n".join([head, entries, wakes, changed])


def unsigned(value: bytes) -> bytes:
    head, rest = value.split(b"\n", 1)
    return b" ".join(head.split(b" ")[:2]) + b"\n" + rest


def test_everything_is_signed_and_the_fleet_works(fleet: Fleet) -> None:
    for resource in (OWNERS, "pods"):
        values: list[bytes] = fleet.admin.hvals(cache_of(fleet, resource))  # type: ignore[assignment]
        assert values
        assert all(Cached.parse(value).signature for value in values)
    fleet.want(6)
    assert fleet.run(3_000, until_healthy=True), fleet.story()
    fleet.want(1)
    assert fleet.run(3_000, until_healthy=True), fleet.story()


def test_an_owner_of_ones_choice_is_refused_again_and_again_and_the_real_one_goes_on(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    real = value_of(fleet)
    put(fleet, tampered(real))
    fleet.run(5_000)
    assert fleet.leaves == []
    assert len(fleet.pods) == 3
    said = [record for record in caplog.records if "turn_failed" in record.getMessage()]
    assert 3 <= len(said) <= 30, "with back-off, no loop"
    assert all("is not that of its content" in record.getMessage() for record in said)
    fleet.want(5)  # its next event puts the real one there
    assert fleet.run(8_000, until_healthy=True), fleet.story()


def test_a_signed_value_of_an_earlier_epoch_is_no_good_in_this_one(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    earlier = value_of(fleet)
    assert fleet.broker is not None
    fleet.admin.delete(fleet.broker.keys.epoch)
    fleet.run(1_000)
    assert fleet.run(8_000, until_healthy=True), fleet.story()
    assert value_of(fleet) != earlier
    put(fleet, earlier)
    fleet.run(1_500)
    assert "is not that of its content" in caplog.text
    assert fleet.broker is not None
    assert fleet.broker.num_requeues("replicaset", KEY) > 0
    fleet.admin.delete(fleet.broker.keys.epoch)  # the mend that the manual names
    fleet.run(1_000)
    assert fleet.run(8_000, until_healthy=True), fleet.story()
    assert fleet.broker.num_requeues("replicaset", KEY) == 0


def test_an_ingestor_that_finds_such_an_owner_writes_everything_anew(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    """As it does where the ones before it had no key."""
    caplog.set_level(logging.INFO)
    before = cache_of(fleet), cache_of(fleet, "pods")
    put(fleet, unsigned(value_of(fleet)))
    fleet.run(500)
    assert "it has no signature: whoever wrote it has no signing key" in caplog.text
    fleet._ingestor("a", 0)  # it is started again
    assert fleet.run(10_000, until_healthy=True), fleet.story()
    assert "cache distrusted" in caplog.text
    assert (cache_of(fleet), cache_of(fleet, "pods")) != before
    assert Cached.parse(value_of(fleet)).signature
    assert caplog.text.count("cache distrusted") <= 2


def test_an_object_that_cannot_be_read_ends_no_ingestor_that_does_not_sign(
    server: EmbeddedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    fleet = Fleet(server)
    head, entries, wakes, blob = value_of(fleet).split(b"\n", 3)
    for garbage in (b"", b"\xc1", b"\x91" * 100_000, blob[:-5]):
        put(fleet, b"\n".join([head, entries, wakes, garbage]))
        fleet.run(1_000)  # a worker meets it first: its turn fails, and is tried again
        assert fleet.leaves == []
        fleet._ingestor("a", 0)
        fleet.want(5 if fleet.replicas == 3 else 3)
        assert fleet.run(10_000, until_healthy=True), fleet.story()
        assert fleet.run(6_000), fleet.story()  # the lists are read
    assert caplog.text.count("it cannot be read") == 4
    assert (fleet.crashes, fleet.cluster.wrong) == ([], [])
