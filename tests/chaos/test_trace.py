"""MONITOR to steps: of a real Redis with the real scripts, and of lines that are hard to read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.memory.state import FRONT
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps import script_texts
from oarlock.broker.values.claims import ClaimLimits, LoadSpec
from oarlock.broker.values.errors import ClaimLost
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Change, Entry, Finish, Verdict
from oarlock.chaos.faults.redis_view import RedisView
from oarlock.chaos.judge.evidence.evidence import (
    Answered,
    Attached,
    Claimed,
    Dirty,
    EpochBegun,
    LiveList,
    Lost,
    Opened,
    Recorded,
    Refused,
    Renewed,
    Step,
    Unknown,
    Unlocked,
    Watermark,
)
from oarlock.chaos.judge.evidence.sightings import DAEMONS, NODE_QUEUE
from oarlock.chaos.judge.evidence.trace import read_trace
from oarlock.chaos.judge.fences import Fences
from oarlock.chaos.record.monitor import END, Filter, MonitorRecorder
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis

SPEC = LoadSpec("replicaset", "replicasets", (("pods", "owner", "uid"), ("pods", "orphan", "wanted")))
TASK = "replicaset:shop/web"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis(tmp_path / "redis") as running:
        yield running


def recorded(server: EmbeddedRedis, path: Path, act: Any) -> list[Step]:
    """What is told of ``act``, which gets an admin's client."""

    async def record() -> None:
        recorder = MonitorRecorder(lambda: server.url("admin"), path)
        task = asyncio.create_task(recorder.run())
        await asyncio.wait_for(recorder.attached.wait(), 10)
        client = connect(server.url("admin"))
        await asyncio.to_thread(act, client)
        await asyncio.to_thread(lambda: connect(server.url("admin")).echo(END))
        await asyncio.wait_for(recorder.seen_to_the_end.wait(), 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(record())
    with path.open(encoding="latin-1") as lines:
        return list(read_trace(lines))


def begun(client: Any, number: int = 1, resources: Sequence[str] = ("replicasets", "pods")) -> RedisBroker:
    """An open epoch with nothing to do."""
    epoch.bootstrap(client, number)
    broker = RedisBroker(client, number)
    for resource in resources:
        broker.stage(resource, f"g-{resource}", [])
        broker.commit_list(resource, f"g-{resource}", "5")
    while broker.republish():
        pass
    broker.open(list(resources))
    broker.register("w-1", "s", ["replicaset"])
    broker.register("w-2", "s", ["replicaset"])
    return broker


def claim(broker: RedisBroker, holder: str, nonce: str) -> Any:
    batch = broker.claim(holder, nonce, [SPEC], ClaimLimits(lease_ms=3_000, drain_ms=7_000))
    return batch.claims[0]  # type: ignore[union-attr]


def bare(steps: Iterable[Step]) -> list[Any]:
    """Without times, but with what they are: as mere tuples two different steps could be equal."""
    return [(type(step).__name__, *step[1:]) for step in steps]


@pytest.mark.real
def test_a_turn_and_all_that_may_go_wrong_in_it(server: EmbeddedRedis, tmp_path: Path) -> None:
    def act(client: Any) -> None:
        broker = begun(client)
        owner = Event("shop/web", "6", "u", b'\x93\x00"\\\r\n', (), ("replicaset:shop/web",))
        broker.ingest("replicasets", "5", "6", [owner])
        held = claim(broker, "w-1", "n1")
        broker.announce(
            held, "u", [Entry("create", "pods/web-1"), Entry("delete", "pods/web-2", "u2", "7")], lease_ms=1
        )
        broker.announce(held, "", [], lease_ms=3_000)
        broker.ingest("pods", "5", "8", [Event("shop/web-9", "8", "u9", b"x", (), ("replicaset:shop/web",))])
        broker.announce(held, "u", [Entry("create", "pods/web-9")], lease_ms=3_000)  # borne: nothing is recorded
        broker.renew(["w-1", "w-2"], lease_ms=3_000)
        with pytest.raises(ClaimLost):
            broker.announce(held._replace(nonce="old"), "u", [Entry("create", "pods/web-3")], lease_ms=3_000)
        broker.finish([Finish("replicaset", "shop/web", "old", Verdict.OK)])
        changes = (
            Change.drop("create pods/web-1"),
            Change.set("delete pods/web-2", "answered uid=u2 rv=7"),
            Change.min_rv("pods", "9"),
            Change.settled(),
        )
        broker.finish([Finish("replicaset", "shop/web", "n1", Verdict.OK, None, changes)])

    steps = bare(recorded(server, tmp_path / "log", act))
    assert steps[:2] == bare([Attached(0.0, 0, ""), EpochBegun(0.0, 1)])
    after = steps[steps.index(("Opened", 1)) + 1 :]
    expected = [
        Watermark(0.0, 1, "replicasets", 5),  # written as it was, before all else: a full Redis refuses it here
        Watermark(0.0, 1, "replicasets", 6),
        Claimed(0.0, 1, TASK, "w-1", "n1"),
        Recorded(0.0, 1, TASK, "n1", (("create pods/web-1", ""), ("delete pods/web-2", "u2"))),
        Recorded(0.0, 1, TASK, "n1"),
        Watermark(0.0, 1, "pods", 5),
        Dirty(0.0, 1, TASK),
        Watermark(0.0, 1, "pods", 8),
        Renewed(0.0, 1, TASK, ("w-1", "w-2")),
        Refused(0.0, 1, TASK, "old", "announce"),
        Refused(0.0, 1, TASK, "old", "finish"),
        Answered(0.0, 1, TASK, "create pods/web-1"),
        Answered(0.0, 1, TASK, "delete pods/web-2"),
        Unlocked(0.0, 1, TASK, "finish", nonce="n1", state="queued"),
        LiveList(0.0, 1, TASK),
    ]
    assert after == bare(expected)


@pytest.mark.real
def test_a_write_that_is_sent_again_and_what_stays_of_it(server: EmbeddedRedis, tmp_path: Path) -> None:
    """A claim's times, and names that are reserved, passed over or rest, announce and settle nothing."""
    create, delete = Entry("create", "pods/web-1"), Entry("delete", "pods/web-2", "u2", "7")

    def act(client: Any) -> None:
        broker = begun(client)
        broker.add("replicaset", ["shop/web"])
        entries = [create, delete, Entry("rest", "pods/web-2", hint="uid=u2")]
        broker.announce(claim(broker, "w-1", "n1"), "u", entries, lease_ms=3_000)
        broker.release("w-1")
        held = claim(broker, "w-2", "n2")  # from here on their times run
        assert list(held.expectations.reserved) == ["pods/web-1"]
        broker.announce(held, "u", [create], lease_ms=3_000)
        changes = (Change.set("said", "create pods/web-1: no"), Change.set("passed pods/web-3", "until_ms=5"))
        broker.finish([Finish("replicaset", "shop/web", "n2", Verdict.OK, None, changes)])
        broker.add("replicaset", ["shop/web"])
        claim(broker, "w-2", "n3")
        changes = (Change.drop("create pods/web-1"), Change.drop("delete pods/web-2"), Change.drop("rest pods/web-2"))
        broker.finish([Finish("replicaset", "shop/web", "n3", Verdict.OK, None, changes)])
        broker.add("replicaset", ["shop/web"])
        claim(broker, "w-2", "n4")
        changes = (Change.drop("reserved pods/web-1"), Change.drop("passed pods/web-3"), Change.drop("said"))
        broker.finish([Finish("replicaset", "shop/web", "n4", Verdict.OK, None, changes)])

    steps = recorded(server, tmp_path / "log", act)
    after = bare(steps)[bare(steps).index(("Opened", 1)) + 1 :]
    assert after == bare(
        [
            Claimed(0.0, 1, TASK, "w-1", "n1"),
            Recorded(0.0, 1, TASK, "n1", (("create pods/web-1", ""), ("delete pods/web-2", "u2"))),
            Unlocked(0.0, 1, TASK, "release", holder="w-1", state="queued"),
            Claimed(0.0, 1, TASK, "w-2", "n2"),
            Recorded(0.0, 1, TASK, "n2", (("create pods/web-1", ""),)),
            Unlocked(0.0, 1, TASK, "finish", nonce="n2", state="delayed"),
            Claimed(0.0, 1, TASK, "w-2", "n3"),
            Answered(0.0, 1, TASK, "create pods/web-1"),
            Answered(0.0, 1, TASK, "delete pods/web-2"),
            Unlocked(0.0, 1, TASK, "finish", nonce="n3", state="delayed"),
            Claimed(0.0, 1, TASK, "w-2", "n4"),
            Answered(0.0, 1, TASK, ""),  # nothing is left, and the record goes
            Unlocked(0.0, 1, TASK, "finish", nonce="n4", state="idle"),
        ]
    )
    fences = Fences(7.0).read(steps)
    assert fences.violations == []
    claimed_s = next(each.at_s for each in steps if isinstance(each, Claimed) and each.nonce == "n3")
    first, second = fences.entries  # one each, however often it was sent
    assert (first.field, first.nonce) == ("create pods/web-1", "n1")
    assert (second.field, second.nonce) == ("delete pods/web-2", "n1")
    assert all(each.recorded_s < claimed_s < each.ended_s for each in (first, second))


@pytest.mark.real
def test_the_ways_out_of_a_lock(server: EmbeddedRedis, tmp_path: Path) -> None:
    def act(client: Any) -> None:
        broker = begun(client)
        broker.add("replicaset", ["shop/web"])
        claim(broker, "w-1", "n1")
        broker.release("w-1")
        claim(broker, "w-2", "n2")
        broker.finish([Finish("replicaset", "shop/web", "n2", Verdict.RETRY, 50)])
        broker.add("replicaset", ["shop/web"])
        held = claim(broker, "w-2", "n3")
        broker.announce(held, "u", [Entry("create", "pods/web-1")], lease_ms=3_000)
        broker.finish([Finish("replicaset", "shop/web", "n3", Verdict.OK)])  # unanswered: retried
        broker.add("replicaset", ["shop/web"])
        claim(broker, "w-2", "n4")
        broker.finish([Finish("replicaset", "shop/web", "n4", Verdict.GONE)])
        broker.add("replicaset", ["shop/web"])
        claim(broker, "w-2", "n5")
        broker.release("w-2", blamed=TASK)
        for number in (3, 4):
            broker.register(f"w-{number}", "s", ["replicaset"])
        claim(broker, "w-3", "n6")
        broker.release("w-3", blamed=TASK)
        broker.add("replicaset", ["shop/web"], unpark=True)
        batch = broker.claim("w-4", "n7", [SPEC], ClaimLimits(lease_ms=1, drain_ms=1))
        assert batch
        client.execute_command("HDEL", broker.keys.locks("replicaset"), "shop/web")

    steps = recorded(server, tmp_path / "log", act)
    expected = [
        Unlocked(0.0, 1, TASK, "release", holder="w-1", state="queued"),
        Unlocked(0.0, 1, TASK, "finish", nonce="n2", state="delayed"),
        Unlocked(0.0, 1, TASK, "finish", nonce="n3", state="delayed"),
        Unlocked(0.0, 1, TASK, "finish", nonce="n4", state="idle"),
        Unlocked(0.0, 1, TASK, "release", holder="w-2", state="queued"),
        Unlocked(0.0, 1, TASK, "release", holder="w-3", state="parked"),
        Unlocked(0.0, 1, TASK, ""),
    ]
    assert bare(step for step in steps if isinstance(step, Unlocked)) == bare(expected)
    assert ("Answered", 1, TASK, "") in bare(steps)  # the record of an owner that is gone


@pytest.mark.real
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["the lost turn first", "the lost turn last"])
def test_a_lost_turn_that_ends_together_with_the_next_of_its_key(
    server: EmbeddedRedis, tmp_path: Path, order: tuple[int, int]
) -> None:
    def act(client: Any) -> None:
        broker = begun(client)
        broker.add("replicaset", ["shop/web"])
        broker.claim("w-1", "n1", [SPEC], ClaimLimits(lease_ms=1, drain_ms=1))
        while not broker.reclaim():
            pass
        claim(broker, "w-1", "n2")
        turns = [Finish("replicaset", "shop/web", nonce, Verdict.OK) for nonce in ("n1", "n2")]
        broker.finish([turns[number] for number in order])

    steps = recorded(server, tmp_path / "log", act)
    ends = [step for step in steps if isinstance(step, Unlocked | Refused)]
    assert sorted(bare(ends)) == sorted(
        bare(
            [
                Unlocked(0.0, 1, TASK, "reclaim", state="queued"),
                Unlocked(0.0, 1, TASK, "finish", nonce="n2", state="idle"),
                Refused(0.0, 1, TASK, "n1", "finish"),
            ]
        )
    )


@pytest.mark.real
def test_a_reclaim(server: EmbeddedRedis, tmp_path: Path) -> None:
    def act(client: Any) -> None:
        broker = begun(client)
        broker.add("replicaset", ["shop/web"])
        broker.claim("w-1", "n1", [SPEC], ClaimLimits(lease_ms=1, drain_ms=1))
        while not broker.reclaim():
            pass

    steps = bare(recorded(server, tmp_path / "log", act))
    assert steps[-1:] == bare([Unlocked(0.0, 1, TASK, "reclaim", state="queued")])


@pytest.mark.real
def test_a_key_that_is_given_back_to_a_full_queue(server: EmbeddedRedis, tmp_path: Path) -> None:
    """It waits in the backlog, which is as good a place as the stream."""

    def act(client: Any) -> None:
        broker = begun(client)
        broker.add("replicaset", ["shop/web"])
        claim(broker, "w-1", "n1")
        broker.add("replicaset", [f"flood/{number}" for number in range(FRONT)])
        broker.release("w-1")

    steps = bare(recorded(server, tmp_path / "trace", act))
    assert steps[-1:] == bare([Unlocked(0.0, 1, TASK, "release", holder="w-1", state="queued")])


@pytest.mark.real
def test_a_flush_and_another_epoch(server: EmbeddedRedis, tmp_path: Path) -> None:
    def act(client: Any) -> None:
        begun(client)
        client.flushall()
        begun(client, 2)

    steps = recorded(server, tmp_path / "log", act)
    kept = bare(step for step in steps if isinstance(step, Attached | EpochBegun | Opened | Lost))
    before = [Attached(0.0, 0, ""), EpochBegun(0.0, 1), Opened(0.0, 1)]
    assert kept == bare([*before, Lost(0.0, "FLUSHALL"), EpochBegun(0.0, 2), Opened(0.0, 2)])


@pytest.mark.real
def test_the_recorder_comes_back_with_the_server(server: EmbeddedRedis, tmp_path: Path) -> None:
    async def record() -> None:
        recorder = MonitorRecorder(lambda: server.url("admin"), tmp_path / "log")
        task = asyncio.create_task(recorder.run())
        await asyncio.wait_for(recorder.attached.wait(), 10)
        begun(connect(server.url("admin")))
        server.restart()
        while recorder.attached.is_set():
            await asyncio.sleep(0.01)
        await asyncio.wait_for(recorder.attached.wait(), 10)
        epoch.bootstrap(connect(server.url("admin")), 2)
        connect(server.url("admin")).echo(END)
        await asyncio.wait_for(recorder.seen_to_the_end.wait(), 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(record())
    with (tmp_path / "log").open(encoding="latin-1") as lines:
        steps = list(read_trace(lines))
    kept = [type(step).__name__ for step in steps if isinstance(step, Attached | EpochBegun | Opened | Lost)]
    assert kept == ["Attached", "EpochBegun", "Opened", "Lost", "Attached", "EpochBegun"]


@pytest.mark.real
def test_when_any_key_is_worked_on(server: EmbeddedRedis) -> None:
    client = connect(server.url("admin"))
    redis_view = RedisView(lambda: server.url("admin"), Random(1))
    broker = begun(client, resources=("nodes", "daemonsets", "pods"))
    broker.register("w-1", "s", [DAEMONS, NODE_QUEUE])
    assert not redis_view.at_work()
    broker.ingest("nodes", "5", "7", [Event("n1", "7", "un", b"x", ("mirror",), (f"{NODE_QUEUE}:n1",))])
    assert redis_view.at_work()
    broker.claim("w-1", "n1", [LoadSpec(NODE_QUEUE, "nodes")], ClaimLimits(lease_ms=3_000, drain_ms=7_000))
    assert redis_view.at_work()
    assert [lock.task for lock in redis_view.locks()] == [f"{NODE_QUEUE}:n1"]
    broker.finish([Finish(NODE_QUEUE, "n1", "n1", Verdict.OK)])
    assert not redis_view.at_work()
    server.kill()
    assert redis_view.at_work()
    redis_view.close()


def test_attached_in_an_epoch_is_told() -> None:
    steps = list(read_trace(["@attached 5.5 3 OPEN\n", "@lost 6.5 the connection was closed\n", "@attached 7.5 0\n"]))
    assert bare(steps) == bare([Attached(5.5, 3, "OPEN"), Lost(6.5, "the connection was closed"), Attached(7.5)])
    assert [step.at_s for step in steps] == [5.5, 6.5, 7.5]


def test_a_call_cut_off_by_the_servers_death_did_nothing() -> None:
    lines = [
        '+1.0 [0 127.0.0.1:1] "EVALSHA" "release" "2" "oarlock:{0}:epoch" "oarlock:1:{0}:" "w-1" ""\n',
        '+1.1 [0 lua] "HDEL" "oarlock:1:{0}:replicaset:locks" "shop/web"\n',
        "@lost 1.2 reset\n",
    ]
    assert bare(read_trace(lines)) == bare([Lost(1.2, "reset")])


def test_a_script_that_is_none_of_ours_is_a_gap() -> None:
    call = b'+1.0 [0 127.0.0.1:1] "EVALSHA" "%s" "2" "oarlock:{0}:epoch" "oarlock:1:{0}:" "x"' % (b"0" * 40)
    kept = Filter().keep(call)
    assert kept is not None
    steps = list(read_trace([kept.decode()]))
    assert bare(steps) == bare([Unknown(1.0, 1)])
    assert Fences(7.0).read([Attached(0.0, 1, "OPEN"), *steps]).gaps


def test_of_scripts_that_carry_objects_only_the_call_is_kept() -> None:
    sha = script_texts.sha("ingest", 1).encode()
    call = b'+1.0 [0 127.0.0.1:1] "EVALSHA" "%s" "2" "oarlock:{0}:epoch" "oarlock:1:{0}:" "pods" "5"' % sha
    kept = b'+1.0 [0 127.0.0.1:1] "EVALSHA" "ingest" "2" "oarlock:{0}:epoch" "oarlock:1:{0}:"'
    assert Filter().keep(call) == kept


@pytest.mark.real
def test_a_size_that_is_announced_and_answered(server: EmbeddedRedis, tmp_path: Path) -> None:
    """What is remembered of it after its answer is open no more."""
    size = Entry("scale", "replicasets/web-5d", "u5", "7", "low=1 high=3")

    def act(client: Any) -> None:
        broker = begun(client)
        broker.add("replicaset", ["shop/web"])
        broker.announce(claim(broker, "w-1", "n1"), "u", [size], lease_ms=3_000)
        changes = (Change.set("scale replicasets/web-5d", "answered uid=u5 low=1 high=3"),)
        broker.finish([Finish("replicaset", "shop/web", "n1", Verdict.OK, None, changes)])

    steps = bare(recorded(server, tmp_path / "log", act))
    name = "scale replicasets/web-5d"
    assert steps[steps.index(("Opened", 1)) + 1 :] == bare(
        [
            Claimed(0.0, 1, TASK, "w-1", "n1"),
            Recorded(0.0, 1, TASK, "n1", ((name, "u5"),)),
            Answered(0.0, 1, TASK, name),
            Unlocked(0.0, 1, TASK, "finish", nonce="n1"),
        ]
    )


def test_words_with_quotes_and_bytes() -> None:
    line = r'+1.0 [0 127.0.0.1:1] "HSET" "oarlock:1:{0}:replicaset:locks" "a\"\\b\x41" "holder=h nonce=n since_ms=1"'
    (step,) = read_trace([line])
    assert isinstance(step, Claimed)
    assert step == Claimed(1.0, 1, 'replicaset:a"\\bA', "h", "n")


@pytest.mark.real
def test_a_daemon_turn_with_hints_and_a_back_off_and_a_node_key(server: EmbeddedRedis, tmp_path: Path) -> None:
    daemons, node = f"{DAEMONS}:shop/agent", f"{NODE_QUEUE}:n1"

    def act(client: Any) -> None:
        broker = begun(client, resources=("daemonsets", "nodes", "pods"))
        broker.register("w-1", "s", [DAEMONS, NODE_QUEUE])
        broker.ingest("daemonsets", "5", "6", [Event("shop/agent", "6", "u", b"x", (), (daemons,))])
        broker.ingest("nodes", "5", "7", [Event("n1", "7", "un", b"x", ("mirror",), (node,))])
        for queue, resource, nonce in ((DAEMONS, "daemonsets", "n1"), (NODE_QUEUE, "nodes", "n2")):
            batch = broker.claim("w-1", nonce, [LoadSpec(queue, resource)], ClaimLimits(lease_ms=3_000, drain_ms=7_000))
            (held,) = batch.claims  # type: ignore[union-attr]
            if queue == DAEMONS:
                entries = [
                    Entry("create", "pods/agent-a", hint="node=n1"),
                    Entry("backoff", "n2", hint="generation=1 delay_ms=1000 at_ms=5"),
                    Entry("delete", "pods/agent-b", "u2", "7"),
                ]
                broker.announce(held, "u", entries, lease_ms=3_000)
                changes = (Change.drop("create pods/agent-a"), Change.drop("delete pods/agent-b"))
            broker.finish([Finish(queue, held.key, nonce, Verdict.OK, None, changes if queue == DAEMONS else ())])

    steps = bare(recorded(server, tmp_path / "log", act))
    expected = [
        Watermark(0.0, 1, "daemonsets", 5),
        Watermark(0.0, 1, "daemonsets", 6),
        Watermark(0.0, 1, "nodes", 5),
        Watermark(0.0, 1, "nodes", 7),
        Claimed(0.0, 1, daemons, "w-1", "n1"),
        Recorded(0.0, 1, daemons, "n1", (("create pods/agent-a", ""), ("delete pods/agent-b", "u2"))),
        Answered(0.0, 1, daemons, "create pods/agent-a"),
        Answered(0.0, 1, daemons, "delete pods/agent-b"),
        Unlocked(0.0, 1, daemons, "finish", nonce="n1"),
        Claimed(0.0, 1, node, "w-1", "n2"),
        Unlocked(0.0, 1, node, "finish", nonce="n2"),
    ]
    assert steps[steps.index(("Opened", 1)) + 1 :] == bare(expected)


def test_what_the_filter_keeps() -> None:
    keep = Filter().keep
    assert keep(b'+1.0 [0 lua] "HDEL" "oarlock:1:{0}:daemonset-node-updates:locks" "n1"')
    assert keep(b'+1.0 [0 lua] "HSET" "oarlock:1:{0}:replicaset:locks" "k" "v"')
    assert keep(b'+1.0 [0 lua] "HSET" "oarlock:1:{0}:watermark" "pods" "6"')
    assert keep(b'+1.0 [0 127.0.0.1:1] "flushall"')
    assert keep(b'+1.0 [0 127.0.0.1:1] "HDEL" "oarlock:1:{0}:replicaset:locks" "k"')
    assert keep(b'+1.0 [0 lua] "HSET" "oarlock:1:{0}:cache:pods:g" "k" "v"') is None
    assert keep(b'+1.0 [0 lua] "HLEN" "oarlock:1:{0}:replicaset:locks"') is None
    assert keep(b'+1.0 [0 lua] "HSET" "oarlock:1:{0}:watermark_at" "pods" "6"') is None
    assert keep(b'+1.0 [0 127.0.0.1:1] "HGETALL" "oarlock:1:{0}:replicaset:locks"') is None
    assert keep(b'+1.0 [0 127.0.0.1:1] "HSET" "rq:worker:w" "x" "oarlock:1:{0}:"') is None
