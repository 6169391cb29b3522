"""Every script against its twin: the same steps under the same clock, the whole state compared after each of them.

Any seed can be run again: OARLOCK_TEST_SEED=n pytest tests/broker/test_scripts_equal_twin.py
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from oarlock.broker.budget import BudgetLimits, Report
from oarlock.broker.protocol import Broker
from oarlock.broker.values.claims import Batch, Claim, ClaimLimits, LoadSpec
from oarlock.broker.values.errors import ClaimLost, EpochOver
from oarlock.broker.values.events import Event
from oarlock.broker.values.objects import Delta, PageLimits
from oarlock.broker.values.turns import Change, Entry, Finish, Verdict
from oarlock.sandbox.redis.redis_binary import ServerBinary
from tests.broker import broker_state
from tests.broker.broker_cases import DRAIN_MS, LEASE_MS, MemoryCase, RedisCase
from tests.broker.broker_servers import REAL, Serve
from tests.broker.broker_state import State

QUEUES = ("replicaset", "daemonset")
KEYS = ("ns/a", "ns/b", "other/c", "d")
HOLDERS = ("w1", "w2", "w3")
RESOURCES = ("owners", "pods")
CHILDREN = (("pods", "owner", "counts"), ("pods", "orphan", "wanted"))
OF_DAEMONS = (*CHILDREN, ("owners", "orphan", "wanted"), ("pods", "node", "name"))
SPECS = {
    "replicaset": LoadSpec("replicaset", "owners", CHILDREN),
    "daemonset": LoadSpec("daemonset", "owners", OF_DAEMONS),
}
TARGETS = ("pods/a", "pods/b", "pods/x", "pods/y")
FIELDS = (
    "create pods/x",
    "create pods/a",
    "delete pods/y",
    "scale pods/x",
    "status owners/a",
    "reserved pods/x",
    "rest pods/y",
    "said",
    "blocked pods/b",
    "backoff n1",
    "owner",
)
BACK_OFFS = ("generation=1 delay_ms=1000 at_ms=1800000020000", "pending is not what it is")

QUEUED = ("stream", "backlog", "rounds")

queues, keys, holders, resources = (st.sampled_from(each) for each in (QUEUES, KEYS, HOLDERS, RESOURCES))
times = st.sampled_from((1, 5, 90, 1_000, 2_900, 3_100, 5_000, 14_000, 299_000, 301_000, 1_700_000))
delays = st.sampled_from((-1, 0, 1, 50, 1_000, 400_000))
offsets = st.integers(-3, 6)
events = st.lists(
    st.tuples(
        st.sampled_from(KEYS),
        offsets,
        st.sampled_from(("u1", "u2")),
        st.sampled_from((None, b"", b"x", b"y" * 300, b"line\nline\n")),
        st.lists(
            st.sampled_from(
                (
                    *("owner=u1", "owner=u2", "orphan=ns", "orphan=", "node=a", "node=d", "mirror"),
                    *("orphan=ns/a=1", "orphan=ns/b=2", "orphan=ns/~a-"),
                    *("?ns/a=1", "?ns/b=2", "?ns/a=1|ns/b=2", "?ns", "+ns/~a-", "+ns/b=2"),
                    *("=1", "=2"),
                )
            ),
            unique=True,
            max_size=5,
        ),
        st.lists(
            st.sampled_from(("replicaset:ns/a", "replicaset:ns/b", "daemonset:ns/a", "daemonset:d")),
            unique=True,
            max_size=3,
        ),
        st.sampled_from((b"", b"+r/ns", b"+r/ns", b"+u/ns\nof many\nwords \xff", b"-t\nx")),
    ),
    max_size=4,
)
triggers = st.sampled_from(
    (
        *("asked", "due", "list replicasets", "set replicasets/ns/a", "observed replicasets/ns/a"),
        *("status replicasets/ns/b", "added pods/ns/a", "added pods/ns/b", "del pods/other/f7", "lost w-1 5"),
    )
)
budget_reports = st.builds(
    Report,
    st.sampled_from((*HOLDERS, "nobody")),
    st.sampled_from((0, 0, 0, 1)),
    st.sampled_from((0, 0, 0, 1_500)),
    st.sampled_from((None, False, True)),
    st.integers(0, 9),
    st.integers(0, 9),
    st.dictionaries(st.sampled_from((*QUEUES, "events")), st.sampled_from((0, 1, 777, 40_000, 100_000)), max_size=3),
)
changes = st.lists(
    st.one_of(
        st.builds(Change.drop, st.sampled_from(FIELDS)),
        st.builds(
            Change.set,
            st.sampled_from(("reserved pods/x", "blocked pods/b", "passed pods/b", "said")),
            st.sampled_from(("until_ms=1800000020000", "over", "node=n1 until_ms=5", "why")),
        ),
        st.builds(Change.set, st.just("backoff n1"), st.sampled_from(BACK_OFFS)),
        st.builds(Change.set, st.just("scale pods/x"), st.just("answered uid=u1 low=0 high=10")),
        st.builds(Change.min_rv, resources, st.sampled_from(("9", "99", "101", "103", "110"))),
        st.just(Change.settled()),
        st.builds(Change.again, st.sampled_from((0, 40, 2_000))),
    ),
    max_size=3,
)
entries = st.lists(
    st.one_of(
        st.builds(
            Entry,
            st.sampled_from(("create", "status")),
            st.sampled_from(TARGETS),
            st.just(""),
            st.just(""),
            st.just(""),
        ),
        st.builds(lambda target: Entry("delete", target, "u1", "7"), st.sampled_from(TARGETS)),
        st.builds(
            lambda target, rv, high: Entry("scale", target, "u1", rv, f"low=0 high={high}"),
            st.sampled_from(TARGETS),
            st.sampled_from(("7", "8")),
            st.sampled_from((1, 10)),
        ),
        st.builds(lambda target: Entry("create", target, hint="node=n1 and more"), st.sampled_from(TARGETS)),
        st.builds(
            lambda node, text: Entry("backoff", node, hint=text),
            st.sampled_from(("n1", "n2")),
            st.sampled_from(BACK_OFFS),
        ),
    ),
    unique_by=lambda entry: entry.field,
    max_size=3,
)


def plain(value: Any) -> Any:
    """A result in a form in which order means nothing where Redis promises none."""
    match value:
        case Batch():
            return {
                "queue": value.queue,
                "watermarks": value.watermarks,
                "claims": [
                    one._replace(
                        children=sorted(one.children),
                        others={resource: sorted(found) for resource, found in one.others.items()},
                        expectations=None if one.expectations is None else repr_of(one),
                        unloaded=sorted(each._replace(ids=sorted(each.ids)) for each in one.unloaded),
                    )
                    for one in value.claims
                ],
                "local_caches": {
                    resource: (delta.version, delta.full, sorted(delta.changed), sorted(delta.gone))
                    for resource, delta in value.local_caches.items()
                },
            }
        case tuple() if value and isinstance(value[-1], list):
            return (*value[:-1], sorted(value[-1]))
    return value


def repr_of(one: Claim) -> Any:
    record = one.expectations
    assert record is not None
    return (
        record.owner_uid,
        sorted(record.creates.items()),
        sorted(record.deletes, key=lambda each: each.target),
        sorted(record.scales, key=lambda each: each.target),
        sorted(record.pending_others),
        sorted(record.reserved.items()),
        sorted(record.passed.items()),
        sorted(record.rests.items()),
        record.said,
        sorted(record.blocked.items()),
        sorted(record.hints.items()),
        sorted(record.back_offs.items()),
    )


@dataclass
class LocalCache:
    """What a worker keeps of a resource: id -> (uid, blob), at a version."""

    version: str = ""
    objects: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def follow(self, delta: Delta) -> None:
        if delta.full:
            self.objects.clear()
        for object_id in delta.gone:
            self.objects.pop(object_id, None)
        self.objects |= {object_id: (each.uid, each.blob) for object_id, each in delta.changed}
        self.version = delta.version


class Twins(RuleBasedStateMachine):
    """Two brokers that must not be told apart."""

    make: Callable[[], RedisCase]

    def __init__(self) -> None:
        super().__init__()
        self.redis, self.memory = self.make(), MemoryCase()
        self.claims: list[Claim] = []
        self.unloaded: list[Batch] = []
        self.nonces = 0
        self.generations = 0
        self.staged: dict[str, str] = {}
        self.local_caches: dict[tuple[int, str], LocalCache] = {}

    @initialize(raw=events)
    def begin(self, raw: list[tuple[Any, ...]]) -> None:
        """Lists committed, turns allowed, workers there; ``lose_everything`` begins with nothing."""
        for resource in RESOURCES:
            self.stage(resource, raw, False, 30_000)
            self.commit_list(resource, 2, False)
        self.republish()
        self.open()
        for holder in HOLDERS:
            self.register(holder)

    def both(self, step: Callable[[Broker], Any]) -> Any:
        """Run a step on both; the same result, or the same refusal."""
        answers = []
        for broker in (self.redis.worker, self.memory.worker):
            try:
                answers.append((step(broker), None))
            except (ClaimLost, EpochOver) as error:
                answers.append((None, type(error)))
        real, twin = answers
        assert plain(real[0]) == plain(twin[0])
        assert real[1] == twin[1]
        return twin[0]

    # -- time ------------------------------------------------------------------------------------------------------

    @rule(ms=times)
    def advance(self, ms: int) -> None:
        self.memory.advance(ms)
        self.redis.jump(ms)
        self.age()

    @precondition(lambda self: self.claims)
    @rule(ms=st.sampled_from((-3_600_000, -4_000, 3_600_000)))
    def clock_jumps(self, ms: int) -> None:
        self.advance(ms)

    def age(self) -> None:
        """Records run out on Redis's own clock, which no test can move: give them the time the twin says is left."""
        self.run_out(self.redis.state().get("records", {}), self.memory.state().get("record_ttl", {}))

    def run_out(self, records: State, left: State) -> None:
        if not records:
            return
        with self.redis.admin.pipeline(transaction=False) as pipe:
            for queue, keys_of in records.items():
                for key in keys_of:
                    name = self.redis.worker.keys.expect(queue, key)  # type: ignore[attr-defined]
                    remaining = left.get(queue, {}).get(key, 0)
                    if remaining > 0:
                        pipe.pexpire(name, remaining)
                    else:
                        pipe.unlink(name)
            pipe.execute()

    # -- the queue ---------------------------------------------------------------------------------------------------

    @rule(queue=queues, names=st.lists(keys, max_size=4), unpark=st.booleans(), why=triggers)
    def add(self, queue: str, names: list[str], unpark: bool, why: str = "asked") -> None:
        self.both(lambda broker: broker.add(queue, names, unpark=unpark, why=why))

    @rule(
        queue=queues,
        namespaces=st.lists(st.sampled_from(("ns", "other", "third")), min_size=1, max_size=3),
        why=triggers,
    )
    def flood(self, queue: str, namespaces: list[str], why: str) -> None:
        """More than the front takes. Some of its keys are there, in any lane."""
        for namespace in namespaces:
            names = [f"{namespace}/{name}" for name in ("a", "b", *(f"f{number}" for number in range(20)))]
            self.both(lambda broker, names=names: broker.add(queue, names, why=why))

    @rule(queue=queues, key=keys, delay_ms=delays)
    def add_after(self, queue: str, key: str, delay_ms: int) -> None:
        self.both(lambda broker: broker.add_after(queue, key, delay_ms))

    @rule(queue=queues, key=keys, drained=st.booleans())
    def add_rate_limited(self, queue: str, key: str, drained: bool) -> None:
        """With a bucket that is nearly empty too."""
        if drained:
            bucket = (1.5, self.memory.now_ms() - 40)
            self.memory.store.state.queue(queue).bucket = bucket
            name = self.redis.worker.keys.base + queue + ":bucket"  # type: ignore[attr-defined]
            self.redis.admin.hset(name, mapping={"tokens": f"{bucket[0]:.2f}", "at_ms": bucket[1]})
        for _ in range(3):
            self.both(lambda broker: broker.add_rate_limited(queue, key))

    @precondition(lambda self: any(q.failures for q in self.memory.store.state.queues.values()))
    @rule(queue=queues, key=keys)
    def forget(self, queue: str, key: str) -> None:
        self.both(lambda broker: broker.forget(queue, key))
        self.both(lambda broker: broker.num_requeues(queue, key))

    @rule(
        act=st.sampled_from(("pause", "resume", "restore", "kept", "note")),
        scope=st.sampled_from(("all", "queue replicaset", "namespace ns", "namespace ", "key daemonset:ns/a")),
        for_ms=st.sampled_from((None, None, 0, 90, 5_000)),
    )
    def steer(self, act: str, scope: str, for_ms: int | None) -> None:
        self.both(lambda broker: broker.steer(act, scope, "by=me", for_ms=for_ms))

    @rule(act=st.sampled_from(("drain", "drain", "undrain")), name=st.sampled_from((*HOLDERS, "s", "nobody")))
    def drain(self, act: str, name: str) -> None:
        self.both(lambda broker: broker.drain(act, name, "by=me"))

    @rule(limit=st.integers(1, 3))
    def acts(self, limit: int) -> None:
        self.both(lambda broker: broker.acts(limit))

    @rule(rate=st.sampled_from(("0.3", "2.5", "1000", "x", "0")), act=st.sampled_from(("limit", "limit", "resume")))
    def set_rate(self, rate: str, act: str) -> None:
        self.both(lambda broker: broker.steer(act, "rate replicaset", f"by=me rate={rate} why"))

    @rule(
        scope=st.sampled_from(("rate namespace ns", "rate namespace ns", "rate namespace other", "rate namespace ")),
        rate=st.sampled_from(("0.3", "2.5", "7", "1000", "x")),
        act=st.sampled_from(("limit", "limit", "limit", "restore", "pause", "resume")),
        for_ms=st.sampled_from((None, None, None, 90)),
    )
    def set_limit(self, scope: str, rate: str, act: str, for_ms: int | None) -> None:
        self.both(lambda broker: broker.steer(act, scope, f"by=me rate={rate}", for_ms=for_ms))

    @rule(
        scope=st.sampled_from(("namespace ns", "namespace other", "namespace ", "queue daemonset", "queue other")),
        weight=st.sampled_from(("0.1", "0.7", "3", "7.5", "100", "1e3", "0", "999")),
        act=st.sampled_from(("set", "set", "set", "resume")),
    )
    def set_weight(self, scope: str, weight: str, act: str) -> None:
        self.both(lambda broker: broker.steer(act, f"weight {scope}", f"by=me weight={weight} why"))

    @rule(ingestor=st.sampled_from(("i1", "i2")), text=st.sampled_from(("pods=5", "deaf=pods pods=80000", "")))
    def report(self, ingestor: str, text: str) -> None:
        self.both(lambda broker: broker.report(ingestor, text))

    @rule(
        reports=st.lists(budget_reports, max_size=4, unique_by=lambda each: each.holder),
        flights=st.sampled_from((0, 2, 7)),
    )
    def lend(self, reports: list[Report], flights: int) -> None:
        limits = BudgetLimits(100_000, 10_000, flights)
        self.both(lambda broker: broker.budget(limits, reports, lease_ms=LEASE_MS))

    @rule(holder=holders, served=st.sampled_from((QUEUES, QUEUES[::-1], QUEUES[:1], QUEUES[1:])))
    def register(self, holder: str, served: Sequence[str] = QUEUES) -> None:
        self.both(lambda broker: broker.register(holder, "s", served))

    @rule(
        holder=holders,
        order=st.permutations(QUEUES),
        keys_max=st.integers(1, 4),
        bytes_max=st.sampled_from((1, 700, 262_144)),
        reader=st.one_of(st.integers(0, 1), st.sampled_from(("", "-", "g1:", "g1:1", "g2:999", "g1:0x1", ":"))),
        rate_per_s=st.sampled_from((0.0, 0.0, 0.3, 1.0, 2.5)),
        beside=st.sampled_from((None, None, (), ("ns",), ("",), ("far", "ns"))),
        load_min=st.sampled_from((0, 1, 2, 5)),
    )
    def claim(
        self,
        holder: str,
        order: list[str],
        keys_max: int,
        bytes_max: int,
        reader: int | str = 0,
        rate_per_s: float = 0.0,
        beside: tuple[str, ...] | None = None,
        load_min: int = 1,
    ) -> None:
        """``reader``: one of two that keep local_caches, or the version that a stranger names."""
        self.nonces += 1
        known = {
            resource: self.local_caches.setdefault((reader, resource), LocalCache()).version
            if isinstance(reader, int)
            else reader
            for resource in RESOURCES
        }
        given = tuple(known.items())
        specs = [SPECS[queue]._replace(local_caches=given, rate_per_s=rate_per_s) for queue in order]
        batch = self.both(
            lambda broker: broker.claim(
                holder,
                f"n{self.nonces}",
                specs,
                ClaimLimits(LEASE_MS, DRAIN_MS, keys_max, bytes_max, beside, load_min),
            )
        )
        if isinstance(batch, Batch):
            self.unloaded = [*self.unloaded, batch][-4:] if batch.unloaded else self.unloaded
            self.claims = (self.claims + batch.claims)[-8:]
            for resource, delta in batch.local_caches.items() if isinstance(reader, int) else ():
                mirror = self.local_caches[reader, resource]
                mirror.follow(delta)
                assert mirror.objects == self.mirrored(resource)

    @precondition(lambda self: self.unloaded)
    @rule(which=st.integers(0, 3))
    def load(self, which: int) -> None:
        """What a claim left to be loaded, whatever has come in between."""
        batch = self.unloaded[which % len(self.unloaded)]
        assert not self.both(lambda broker: broker.load(batch)).unloaded

    def mirrored(self, resource: str) -> dict[str, tuple[str, bytes]]:
        """What a mirror has to hold."""
        state = self.memory.store.state
        objects = state.objects.get((resource, state.generation.get(resource, "0")), {})
        return {each: (one.uid, one.cached.blob) for each, one in objects.items() if "mirror" in one.entries.split()}

    @precondition(lambda self: self.claims)
    @rule(which=st.integers(0, 7), uid=st.sampled_from(("u1", "u2")), announced=entries)
    def record(self, which: int, uid: str, announced: list[Entry]) -> None:
        one = self.claims[which % len(self.claims)]
        self.both(lambda broker: broker.announce(one, uid, announced, lease_ms=LEASE_MS))

    @precondition(lambda self: self.claims)
    @rule(
        turns=st.lists(
            st.tuples(st.integers(0, 7), st.sampled_from(Verdict), st.one_of(st.none(), delays), changes),
            min_size=1,
            max_size=3,
        )
    )
    def finish(self, turns: list[tuple[int, Verdict, int | None, list[Change]]]) -> None:
        finishes = []
        for which, verdict, delay_ms, changed in turns:
            one = self.claims[which % len(self.claims)]
            finishes.append(Finish(one.queue, one.key, one.nonce, verdict, delay_ms, tuple(changed)))
        self.both(lambda broker: broker.finish(finishes))

    def live(self) -> list[Claim]:
        """Claims whose lock still stands."""
        queues = self.memory.store.state.queues
        return [
            one
            for one in self.claims
            if one.queue in queues and (lock := queues[one.queue].locks.get(one.key)) and lock.nonce == one.nonce
        ]

    @rule(holder=holders, queue=queues, names=st.lists(keys, min_size=1, max_size=3), announced=entries)
    def begin_turns(self, holder: str, queue: str, names: list[str], announced: list[Entry]) -> None:
        """What a worker does, in one breath: the deeper states need it often."""
        self.register(holder)
        self.add(queue, names, True)
        self.claim(holder, [queue], 3, 262_144)
        for one in self.live():
            self.both(lambda broker, one=one: broker.announce(one, "u1", announced, lease_ms=LEASE_MS))

    @precondition(lambda self: self.live())
    @rule(which=st.integers(0, 7), verdict=st.sampled_from(Verdict), delay_ms=st.one_of(st.none(), delays), raw=changes)
    def end_turn(self, which: int, verdict: Verdict, delay_ms: int | None, raw: list[Change]) -> None:
        one = self.live()[which % len(self.live())]
        turn = Finish(one.queue, one.key, one.nonce, verdict, delay_ms, tuple(raw))
        self.both(lambda broker: broker.finish([turn]))

    @rule(holder=holders, blamed=st.one_of(st.none(), st.tuples(queues, keys)))
    def release(self, holder: str, blamed: tuple[str, str] | None) -> None:
        self.both(lambda broker: broker.release(holder, blamed=":".join(blamed) if blamed else ""))

    @precondition(lambda self: self.claims)
    @rule(which=st.integers(0, 7))
    def release_blamed(self, which: int) -> None:
        one = self.claims[which % len(self.claims)]
        lock = self.memory.store.state.queue(one.queue).locks.get(one.key)
        if lock is not None:
            self.release(lock.holder, (one.queue, one.key))
            self.register(lock.holder)

    @rule(limit=st.sampled_from((1, 200)))
    def reclaim(self, limit: int) -> None:
        self.both(lambda broker: broker.reclaim(limit))

    @rule(names=st.lists(holders, unique=True))
    def renew(self, names: list[str]) -> None:
        self.both(lambda broker: broker.renew(names, lease_ms=LEASE_MS))

    @rule(limit=st.sampled_from((1, 500)))
    def due(self, limit: int) -> None:
        if any(queue.held for queue in self.memory.store.state.queues.values()):
            limit = 100  # how few of a set come at once is Redis's own choice: all of them then
        self.both(lambda broker: broker.due(limit))

    @rule(queues=st.permutations(QUEUES))
    def wait(self, queues: list[str]) -> None:
        if self.memory.state().get("wake"):
            self.both(lambda broker: broker.wait(queues, 1.0))

    @rule()
    def wait_timer(self) -> None:
        if self.memory.state()["timer"]:
            self.both(lambda broker: broker.wait_timer(1.0))

    # -- the cache ---------------------------------------------------------------------------------------------------

    def event(self, resource: str, raw: tuple[Any, ...], *, listed: bool = False) -> Event:
        object_id, offset, uid, blob, index, wakes, kind = raw
        if listed and blob is None:
            blob = b"listed"
        rv = str(self.mark(resource) + offset)
        signature = "" if blob is None or int(rv) % 3 == 0 else f"signature-{rv}"
        apart = None if len(index) < 2 else (f"d{len(index)}", b"part" * len(index))
        change = ("set", "added", "observed")[int(rv) % 3]
        return Event(object_id, rv, uid, blob, tuple(index), tuple(wakes), signature, apart, kind, change)

    def mark(self, resource: str) -> int:
        return int(self.memory.store.state.watermark.get(resource, "98"))

    @rule(resource=resources, start=offsets, length=st.integers(0, 6), raw=events, told=st.booleans())
    def ingest(self, resource: str, start: int, length: int, raw: list[tuple[Any, ...]], told: bool) -> None:
        first = self.mark(resource) + min(start, 1)
        batch = [self.event(resource, each) for each in raw]
        self.both(lambda broker: broker.ingest(resource, str(first), str(first + length), batch, told=told))

    @rule(resource=resources, start=offsets, length=st.integers(0, 6))
    def pass_to(self, resource: str, start: int, length: int) -> None:
        first = self.mark(resource) + min(start, 1)
        self.both(lambda broker: broker.pass_to(resource, str(first), str(first + length)))

    @rule(resource=resources, offset=offsets, read=st.booleans())
    def compare(self, resource: str, offset: int, read: bool) -> None:
        state = self.memory.store.state
        generation = state.generation.get(resource, "0") if read else "other"
        known = state.objects.get((resource, generation), {})
        versions = [
            (each, str(int(known[each].rv) + min(offset, 1)) if each in known else "7") for each in (*known, "x/y")
        ]
        self.both(lambda broker: broker.compare(resource, generation, versions))

    @rule(resource=resources, raw=events, mine=st.booleans(), lock_ms=st.sampled_from((1_000, 30_000)))
    def stage(self, resource: str, raw: list[tuple[Any, ...]], mine: bool, lock_ms: int) -> None:
        """Each id once a list, as a list is."""
        if not mine or resource not in self.staged:
            self.generations += 1
            generation = f"g{self.generations}"
        else:
            generation = self.staged[resource]
        known = self.memory.store.state.objects.get((resource, generation), {})
        listed = {each[0]: self.event(resource, each, listed=True) for each in raw if each[0] not in known}
        if self.both(lambda broker: broker.stage(resource, generation, list(listed.values()), lock_ms=lock_ms)):
            self.staged[resource] = generation

    @precondition(lambda self: self.staged)
    @rule(resource=resources, offset=offsets, other=st.booleans())
    def commit_list(self, resource: str, offset: int, other: bool) -> None:
        generation = "nobody's" if other else self.staged.get(resource, "none")
        rv = str(self.mark(resource) + offset)
        self.both(lambda broker: broker.commit_list(resource, generation, rv))

    @rule()
    def republish(self) -> None:
        """To the end: what a step takes is Redis's own choice. So is the order, which the twin takes over."""
        for broker in (self.redis.worker, self.memory.worker):
            while broker.republish(2):
                pass
        state = self.redis.state()
        of_redis, of_twin = ({name: s.get(name, {}) for name in QUEUED} for s in (state, self.memory.state()))
        for queue, q in self.memory.store.state.queues.items():
            theirs, ours = ([*s["stream"].get(queue, []), *s["backlog"].get(queue, {})] for s in (of_redis, of_twin))
            assert sorted(ours) == sorted(theirs)
            q.stream = list(of_redis["stream"].get(queue, []))
            q.backlog, q.rounds = (dict(of_redis[name].get(queue, {})) for name in ("backlog", "rounds"))

    @rule()
    def open(self) -> None:
        self.both(lambda broker: broker.open(RESOURCES))

    @rule(reason=st.sampled_from(("why", "another reason", "")))
    def hold(self, reason: str) -> None:
        self.both(lambda broker: broker.pause(reason))

    @rule(resource=resources, ids=st.lists(keys, max_size=3), entry=st.sampled_from(("owner=u1", "orphan=ns")))
    def look(self, resource: str, ids: list[str], entry: str) -> None:
        self.both(lambda broker: broker.look(resource, ids=ids))
        self.both(lambda broker: broker.look(resource, index=[entry]))
        self.both(lambda broker: [broker.look_apart(resource, name) for name in ("d2", "d3", "d4")])
        self.both(lambda broker: broker.watermark(resource))

    @rule(
        resource=resources,
        under=st.lists(st.sampled_from(("owner=u1", "owner=u2", "orphan=ns")), max_size=3),
        limits=st.builds(PageLimits, st.sampled_from((1, 2, 500)), st.sampled_from((1, 300, 262_144))),
    )
    def pages(self, resource: str, under: list[str], limits: PageLimits) -> None:
        """To the end, from page to page; how they are cut is Redis's own choice."""

        def walk(broker: Broker) -> Any:
            found: set[Any] = set()
            page = broker.page(resource, under, limits=limits)
            while page is not None:
                found.update(page.objects)
                if page.mark is None:
                    return page.watermark, sorted(found)
                page = broker.page(resource, under, page.mark, limits)
            return None

        self.both(walk)

    # -- epochs ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.claims) > 5)
    @rule(flushed=st.booleans())
    def lose_everything(self, flushed: bool) -> None:
        """The handles of the old epoch are refused in every step, and read nothing of the new one."""
        old = self.redis.worker, self.memory.worker
        if flushed:
            self.redis.admin.flushall()
            self.memory.store.flush()
        self.redis.epoch = self.memory.epoch = self.redis.epoch % 3 + 1  # scripts of three epochs are loaded at most
        self.redis.bootstrap()
        self.memory.bootstrap()
        for broker in old:
            for step, arguments in (("add", ("q", ["a"])), ("reclaim", ()), ("finish", ([],)), ("look", ("pods",))):
                with pytest.raises(EpochOver):
                    getattr(broker, step)(*arguments)
        self.redis.admin.flushall()
        self.redis.bootstrap()
        self.memory.epoch = self.redis.epoch - 1
        self.memory.bootstrap()
        self.claims, self.unloaded, self.staged, self.local_caches = [], [], {}, {}

    # -- what must hold ----------------------------------------------------------------------------------------------

    @invariant()
    def same(self) -> None:
        real, twin = self.redis.state(), self.memory.state()
        real_ttl, twin_ttl = real.pop("record_ttl", {}), twin.pop("record_ttl", {})
        assert real == twin
        assert broker_state.problems(real) == []
        for queue, ttls in twin_ttl.items():
            for key, ttl in ttls.items():
                assert abs(real_ttl[queue][key] - ttl) < 5_000, (queue, key, real_ttl[queue][key], ttl)
        self.run_out(real.get("records", {}), twin_ttl)  # so that the time a step really took never adds up


@pytest.mark.real
@pytest.mark.parametrize("binary", REAL)
def test_scripts_equal_their_twin(binary: ServerBinary, serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    """One stream entry a queued key, one lock and lease a running one, nothing unanswered forgotten, at every step."""
    number = int(os.environ.get("OARLOCK_TEST_SEED") or secrets.randbits(32))
    clients = serve(binary)[1]

    class Bound(Twins):
        make = staticmethod(lambda: RedisCase("real", clients))

    with capsys.disabled():
        print(f" seed {number} ", end="", flush=True)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        seed(number)(Bound),
        settings=settings(
            max_examples=int(os.environ.get("OARLOCK_TEST_EXAMPLES") or 70),
            stateful_step_count=50,
            deadline=None,
            database=None,
            print_blob=True,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
