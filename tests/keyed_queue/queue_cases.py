"""The steps of a queue to test, with a clock that is moved by hand: on a real server, or the twin."""

from __future__ import annotations

from typing import Any, Protocol

import redis

from oarlock.queue import keys
from oarlock.queue.memory_steps import MemorySteps
from oarlock.queue.redis_steps import RedisSteps
from oarlock.queue.steps import Steps

TEST_CLOCK = "return tonumber(redis.call('GET', 'oarlock:test-clock'))"
START_MS = 1_800_000_000_000
NAME = "invoices"
BASE = keys.base(NAME)

HASHES = ("state", "groups", "locks", "failures", "errors")
ZSETS = ("delayed", "leases", "parked", "consumers")
State = dict[str, Any]
"""What is kept, by the names of ``keys.TABLE``; streams as [(group, [key, ...]), ...] in the order of the ring."""


class Case(Protocol):
    name: str
    steps: Steps

    def jump(self, ms: int) -> None:
        """Move the clock."""

    def state(self) -> State: ...


class MemoryCase:
    """The twin."""

    name = "memory"

    def __init__(self) -> None:
        self._now_ms = START_MS
        self.steps: MemorySteps = MemorySteps(NAME, lambda: self._now_ms)

    def jump(self, ms: int) -> None:
        self._now_ms += ms

    def state(self) -> State:
        twin = self.steps
        locks = {
            key: f"token={lock.token} holder={lock.holder} since_ms={lock.since_ms}"
            f"{' anew=1' if lock.anew else ''} lease_ms={lock.lease_ms}"
            for key, lock in twin.locks.items()
        }
        return {
            "state": twin.state,
            "streams": [(group, [key for key, _ in stream]) for group, stream in twin.streams.items()],
            "groups": twin.groups,
            "delayed": twin.delayed,
            "locks": locks,
            "leases": twin.leases,
            "failures": twin.failures,
            "errors": twin.errors,
            "parked": twin.parked_at,
            "consumers": twin.consumers,
            "token": twin.token,
            "tick": twin.tick,
        }


class RedisCase:
    """A server, emptied first."""

    def __init__(self, name: str, client: redis.Redis) -> None:
        self.name, self.client = name, client
        client.flushall()
        self._now_ms = START_MS
        self.jump(0)
        self.steps: RedisSteps = RedisSteps(client, NAME, TEST_CLOCK)

    def jump(self, ms: int) -> None:
        self._now_ms += ms
        self.client.set("oarlock:test-clock", self._now_ms)

    def state(self) -> State:
        read: Any = self.client.pipeline(transaction=False)
        for name in HASHES:
            read.hgetall(BASE + name)
        for name in ZSETS:
            read.zrange(BASE + name, 0, -1, withscores=True)
        *found, token, tick, ring, names = (
            read.get(BASE + "token").get(BASE + "tick").lrange(BASE + "ring", 0, -1).keys(f"{BASE}stream:*").execute()
        )
        state: State = {
            name: {key.decode(): value.decode() for key, value in fields.items()}
            for name, fields in zip(HASHES, found, strict=False)
        }
        state["failures"] = {key: int(value) for key, value in state["failures"].items()}
        for name, times in zip(ZSETS, found[len(HASHES) :], strict=True):
            state[name] = {key.decode(): int(at) for key, at in times}
        assert sorted(names) == sorted(f"{BASE}stream:".encode() + group for group in ring), "each is in the ring once"
        state["streams"] = []
        for group in ring:
            entries: Any = self.client.xrange(f"{BASE}stream:{group.decode()}")
            state["streams"].append((group.decode(), [entry[b"key"].decode() for _, entry in entries]))
        return {**state, "token": int(token or 0), "tick": int(tick) if tick else None}
