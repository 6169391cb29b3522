"""A shard's broker touches the keys of its shard and no others: neither writes nor reads, in any script."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import redis
from redis.exceptions import NoPermissionError

from oarlock.broker import epoch, keys
from oarlock.broker.budget import BudgetLimits, Report
from oarlock.broker.connection.client import connect
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps import script_texts
from oarlock.broker.values.claims import Batch, Claim, ClaimLimits
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Entry, Finish, Verdict
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.broker.broker_cases import QUEUE, SPECS, TEST_CLOCK
from tests.broker.broker_servers import REAL, Serve

USER, PASSWORD = "of-shard-one", "one"
EPOCH = 5


@pytest.fixture(params=REAL)
def server(request: pytest.FixtureRequest, serve: Serve) -> Iterator[EmbeddedRedis]:
    """With a user who may do everything, and that only with keys that bear the tag of shard 1."""
    running, clients = serve(request.param)
    admin = clients["admin"]
    admin.flushall()
    admin.execute_command("ACL", "SETUSER", USER, "reset", "on", f">{PASSWORD}", "+@all", "~oarlock:*{1}:*")
    yield running
    admin.execute_command("ACL", "DELUSER", USER)


@pytest.fixture
def client(server: EmbeddedRedis) -> Iterator[redis.Redis]:
    head, _, place = server.url("admin").partition("@")
    assert head
    opened = connect(f"redis://{USER}:{PASSWORD}@{place}")
    yield opened
    opened.close()


class Calls(RedisBroker):
    """Notes which scripts were called."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, EPOCH, shard="1", blocking=client)
        self.called: set[str] = set()

    def _run(self, name: str, *args: object) -> list[object]:
        self.called.add(name)
        return super()._run(name, *args)


def pod(key: str, rv: str, *entries: str) -> Event:
    return Event(key, rv, f"uid-{key}", b"{}", entries, (f"{QUEUE}:ns/web",))


def claim(broker: RedisBroker, holder: str, nonce: str) -> list[Claim]:
    batch = broker.claim(holder, nonce, SPECS, ClaimLimits(lease_ms=5_000, drain_ms=9_000))
    return batch.claims if isinstance(batch, Batch) else []


def test_every_script_keeps_to_its_shard(client: redis.Redis, server: EmbeddedRedis) -> None:
    """Under an ACL that lets nothing else be touched: a script that does would fail with NOPERM."""
    epoch.bootstrap(client, EPOCH, "1")
    broker = Calls(client)
    for resource in ("replicasets", "pods"):
        events = [Event("ns/web", "10", "uid-web", b"owner")] if resource == "replicasets" else [pod("ns/p", "10", "a")]
        assert broker.stage(resource, "g", events)
        assert broker.commit_list(resource, "g", "12").verdict == "OK"
    while broker.republish():
        pass
    assert broker.open(["replicasets", "pods"]) == ""
    broker.register("w", "s", [QUEUE])
    broker.register("v", "s", [QUEUE])
    assert broker.ingest("pods", "12", "14", [pod("ns/q", "13", "mirror", "b"), pod("ns/p", "14", "c")]).verdict == "OK"
    assert broker.ingest("pods", "14", "15", [Event("ns/q", "15", "uid-ns/q", None)]).verdict == "OK"
    broker.add(QUEUE, ["ns/web", "ns/other"])
    found = claim(broker, "w", "n1")
    assert {each.key for each in found} == {"ns/web", "ns/other"}
    broker.announce(found[0], "uid-web", [Entry("create", "pods/x"), Entry("delete", "pods/p", "u")], lease_ms=5_000)
    assert broker.renew(["w"], lease_ms=5_000) == []
    lent = broker.budget(BudgetLimits(10_000, 1_000), [Report("w", wants={QUEUE: 2_000})], lease_ms=5_000)
    assert [each.holder for each in lent.shares] == ["w"]
    broker.add(QUEUE, ["ns/web"])
    broker.finish([Finish(QUEUE, each.key, each.nonce, Verdict.RETRY) for each in found])
    broker.add_after(QUEUE, "ns/late", 10_000)
    broker.add_rate_limited(QUEUE, "ns/late")
    assert broker.num_requeues(QUEUE, "ns/late") >= 1
    broker.forget(QUEUE, "ns/late")
    broker.due()
    assert claim(broker, "v", "n2")
    assert broker.release("v", blamed=f"{QUEUE}:ns/web")
    broker.reclaim()
    broker.wait([QUEUE], 0.01)
    assert broker.steer("pause", "namespace ns", "by=me") is True
    broker.add(QUEUE, ["ns/web"])
    assert claim(broker, "w", "n3") == []
    assert broker.steer("resume", "namespace ns", "by=me") is True
    broker.due()
    assert broker.steer("limit", "rate namespace ns", "by=me rate=0.1") is True
    assert broker.steer("set", "weight namespace ns", "by=me weight=3") is True
    assert broker.steer("set", f"weight queue {QUEUE}", "by=me weight=3") is True
    broker.add(QUEUE, [f"ns/{number}" for number in range(40)])
    assert len(claim(broker, "w", "n4")) == 1
    assert broker.due()[1] is not None
    assert broker.steer("resume", "rate namespace ns", "by=me") is True
    broker.due()
    assert broker.drain("drain", "v", "by=me") is None
    assert broker.drain("drain", "w", "by=me") == ["w"]
    assert len(broker.acts()) == 7
    broker.report("ingestor-1", "hears all")
    assert broker.pause("why") == "HELD"
    assert broker.pause("") == "OPEN"
    rv, _ = broker.look("pods", ids=["ns/p"], index=["c"])
    assert rv == "15"
    assert broker.page("pods", ["c"]) is not None
    assert broker.watermark("pods") == "15"
    assert broker.called == set(script_texts.NAMES)

    inspector = Inspector(client, EPOCH, "1")
    for queue in inspector.queues():
        inspector.queue(queue)
        inspector.keys_of(queue)
        list(inspector.expectations(queue))
        inspector.key(queue, "ns/web")
    assert inspector.pause_reason() == ""
    inspector.locks()
    assert {each.resource for each in inspector.resources()} == {"pods", "replicasets"}
    assert dict(inspector.objects("pods"))

    assert epoch.current(client, "1").epoch == EPOCH
    assert epoch.end(client, "1") == EPOCH + 1
    assert epoch.sweep_older(client, EPOCH + 1, "1") > 0
    assert client.dbsize() == 1, "nothing but the number is left of it"


def test_the_acl_of_this_test_forbids_the_keys_of_other_shards(client: redis.Redis) -> None:
    """Else the test above could not fail."""
    for shard in ("0", "10", "11"):
        with pytest.raises((NoPermissionError, BrokerUnreachable), match=r"permission"):
            epoch.bootstrap(client, 1, shard)
        with pytest.raises((NoPermissionError, BrokerUnreachable), match=r"permission"):
            epoch.current(client, shard)


def test_shards_on_one_server_share_nothing_but_the_texts(client: redis.Redis, server: EmbeddedRedis) -> None:
    """Each has its own number; the end of one leaves another alone that has the same number and so the same texts."""
    admin = connect(server.url("admin"))
    epoch.bootstrap(admin, EPOCH, "0", TEST_CLOCK)
    epoch.bootstrap(admin, EPOCH, "1", TEST_CLOCK)
    admin.set("oarlock:test-clock", 1)
    one, other = (RedisBroker(admin, EPOCH, shard=shard, clock=TEST_CLOCK) for shard in "01")
    other.add(QUEUE, ["ns/theirs"])
    epoch.end(admin, "1")
    epoch.sweep_older(admin, EPOCH + 1, "1")
    assert one.add(QUEUE, ["ns/ours"]) == 1
    assert not [*admin.scan_iter(keys.base(EPOCH, "1") + "*")]
    tags = {match[1] for name in admin.scan_iter("oarlock:*") if (match := re.search(rb"\{(\w+)\}", name))}
    assert tags == {b"0", b"1"}
    admin.close()
