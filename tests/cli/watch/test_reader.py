"""Looks at a real Redis with a planted state: what they show, how much they read, and what they do without."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from oarlock.broker.budget import BudgetLimits, Report
from oarlock.broker.connection.client import connect
from oarlock.broker.keys import Keys
from oarlock.broker.looks.history import Triggers
from oarlock.broker.looks.inspect import raw_answers
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, ClaimLimits
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.broker.values.turns import Entry, Finish, Verdict
from oarlock.cli.look.budget import budget_facts
from oarlock.cli.top.heading import fleet_figures, problems_of
from oarlock.cli.watch import reader
from oarlock.cli.watch.fleet_look import FleetLook, plain
from oarlock.cli.watch.fleet_watch import FleetWatch
from oarlock.cli.watch.rates import Rates
from oarlock.cli.watch.reader import ShardReader
from oarlock.cli.watch.tracebacks import traceback_of
from oarlock.controllers.registry import CONTROLLERS, all_queues
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.metrics import fleet_reader
from oarlock.workers.rq.failed_turns import FailedTurns
from oarlock.workers.rq.job import KeyJob
from oarlock.workers.turn.engine.turn_engine import load_spec

QUEUE = "replicaset"


def claim(broker: RedisBroker, count: int = 1, holder: str = "w-1") -> Batch:
    limits = ClaimLimits(lease_ms=600_000, drain_ms=1_000, keys_max=count)
    batch = broker.claim(holder, f"nonce-{holder}", [load_spec(CONTROLLERS[QUEUE])], limits)
    assert isinstance(batch, Batch)
    return batch


def look(server: EmbeddedRedis) -> FleetLook:
    """As the user that may only read."""
    client = connect(server.url("metrics"))
    try:
        return FleetWatch([ShardReader(client)], clock_s=lambda: 5.0).look()
    finally:
        client.close()


def test_a_quiet_fleet(server: EmbeddedRedis, broker: RedisBroker) -> None:
    found = look(server)
    (shard,) = found.shards
    assert (shard.epoch, shard.phase, shard.intact, shard.paused, shard.unread) == (3, "OPEN", True, "", ())
    assert shard.server["redis_version"]
    assert shard.memory_bytes > 0
    assert [(each.worker, each.supervisor, each.state) for each in found.workers] == [("w-1", "s", "between")]
    assert {each.queue for each in found.queues} == set(all_queues())
    assert {each.resource for each in found.resources} == {"replicasets", "pods"}
    assert found.view_age_ms is not None
    assert (found.keys, found.trouble, found.namespaces, found.active, found.at_s) == ((), (), (), 0, 5.0)


def test_keys_and_workers(server: EmbeddedRedis, broker: RedisBroker) -> None:
    broker.add(QUEUE, ["shop/cart"])
    (claimed,) = claim(broker).claims
    broker.announce(claimed, "uid", [Entry("create", "pods/c-1"), Entry("create", "pods/c-2")], lease_ms=600_000)
    broker.add(QUEUE, ["shop/web", "batch/crunch"])
    broker.add_after(QUEUE, "batch/later", 3_600_000)
    found = look(server)
    assert [(each.key, each.state) for each in found.keys] == [
        ("shop/cart", "running"),
        ("shop/web", "queued"),
        ("batch/crunch", "queued"),
        ("batch/later", "delayed"),
    ]
    asked = Triggers(1, "asked", "asked")
    assert [each.why for each in found.keys] == [asked, asked, asked, None]
    ages = [each.age_ms for each in found.keys[:3]]
    assert all(age is not None and 0 <= age < 60_000 for age in ages)
    assert 3_500_000 < (found.keys[3].due_in_ms or 0) <= 3_600_000
    (worker,) = found.workers
    assert (worker.state, worker.queue, worker.key, worker.writes, worker.why) == (
        "working",
        QUEUE,
        "shop/cart",
        2,
        asked,
    )
    assert 0 < (worker.lease_ms or 0) <= 600_000
    assert [(each.namespace, each.keys) for each in found.namespaces] == [("shop", 2), ("batch", 1)]
    assert (found.active, found.sampled, found.total("queued"), found.total("in_work")) == (3, 3, 2, 1)


def test_failing_and_parked_keys(server: EmbeddedRedis, client: redis.Redis, broker: RedisBroker) -> None:
    broker.add(QUEUE, ["shop/sad"])
    (claimed,) = claim(broker).claims
    broker.finish([Finish(QUEUE, claimed.key, claimed.nonce, Verdict.RETRY, did="ValueError: no size")])
    for holder in ("w-b", "w-c"):
        broker.add(QUEUE, ["shop/bad"], unpark=True)
        broker.register(holder, "sup", [QUEUE])
        claim(broker, holder=holder)
        broker.release(holder, blamed=f"{QUEUE}:shop/bad")
    FailedTurns(client, "w-1").add(KeyJob.of(QUEUE, "shop/sad", client), "Traceback:\n  ValueError: no size")
    bad, sad = look(server).trouble
    assert (bad.key, bad.state, bad.crashes) == ("shop/bad", "parked", 2)
    assert (bad.due_in_ms or 0) > 0
    assert (sad.key, sad.state, sad.failures, sad.did) == ("shop/sad", "failing", 1, "ValueError: no size")
    assert sad.due_in_ms is not None
    assert traceback_of(client, QUEUE, "shop/sad") == "Traceback:\n  ValueError: no size"
    assert traceback_of(client, QUEUE, "shop/bad") == ""


def test_turns_that_began_are_counted_where_redis_counts(
    server: EmbeddedRedis, client: redis.Redis, broker: RedisBroker
) -> None:
    broker.add(QUEUE, [f"shop/k{i}" for i in range(10)])
    claim(broker, 4)
    counts = int(client.info("server")["redis_version"].partition(".")[0]) >= 7
    assert look(server).shards[0].began == (4 if counts else None)


def test_of_a_broken_value_only_its_part_is_missing_and_that_is_told(
    server: EmbeddedRedis, client: redis.Redis, broker: RedisBroker
) -> None:
    broker.add(QUEUE, ["shop/web"])
    client.delete(Keys(3).delayed(QUEUE))
    client.set(Keys(3).delayed(QUEUE), "text")
    found = look(server)
    assert [each.key for each in found.keys] == ["shop/web"]
    (problem,) = found.shards[0].unread
    assert problem.startswith(f"ZRANGE {Keys(3).delayed(QUEUE)}: WRONGTYPE")


def test_what_nobody_can_read_is_a_shard_that_is_away(
    server: EmbeddedRedis, client: redis.Redis, broker: RedisBroker
) -> None:
    broker.add(QUEUE, ["shop/web"])
    claim(broker)
    client.hset(Keys(3).locks(QUEUE), "shop/web", "not a lock")
    with pytest.raises(BrokerUnreachable, match="its data cannot be read"):
        look(server)


def test_without_an_epoch(server: EmbeddedRedis, client: redis.Redis) -> None:
    found = look(server)
    assert [(each.epoch, each.phase, each.intact) for each in found.shards] == [(0, "", False)]
    assert (found.queues, found.keys, found.view_age_ms) == ((), (), None)


def test_no_shard_answers() -> None:
    client = connect("redis://127.0.0.1:1/0")
    with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1"):
        FleetWatch([ShardReader(client)]).look()
    client.close()


def test_one_shard_is_away(server: EmbeddedRedis, broker: RedisBroker) -> None:
    here, gone = connect(server.url("metrics")), connect("redis://127.0.0.1:1/0")
    found = FleetWatch([ShardReader(here), ShardReader(gone, "1")]).look()
    assert [each.shard for each in found.shards] == ["0"]
    ((shard, reason),) = found.away
    assert shard == "1"
    assert "127.0.0.1:1" in reason
    here.close()


def size(answer: Any) -> int:
    """How many values an answer has."""
    return sum(map(size, answer)) if isinstance(answer, list) else 1


def test_a_look_reads_as_much_at_100_000_keys_as_at_5_000(
    server: EmbeddedRedis, broker: RedisBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []
    values: list[int] = []

    def counted(client: redis.Redis, commands: Any, raise_on_error: bool = True) -> list[Any]:
        answers = raw_answers(client, commands, raise_on_error)
        asked.extend(commands)
        values.extend(map(size, answers))
        return answers

    monkeypatch.setattr(reader, "raw_answers", counted)
    monkeypatch.setattr(fleet_reader, "raw_answers", counted)
    costs = []
    for first, last in ((0, 5_000), (5_000, 100_000)):
        for at in range(first, last, 1_000):
            broker.add(QUEUE, [f"ns-{i % 50}/k{i}" for i in range(at, at + 1_000)])
        asked.clear()
        values.clear()
        found = look(server)
        assert found.active == last
        assert (len(found.keys), found.sampled, len(found.namespaces)) == (500, 500, 50)
        costs.append((len(asked), sum(values)))
    assert costs[0] == costs[1]
    assert costs[1][0] < 30 * len(all_queues())
    assert costs[1][1] < 4_000


def test_keys_that_a_pause_holds(server: EmbeddedRedis, broker: RedisBroker) -> None:
    """Held by a pause, or parked by people, with what is paused, since when, by whom and why."""
    broker.add(QUEUE, ["shop/a", "shop/b", "bank/c", "bank/d"])
    broker.steer("pause", "namespace shop", "by=me quota")
    broker.steer("pause", f"key {QUEUE}:shop/b", "by=you its webhook", for_ms=3_600_000)
    broker.steer("pause", f"key {QUEUE}:bank/c", "by=you")
    assert [each.key for each in claim(broker, 4).claims] == ["bank/d"]
    found = look(server)
    held = {each.key: each for each in found.keys if each.paused}
    assert {key: (each.state, each.paused) for key, each in held.items()} == {
        "shop/a": ("held", "namespace shop, by me: quota"),
        "shop/b": ("parked", f"key {QUEUE}:shop/b, by you: its webhook"),
        "bank/c": ("held", f"key {QUEUE}:bank/c, by you"),
    }
    assert held["shop/a"].why == Triggers(1, "asked", "asked")
    assert held["shop/a"].due_in_ms is None
    assert 3_500_000 < (held["shop/b"].due_in_ms or 0) <= 3_600_000
    assert all(0 <= (each.paused_ms or 0) < 60_000 for each in held.values())
    assert found.keys[-1].paused, "what is held comes last"
    (queue,) = [each for each in found.queues if each.queue == QUEUE]
    assert queue.held == found.total("held") == 3


def test_few_of_many_held_keys_are_read(server: EmbeddedRedis, broker: RedisBroker) -> None:
    broker.add(QUEUE, [f"shop/{n:03}" for n in range(120)])
    broker.steer("pause", "namespace shop", "by=me")
    broker.claim("w-1", "n", [load_spec(CONTROLLERS[QUEUE])], ClaimLimits(5_000, 14_000))
    found = look(server)
    assert len(found.keys) == reader.HELD_MAX
    assert found.total("held") == 120


def test_the_api_budget_is_read_and_told(server: EmbeddedRedis, broker: RedisBroker) -> None:
    (shard,) = look(server).shards
    assert shard.budget is None
    limits = BudgetLimits(most=100_000, least=1_000, flights=50)
    broker.budget(limits, [Report("w-1", under_way=12, flights=20, wants={QUEUE: 90_000})], lease_ms=600_000)
    found = look(server)
    (shard,) = found.shards
    assert shard.budget is not None
    assert (shard.budget.qps, shard.budget.in_flight, shard.budget.in_flight_most) == (100.0, 12, 50)
    assert fleet_figures(found, Rates())["API budget"] == "100 of 100/s, 12 of 50 under way"
    assert problems_of(found) == []
    assert plain(found)["shards"][0]["budget"] == budget_facts(shard.budget)


def test_why_the_api_budget_was_cut_stands_with_what_is_wrong(server: EmbeddedRedis, broker: RedisBroker) -> None:
    limits = BudgetLimits(most=100_000, least=1_000)
    broker.budget(limits, [Report("w-1", refused=3, wants={QUEUE: 90_000})], lease_ms=600_000)
    (said,) = problems_of(look(server))
    assert said.startswith("API budget: ")
    assert "the API server answered 429" in said
