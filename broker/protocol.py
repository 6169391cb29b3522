"""What a broker does, whichever it is: ``RedisBroker``, or ``MemoryBroker``, its twin in memory.

Every method is one atomic step. Any may raise EpochOver or BrokerUnreachable; those that grow what is stored may raise
BrokerFull. The meaning of each is written at ``RedisBroker``; one suite of tests runs over both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from oarlock.broker.values import (
    Batch,
    Borne,
    Cached,
    Claim,
    Entry,
    Event,
    Finish,
    Idle,
    Ingested,
    LoadSpec,
    Page,
    PageMark,
)


class Broker(Protocol):
    """One epoch of one shard."""

    epoch: int

    def add(self, queue: str, key_names: Iterable[str], *, unpark: bool = False) -> int: ...
    def add_after(self, queue: str, key: str, delay_ms: int) -> None: ...
    def add_rate_limited(self, queue: str, key: str) -> int: ...
    def forget(self, queue: str, key: str) -> None: ...
    def num_requeues(self, queue: str, key: str) -> int: ...
    def register(self, holder: str, supervisor: str, queues: Sequence[str]) -> None: ...

    def claim(
        self,
        holder: str,
        nonce: str,
        specs: Sequence[LoadSpec],
        *,
        lease_ms: int,
        hold_ms: int,
        keys_max: int = 8,
        bytes_max: int = 262_144,
    ) -> Batch | Idle: ...

    def record(self, claim: Claim, owner_uid: str, entries: Sequence[Entry], *, lease_ms: int) -> list[Borne]: ...
    def finish(self, turns: Sequence[Finish]) -> list[int]: ...
    def release(self, holder: str, *, blamed: str = "") -> list[str]: ...
    def reclaim(self, limit: int = 200) -> list[str]: ...
    def renew(self, holders: Sequence[str], *, lease_ms: int) -> list[str]: ...
    def due(self, limit: int = 500) -> tuple[int, int | None]: ...
    def wait(self, list_name: str = "wake", timeout_s: float = 1.0) -> bool: ...

    def ingest(self, resource: str, from_rv: str, to_rv: str, events: Sequence[Event]) -> Ingested: ...
    def stage(self, resource: str, generation: str, events: Sequence[Event], *, lock_ms: int = 30_000) -> bool: ...
    def commit_list(self, resource: str, generation: str, rv: str) -> Ingested: ...
    def republish(self, chunk: int = 500) -> int: ...
    def open(self, resources: Sequence[str]) -> str: ...
    def hold(self, reason: str) -> str: ...
    def look(
        self, resource: str, *, ids: Sequence[str] = (), index: Sequence[str] = ()
    ) -> tuple[str, list[Cached]]: ...
    def page(
        self,
        resource: str,
        entries: Sequence[str],
        mark: PageMark | None = None,
        *,
        count_max: int = 500,
        bytes_max: int = 262_144,
    ) -> Page | None: ...
    def watermark(self, resource: str) -> str | None: ...
