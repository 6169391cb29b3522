"""A broker to test, with a clock that is moved by hand: on a real server, on fakeredis, or the twin."""

from __future__ import annotations

from typing import Any, Protocol

import redis

from oarlock.broker import epoch, keys
from oarlock.broker.connection.client import RunGuard, connect
from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.memory.threads import SharedBroker, SharedStore
from oarlock.broker.protocol import Broker
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps import script_texts
from oarlock.broker.values.claims import Batch, Claim, ClaimLimits, Idle, LoadSpec
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.broker import broker_state
from tests.broker.broker_state import State

TEST_CLOCK = "return tonumber(redis.call('GET', 'oarlock:test-clock'))"
START_MS = 1_800_000_000_000
LEASE_MS, DRAIN_MS = 5_000, 14_000
QUEUE = "replicaset"
SPECS = (LoadSpec(QUEUE, "replicasets", (("pods", "owner", "uid"), ("pods", "orphan", "wanted"))),)


class Case(Protocol):
    """What a test gets. ``worker`` and ``ingestor`` are the same epoch with the rights of each."""

    name: str
    worker: Broker
    ingestor: Broker
    epoch: int

    def now_ms(self) -> int: ...
    def jump(self, ms: int) -> None:
        """Move the clock that scripts read, and nothing else."""

    def advance(self, ms: int) -> None:
        """Let time pass: the clock moves and what lives for a while ages."""

    def state(self) -> State: ...
    def bootstrap(self) -> None:
        """Begin the next epoch; ``worker`` and ``ingestor`` are of it."""


class MemoryCase:
    """The twin."""

    name = "memory"

    def __init__(self) -> None:
        self._now_ms, self.epoch = START_MS, 0
        self.store = MemoryStore(self.now_ms)
        self.bootstrap()

    def now_ms(self) -> int:
        return self._now_ms

    def jump(self, ms: int) -> None:
        self._now_ms += ms

    advance = jump

    def state(self) -> State:
        return broker_state.of_memory(self.store)

    def bootstrap(self) -> None:
        self.epoch += 1
        self.store.bootstrap(self.epoch)
        self.worker: Broker = MemoryBroker(self.store, self.epoch)
        self.ingestor: Broker = self.worker


class ThreadsCase(MemoryCase):
    """The twin as the threads of one process use it."""

    name = "threads"
    store: SharedStore

    def __init__(self) -> None:
        self._now_ms, self.epoch = START_MS, 0
        self.store = SharedStore(self.now_ms)
        self.bootstrap()

    def bootstrap(self) -> None:
        super().bootstrap()
        self.worker = self.ingestor = SharedBroker(self.store, self.epoch)


class RedisCase:
    """A server, emptied first. ``clients``: by user of ``broker.connection.acl``."""

    def __init__(self, name: str, clients: dict[str, redis.Redis], *, fake: bool = False) -> None:
        self.name, self.clients, self._fake = name, clients, fake
        self.admin = clients["admin"]
        self.admin.flushall()
        self._now_ms, self.epoch = START_MS, 0
        self.bootstrap()

    def now_ms(self) -> int:
        return self._now_ms

    def jump(self, ms: int) -> None:
        self._now_ms += ms
        self.admin.set("oarlock:test-clock", self._now_ms)

    def advance(self, ms: int) -> None:
        self.jump(ms)
        for name in self.admin.scan_iter(f"{keys.base(self.epoch)}*:expect:*"):
            left: Any = self.admin.pttl(name)
            if left <= ms:
                self.admin.unlink(name)
            else:
                self.admin.pexpire(name, left - ms)

    def state(self) -> State:
        return broker_state.of_redis(self.admin, self.epoch)

    def bootstrap(self) -> None:
        self.epoch += 1
        self.jump(0)
        shas = [script_texts.sha(name, self.epoch, TEST_CLOCK) for name in script_texts.NAMES]
        if not self._fake and not all(self.admin.script_exists(*shas)):
            epoch.bootstrap(self.clients["ingestor"], self.epoch, clock=TEST_CLOCK)
        else:  # scripts outlive FLUSHALL, and loading them takes long; fakeredis has no INFO to bootstrap with
            base = keys.base(self.epoch)
            self.admin.mset({keys.epoch(): self.epoch, base + "phase": "DRAIN", base + "run": "of a test"})
            for name in script_texts.NAMES if self._fake else ():
                self.admin.script_load(script_texts.stamped(name, self.epoch, TEST_CLOCK))
        self.worker: Broker = self._broker("worker")
        self.ingestor: Broker = self._broker("ingestor")

    def _broker(self, user: str) -> RedisBroker:
        client = self.clients[user]
        return RedisBroker(client, self.epoch, blocking=client, clock=TEST_CLOCK)


def clients_of(server: EmbeddedRedis, guard: RunGuard | None = None) -> dict[str, redis.Redis]:
    """A client for each user."""
    return {user: connect(server.url(user), guard=guard) for user in ("worker", "ingestor", "metrics", "admin")}


class _KeepsCompiled:
    """fakeredis's Lua, but a script is compiled once, and Lua collects garbage when it likes. fakeredis does both at
    every call, which took a third of its time.
    """

    def __init__(self, runtime: Any) -> None:
        self._runtime, self._compiled = runtime, dict[bytes, Any]()

    def execute(self, script: Any) -> Any:
        if script == "collectgarbage()":
            return None
        if script not in self._compiled:
            self._compiled[script] = self._runtime.compile(script)
        return self._compiled[script]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


def fake_case() -> RedisCase:
    """fakeredis: protocol 2, for with 3 it hands scripts replies that no real server gives them."""
    import fakeredis

    server: Any = fakeredis.FakeServer(version=(7,))
    client = fakeredis.FakeRedis(server=server, protocol=2)
    client.eval("return 1", 0)  # makes its Lua
    server._lua_runtime = _KeepsCompiled(server._lua_runtime)
    return RedisCase("fakeredis", {"worker": client, "ingestor": client, "admin": client}, fake=True)


# -- words for tests -------------------------------------------------------------------------------------------------


def opened(case: Case, *owners: str, holders: tuple[str, ...] = ("w1",), rv: str = "100") -> Case:
    """Lists committed, phase OPEN, holders registered, nothing queued. ``owners``: keys whose owners are cached."""
    listed = [
        Event(key, "10", f"uid-{key}", b"owner of " + key.encode(), (f"?{key.rpartition('/')[0]}",)) for key in owners
    ]
    for resource, events in (("replicasets", listed), ("pods", [])):
        assert case.ingestor.stage(resource, f"first-{resource}", events)
        assert case.ingestor.commit_list(resource, f"first-{resource}", rv).verdict == "OK"
    while case.ingestor.republish():
        pass
    assert case.ingestor.open(["replicasets", "pods"]) == ""
    for holder in holders:
        case.worker.register(holder, "supervisor", [QUEUE])
    return case


_NONCES = iter(range(1, 1 << 60))


def claim(case: Case, holder: str = "w1", **limits: Any) -> list[Claim]:
    """The claims of a call that is to bring some, or [] for EMPTY."""
    batch = claim_reply(case, holder, **limits)
    return batch.claims if isinstance(batch, Batch) else []


def claim_reply(case: Case, holder: str = "w1", **limits: Any) -> Batch | Idle:
    specs = limits.pop("specs", SPECS)
    given = ClaimLimits(**{"lease_ms": LEASE_MS, "drain_ms": DRAIN_MS} | limits)
    return case.worker.claim(holder, f"n{next(_NONCES)}", specs, given)


def claim_one(case: Case, holder: str = "w1", **limits: Any) -> Claim:
    (one,) = claim(case, holder, keys_max=1, **limits)
    return one


def finish(case: Case, one: Claim, verdict: Verdict = Verdict.OK, delay_ms: int | None = None, *changes: Any) -> int:
    (answer,) = case.worker.finish([Finish(one.queue, one.key, one.nonce, verdict, delay_ms, tuple(changes))])
    return answer


def state_of(case: Case, key: str, queue: str = QUEUE) -> str:
    """idle, queued, running, running+ or parked; the whole state is sound."""
    state = case.state()
    assert broker_state.problems(state) == []
    return str(state.get("state", {}).get(queue, {}).get(key, "idle"))


def crash(case: Case, key: str, nth: int) -> None:
    """A worker dies over the key."""
    holder = f"victim-{key}-{nth}"
    case.worker.register(holder, "s", [QUEUE])
    assert claim_one(case, holder).key == key
    assert case.worker.release(holder, blamed=f"{QUEUE}:{key}") == [f"{QUEUE}:{key}"]


def park(case: Case, key: str) -> None:
    case.worker.add(QUEUE, [key])
    crash(case, key, 1)
    crash(case, key, 2)
