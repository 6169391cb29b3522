"""What one look at a fleet shows, as plain values. Ages and spans are in ms, by the clock of the fleet's Redis.

Every list is bounded (``reader.py`` says by how much), and what has a total says it beside the list, so a part is never
taken for the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from oarlock.broker.budget import BudgetView, LaneView
from oarlock.broker.looks.hearing import Hearing
from oarlock.broker.looks.history import Triggers
from oarlock.broker.pauses import Pause


@dataclass(frozen=True, slots=True)
class KeyLook:
    """A key that is queued, in work, delayed, held by a pause or parked by people. ``age_ms``: since the first event
    that queued it. ``why``: what did. ``paused``: what is paused over it, by whom and why, for ``paused_ms`` already;
    ``due_in_ms`` is then the end of the pause, if it has one.
    """

    shard: str
    queue: str
    key: str
    state: str
    age_ms: int | None = None
    due_in_ms: int | None = None
    why: Triggers | None = None
    paused: str = ""
    paused_ms: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerLook:
    """A worker, once for each key that it holds, or once without a key. ``state``: working, idle, or between (neither:
    it computes, starts, or has died). ``writes``: of the key, announced and without an answer; None: not counted.
    ``up_ms``: since it registered.
    """

    shard: str
    worker: str
    supervisor: str
    state: str
    queue: str = ""
    key: str = ""
    held_ms: int | None = None
    lease_ms: int | None = None
    writes: int | None = None
    why: Triggers | None = None
    up_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TroubleLook:
    """A key whose last turn failed, or that is parked because it crashes its workers. ``did``: what the last turn that
    it remembers came to, ``ended_ms`` ago.
    """

    shard: str
    queue: str
    key: str
    state: str
    failures: int = 0
    crashes: int = 0
    due_in_ms: int | None = None
    did: str = ""
    ended_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NamespaceLook:
    """How many keys that are not idle a namespace has; "" is that of nodes. ``queue``: the controller with most of
    them. ``keys``: counted, or where only a part was looked at, estimated from ``seen`` keys. ``because``: what queues
    them, as (kind of trigger, events of it over the keys that were seen), most events first.
    """

    namespace: str
    keys: int
    share: float
    seen: int
    queue: str
    because: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class QueueLook:
    """One queue in numbers; None: it could not be read."""

    shard: str
    queue: str
    queued: int | None
    in_work: int | None
    delayed: int | None
    parked: int | None
    failing: int | None
    oldest_ms: int | None
    held: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceLook:
    """The cache of a resource. ``age_ms``: since an ingestor confirmed it last."""

    shard: str
    resource: str
    objects: int | None
    age_ms: int


@dataclass(frozen=True, slots=True)
class ShardLook:
    """A shard's epoch and its Redis. ``began``: turns that began in this epoch; None where Redis (before 7) does not
    count. ``server``: what the server says of itself. ``unread``: what it would not tell. ``ingestors``: what each says
    it hears. ``pauses``: those that people asked for, and rates; ``now_ms``: Redis's clock, for their ages. ``budget``:
    the API budget, if it has one.
    """

    shard: str
    epoch: int
    phase: str
    intact: bool
    paused: str
    registered: int | None
    idle: int | None
    memory_bytes: int
    memory_max_bytes: int
    began: int | None
    server: Mapping[str, str]
    unread: tuple[str, ...] = ()
    ingestors: tuple[Hearing, ...] = ()
    pauses: tuple[Pause, ...] = ()
    now_ms: int = 0
    budget: BudgetView | None = None


@dataclass(frozen=True, slots=True)
class ApiCalls:
    """What one process has asked of the API server since it began; ``throttled``: answered with 429."""

    process: str
    calls: int
    throttled: int


@dataclass(frozen=True, slots=True)
class FleetLook:
    """One look at all shards. ``at_s``: when, by a clock of this process that never goes back. ``away``: shards that
    did not answer, and why. ``processes``: how many were asked for ``api``; 0: none is known.

    ``active``: keys that are queued, in work or parked; ``sampled`` of them were looked at for ``namespaces``. How many
    there are of each, of which the lists show some: ``total``.
    """

    at_s: float
    shards: tuple[ShardLook, ...] = ()
    away: tuple[tuple[str, str], ...] = ()
    queues: tuple[QueueLook, ...] = ()
    resources: tuple[ResourceLook, ...] = ()
    keys: tuple[KeyLook, ...] = ()
    workers: tuple[WorkerLook, ...] = ()
    trouble: tuple[TroubleLook, ...] = ()
    namespaces: tuple[NamespaceLook, ...] = ()
    active: int = 0
    sampled: int = 0
    processes: int = 0
    api: tuple[ApiCalls, ...] = ()

    def total(self, count: str) -> int:
        """The sum of a number of ``QueueLook`` over all queues, of those that could be read."""
        return sum(getattr(each, count) or 0 for each in self.queues)

    @property
    def view_age_ms(self) -> int | None:
        """The age of the cache: of its resource that was confirmed longest ago."""
        return max((each.age_ms for each in self.resources), default=None)


def plain(value: Any) -> Any:
    """A look, or a part of one, as JSON has it."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Triggers | Pause | LaneView):
        return value._asdict()
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return {name: plain(each) for name, each in value.items()} if isinstance(value, Mapping) else value
