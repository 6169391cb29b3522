"""Reads one shard with a bounded number of plain commands, each with a bounded answer, however many keys there are.

After the figures that /metrics has too come three round trips: lists cut to the limits below, what is kept of the keys
in them, and the writes of the keys in work. A value of a wrong type leaves out its own part alone, and is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import redis
from redis.exceptions import RedisError

from oarlock.broker import keys
from oarlock.broker.connection import server_facts
from oarlock.broker.looks.hearing import Hearing
from oarlock.broker.looks.inspect import raw_answers
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cli.watch import rows
from oarlock.cli.watch.fleet_look import KeyLook, QueueLook, ResourceLook, ShardLook, TroubleLook, WorkerLook
from oarlock.cli.watch.namespaces import Sample
from oarlock.workers.metrics.fleet_reader import FleetFigures, FleetReader

KEYS_MAX = 500
"""Queued keys of a queue: the first ones."""
DELAYED_MAX = 100
"""Delayed keys of a queue: the next ones."""
TROUBLE_MAX = 100
"""Parked keys of a queue: the next ones; and failing ones: of more than that, picked at random."""
HELD_MAX = 50
"""Keys of a queue that a pause holds: of more than that, picked at random."""
SAMPLED_MAX = 500
"""Keys of a queue whose namespaces are counted: of more than that, picked at random."""
LOCKS_MAX = 1_000
"""Locks: those that end first."""
WORKERS_MAX = 1_000
WRITES_MAX = 5_000
"""Entries of expectations that are read to count the writes of keys in work."""
SERVER_FACTS = (
    "run_id",
    "redis_version",
    "role",
    "uptime_in_seconds",
    "used_memory",
    "used_memory_peak",
    "maxmemory",
    "maxmemory_policy",
    "mem_fragmentation_ratio",
    "evicted_keys",
    "connected_clients",
    "blocked_clients",
    "instantaneous_ops_per_sec",
    "instantaneous_input_kbps",
    "instantaneous_output_kbps",
    "connected_slaves",
)
"""What is shown of INFO, which also has paths and process numbers of the server's host."""


@dataclass(slots=True)
class ShardRows:
    """What was read of a shard."""

    shard: ShardLook
    queues: list[QueueLook] = field(default_factory=list)
    resources: list[ResourceLook] = field(default_factory=list)
    keys: list[KeyLook] = field(default_factory=list)
    workers: list[WorkerLook] = field(default_factory=list)
    trouble: list[TroubleLook] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)


class ShardReader:
    """Needs no more rights than the user "metrics" has. Raises BrokerUnreachable."""

    def __init__(self, client: redis.Redis, shard: str = "0") -> None:
        self._client, self.shard, self._figures = client, shard, FleetReader(client, shard)
        self._unread: list[str] = []

    def read(self) -> ShardRows:
        """Look now."""
        figures = self._figures.read()
        k = keys.Keys(figures.epoch, self.shard)
        self._unread = []
        queues = list(figures.queues)
        time, info, hold, pauses, ingestors, budget, shares, holders, waiters, leases, *of_queues = self._ask(
            [
                ("TIME",),
                ("INFO",),
                ("GET", k.of("hold")),
                ("HGETALL", k.of("pauses")),
                ("HGETALL", k.of("ingestors")),
                ("HGETALL", k.of("budget")),
                ("HGETALL", k.of("shares")),
                ("HRANDFIELD", k.of("holders"), WORKERS_MAX, "WITHVALUES"),
                ("ZRANGE", k.of("waiters"), 0, WORKERS_MAX - 1, "REV", "WITHSCORES"),
                ("ZRANGE", k.of("leases"), 0, LOCKS_MAX - 1, "WITHSCORES"),
                *(command for queue in queues for command in _of_queue(k, queue)),
            ]
        )
        now_ms = int(time[0]) * 1_000 + int(time[1]) // 1_000
        lists = {queue: rows.QueueLists.of(of_queues[8 * at : 8 * at + 8], now_ms) for at, queue in enumerate(queues)}
        locked = rows.locked_keys(leases)
        kept = self._kept(k, lists, locked)
        locks = rows.lock_views(locked, {queue: each.locks for queue, each in kept.items()}, now_ms)
        writes = self._writes(k, [(lock.queue, lock.key) for lock in locks])
        told = server_facts.facts(info or b"")
        server = {name: told[name] for name in SERVER_FACTS if name in told}
        hearings = rows.hearings(ingestors, now_ms)
        shard = _shard(figures, rows.text(hold), server, tuple(self._unread), hearings)
        found = ShardRows(
            replace(shard, pauses=rows.pauses(pauses), now_ms=now_ms, budget=rows.budget(budget, shares, now_ms))
        )
        found.queues = [_queue(self.shard, name, numbers) for name, numbers in figures.queues.items()]
        found.resources = [
            ResourceLook(self.shard, name, figures.objects.get(name), int(age_s * 1_000))
            for name, age_s in figures.watermark_age_s.items()
        ]
        found.workers = rows.worker_rows(self.shard, holders, waiters, locks, writes, now_ms)
        found.keys = [rows.locked_row(self.shard, lock, now_ms) for lock in locks]
        for queue, each in lists.items():
            found.keys += rows.waiting_rows(self.shard, queue, each, kept[queue].states, now_ms)
            found.keys += rows.held_rows(self.shard, queue, each.held, kept[queue].held, rows.pauses(pauses), now_ms)
            found.trouble += rows.trouble_rows(self.shard, queue, each, kept[queue], now_ms)
            found.samples.append(Sample(queue, each.total, each.sample))
        return found

    def _kept(
        self, k: keys.Keys, lists: dict[str, rows.QueueLists], locked: dict[str, dict[str, int]]
    ) -> dict[str, rows.Kept]:
        """What is kept of the keys in the lists, by queue."""
        asked = []
        for queue, each in lists.items():
            asked += [
                ("HMGET", k.state(queue), *each.queued),
                ("HMGET", k.locks(queue), *locked.get(queue, ())),
                ("HMGET", k.crashes(queue), *each.trouble),
                ("HMGET", k.turns(queue), *each.trouble),
                ("ZMSCORE", k.delayed(queue), *each.trouble),
                ("HMGET", k.state(queue), *each.held),
            ]
        wanted = [command for command in asked if len(command) > 2]
        answers = iter(self._ask(wanted))
        every = [next(answers) if len(command) > 2 else [] for command in asked]
        return {queue: rows.Kept(*map(rows.listed, every[6 * at : 6 * at + 6])) for at, queue in enumerate(lists)}

    def _writes(self, k: keys.Keys, held: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Of keys in work: how many writes were announced and have no answer, of as many keys as the limit allows."""
        counts = self._ask([("HLEN", k.expect(queue, key)) for queue, key in held])
        found, wanted, left = {}, [], WRITES_MAX
        for task, count in zip(held, counts, strict=True):
            if count == 0:
                found[task] = 0
            elif isinstance(count, int) and count <= left:
                left -= count
                wanted.append(task)
        answers = self._ask([("HGETALL", k.expect(queue, key)) for queue, key in wanted])
        return found | {task: rows.writes_in(fields) for task, fields in zip(wanted, answers, strict=True)}

    def _ask(self, commands: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Answers as the protocol gives them; None for one that is an error, which is noted."""
        asked = list(commands)
        try:
            answers = raw_answers(self._client, asked, raise_on_error=False)
        except RedisError as error:
            raise BrokerUnreachable(f"look: {error}") from None
        for command, answer in zip(asked, answers, strict=True):
            if isinstance(answer, Exception):
                self._unread.append(f"{' '.join(map(str, command[:2]))}: {answer}")
        return [None if isinstance(answer, Exception) else answer for answer in answers]


def _of_queue(k: keys.Keys, queue: str) -> list[tuple[Any, ...]]:
    return [
        ("XRANGE", k.stream(queue), "-", "+", "COUNT", KEYS_MAX),
        ("ZRANGE", k.backlog(queue), 0, KEYS_MAX - 1, "WITHSCORES"),
        ("ZRANGE", k.delayed(queue), 0, DELAYED_MAX - 1, "WITHSCORES"),
        ("ZRANGE", k.parked(queue), 0, TROUBLE_MAX - 1, "WITHSCORES"),
        ("HRANDFIELD", k.failures(queue), TROUBLE_MAX, "WITHVALUES"),
        ("HRANDFIELD", k.state(queue), SAMPLED_MAX, "WITHVALUES"),
        ("HLEN", k.state(queue)),
        ("SRANDMEMBER", k.held(queue), HELD_MAX),
    ]


def _shard(
    figures: FleetFigures,
    paused: str,
    server: dict[str, str],
    unread: tuple[str, ...],
    ingestors: tuple[Hearing, ...],
) -> ShardLook:
    adds = [each.get("workqueue_adds_total") for each in figures.queues.values()]
    queued = [each.get("workqueue_depth") for each in figures.queues.values()]
    # A key leaves its stream by a claim alone. Where one queue does not say, none does: the server is older.
    known = [int(add - depth) for add, depth in zip(adds, queued, strict=True) if add is not None and depth is not None]
    return ShardLook(
        figures.shard,
        figures.epoch,
        figures.phase,
        figures.intact,
        paused,
        figures.registered,
        figures.idle,
        figures.memory_bytes,
        figures.memory_max_bytes,
        sum(known) if known else None,
        server,
        unread,
        ingestors,
    )


def _queue(shard: str, queue: str, numbers: dict[str, float | None]) -> QueueLook:
    def whole(name: str, scale: int = 1) -> int | None:
        value = numbers.get(name)
        return None if value is None else int(value * scale)

    return QueueLook(
        shard,
        queue,
        whole("workqueue_depth"),
        whole("oarlock_keys_in_work"),
        whole("oarlock_keys_delayed"),
        whole("oarlock_keys_parked"),
        whole("oarlock_keys_failing"),
        whole("oarlock_oldest_queued_seconds", 1_000) if numbers.get("workqueue_depth") else None,
        whole("oarlock_keys_held"),
    )
