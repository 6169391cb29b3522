"""What can be seen from outside: with the rights of the user "metrics", by plain commands."""

from __future__ import annotations

import pytest

from oarlock.broker.expectations import OpenWrite
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.looks.views import KeyLine, LockView
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.broker.values.events import Event
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Change, Entry, Verdict
from tests.broker.broker_cases import DRAIN_MS, LEASE_MS, QUEUE, RedisCase, claim, claim_one, finish, opened, park

pytestmark = pytest.mark.real


def inspector(case: RedisCase) -> Inspector:
    return Inspector(case.clients["metrics"], case.epoch, now_ms=case.now_ms)


@pytest.fixture
def busy(real: RedisCase) -> RedisCase:
    """Some of everything."""
    opened(real, "ns/a", "ns/b")
    park(real, "ns/bad")
    real.worker.add(QUEUE, ["ns/a", "ns/b"])
    first = claim_one(real)
    real.advance(1_000)
    real.worker.announce(first, "uid-ns/a", [Entry("create", "pods/x")], lease_ms=LEASE_MS)
    claim_one(real)
    real.worker.add(QUEUE, ["ns/b", "ns/c", "ns/d"])
    real.worker.add_after(QUEUE, "ns/later", 700)
    real.worker.add_rate_limited(QUEUE, "ns/a")
    return real


def test_a_queue_in_numbers(busy: RedisCase) -> None:
    look = inspector(busy)
    assert look.queues() == [QUEUE]
    view = look.queue(QUEUE)
    assert (view.queued, view.in_work, view.delayed, view.parked, view.failing) == (2, 2, 2, 1, 1)
    assert look.queue("none").oldest_age_ms is None
    real_clock = Inspector(busy.clients["metrics"], busy.epoch).queue(QUEUE)
    assert real_clock.oldest_age_ms is not None
    assert 0 <= real_clock.oldest_age_ms < 60_000


def test_every_key_that_is_not_idle(busy: RedisCase) -> None:
    assert inspector(busy).keys_of(QUEUE) == [
        KeyLine(QUEUE, "ns/a", "running"),
        KeyLine(QUEUE, "ns/b", "running+"),
        KeyLine(QUEUE, "ns/c", "queued"),
        KeyLine(QUEUE, "ns/d", "queued"),
        KeyLine(QUEUE, "ns/bad", "parked", 0, crashes=2),
        KeyLine(QUEUE, "ns/a", "delayed", 5),
        KeyLine(QUEUE, "ns/later", "delayed", 700),
    ]


def test_suspects(real: RedisCase) -> None:
    """Their lease ended; nobody knows yet whether they had a part in it."""
    opened(real, "ns/a")
    real.worker.add(QUEUE, ["ns/a"])
    claim_one(real)
    real.advance(LEASE_MS)
    real.worker.reclaim()
    look = inspector(real)
    assert look.keys_of(QUEUE) == [KeyLine(QUEUE, "ns/a", "queued", crashes=0)]
    assert (look.key(QUEUE, "ns/a").suspect, look.key(QUEUE, "ns/a").crashes) == (True, 0)
    finish(real, claim_one(real))
    assert not look.key(QUEUE, "ns/a").suspect


def test_locks(busy: RedisCase) -> None:
    busy.advance(400)
    first, second = inspector(busy).locks()
    assert isinstance(first, LockView)
    assert {(each.key, each.age_ms, each.remaining_ms) for each in (first, second)} == {
        ("ns/a", 1_400, LEASE_MS - 400),
        ("ns/b", 400, LEASE_MS - 400),
    }
    assert (first.holder, len(first.nonce) > 1) == ("w1", True)


def test_all_of_one_key(busy: RedisCase) -> None:
    view = inspector(busy).key(QUEUE, "ns/a")
    assert (view.state, view.delayed_in_ms, view.parked_in_ms, view.failures, view.crashes) == (
        "running",
        5,
        None,
        1,
        0,
    )
    assert view.unsettled_age_ms == 0
    assert view.expectations is not None
    now_ms = busy.now_ms()
    pending = f"pending since_ms={now_ms} sent_ms={now_ms} tries=1"
    assert view.expectations.fields == {"owner": "uid-ns/a", "create pods/x": pending}
    assert view.expectations.now_ms == now_ms
    assert 691_190_000 < view.expectations.ttl_ms <= 691_200_000
    assert view.lock is not None
    assert view.lock.remaining_ms == LEASE_MS
    bad = inspector(busy).key(QUEUE, "ns/bad")
    assert (bad.state, bad.crashes, bad.lock, bad.expectations) == ("parked", 2, None, None)
    idle = inspector(busy).key(QUEUE, "ns/none")
    assert (idle.state, idle.lock, idle.min_rv, idle.unsettled_age_ms) == ("idle", None, "", None)


def test_what_a_key_needs(busy: RedisCase) -> None:
    busy.worker.release("w1")
    busy.worker.register("w2", "s", [QUEUE])
    for one in claim(busy, "w2"):
        finish(busy, one, Verdict.OK, None, Change.min_rv("pods", "500"), Change.drop("create pods/x"))
    view = inspector(busy).key(QUEUE, "ns/a")
    assert (view.min_rv, view.state, view.delayed_in_ms) == ("pods=500", "idle", 5), "the earlier look is the first"
    assert view.expectations is not None
    assert view.expectations.fields == {"owner": "uid-ns/a", "reserved pods/x": f"until_ms={busy.now_ms() + DRAIN_MS}"}


def test_a_write_that_is_sent_again_is_unanswered_since_it_was_sent_first(busy: RedisCase) -> None:
    first_ms = busy.now_ms()
    busy.advance(1_000)
    busy.worker.release("w1")
    busy.worker.register("w2", "s", [QUEUE])
    for one in claim(busy, "w2"):
        if one.key == "ns/a":
            busy.worker.announce(one, "uid-ns/a", [Entry("create", "pods/x")], lease_ms=LEASE_MS)
    view = inspector(busy).key(QUEUE, "ns/a")
    assert view.expectations is not None
    assert view.expectations.fields == {
        "owner": "uid-ns/a",
        "create pods/x": f"pending since_ms={first_ms} sent_ms={busy.now_ms()} tries=2",
        "reserved pods/x": f"until_ms={busy.now_ms() + DRAIN_MS}",
    }
    assert view.unsettled_age_ms == 1_000


def test_records(busy: RedisCase) -> None:
    (found,) = inspector(busy).expectations(QUEUE)
    assert (found.queue, found.key, set(found.fields)) == (QUEUE, "ns/a", {"owner", "create pods/x"})
    assert list(inspector(busy).expectations("none")) == []
    assert found.parsed is not None
    now_ms = busy.now_ms()
    assert found.now_ms == now_ms
    assert (found.parsed.owner_uid, found.parsed.creates) == ("uid-ns/a", {"pods/x": OpenWrite(now_ms, now_ms)})


def test_a_record_with_back_offs(busy: RedisCase) -> None:
    busy.worker.release("w1")
    busy.worker.register("w2", "s", [QUEUE])
    for one in claim(busy, "w2"):
        entries = [
            Entry("create", "pods/x", hint="node=n1"),
            Entry("backoff", "n2", hint="generation=1 delay_ms=1000 at_ms=5"),
        ]
        busy.worker.announce(one, "u", entries, lease_ms=LEASE_MS)
    for found in inspector(busy).expectations(QUEUE):
        assert found.fields["create pods/x"].endswith(" node=n1")
        assert found.fields["backoff n2"] == "generation=1 delay_ms=1000 at_ms=5"
        assert 691_190_000 < found.ttl_ms <= 691_200_000
        assert found.parsed is not None
        assert (found.parsed.hints, set(found.parsed.back_offs)) == ({"pods/x": "node=n1"}, {"n2"})
    assert inspector(busy).key(QUEUE, "ns/none").expectations is None


def test_the_cache(busy: RedisCase) -> None:
    busy.ingestor.ingest(
        "pods", "100", "2000", [Event(f"ns/p{i}", f"{101 + i}", f"u{i}", bytes([i % 256])) for i in range(1_500)]
    )
    busy.advance(250)
    look = inspector(busy)
    assert [(each.resource, each.rv, each.age_ms, each.generation, each.objects) for each in look.resources()] == [
        ("pods", "2000", 250, "first-pods", 1_500),
        ("replicasets", "100", 1_250, "first-replicasets", 2),
    ]
    assert look.object("pods", "ns/p7") == Cached("108", "u7", b"\x07")
    assert look.object("pods", "ns/none") is None
    found = dict(look.objects("pods"))
    assert len(found) == 1_500
    assert found["ns/p10"].blob == b"\n"
    assert list(look.objects("nothing")) == []
    counted = Event("ns/p9", "2001", "u", b"begins", ("owner=x",), kind=b"+r\n ends ")
    busy.ingestor.ingest("pods", "2000", "2001", [counted])
    assert look.object("pods", "ns/p9") == Cached("2001", "u", b"begins ends u")


def test_a_look_at_nothing(real: RedisCase) -> None:
    look = inspector(real)
    assert (look.queues(), look.keys_of(QUEUE), look.locks(), look.resources()) == ([], [], [], [])


def test_a_look_at_a_server_that_is_gone(real: RedisCase) -> None:
    from oarlock.broker.connection.client import connect

    with pytest.raises(BrokerUnreachable):
        Inspector(connect("redis://127.0.0.1:1", timeout_s=0.5), 1).queues()
