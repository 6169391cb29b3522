"""Every Redis key, spelled once.

All keys of a shard share the hash tag ``{shard}``, so each script runs in one slot of a Redis Cluster. Every key but
the epoch itself has the epoch in its name, so data of an earlier epoch are never read again. Scripts derive the same
names from ``base``; a test compares their headers and bodies with this table.

Some names are older than the words of the code: ``needs`` holds each key's ``min_rv``, and ``hold`` and the phase HELD
stand for a paused fleet. They change with the protocol only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partialmethod

PROTOCOL = 4
"""Version of the scripts' meaning. It is part of their text, so another version is another epoch."""


def epoch(shard: str = "0") -> str:
    """String: number of the current epoch. It lives as long as the data; where it is missing, the data were lost."""
    return f"oarlock:{{{shard}}}:epoch"


def base(epoch_number: int, shard: str = "0") -> str:
    """Prefix of every other key of the epoch."""
    return f"oarlock:{epoch_number}:{{{shard}}}:"


@dataclass(frozen=True, slots=True)
class KeySpec:
    """One line of the table: pattern after ``base`` (``<word>`` is a variable), type, lifetime, meaning."""

    pattern: str
    type: str
    lifetime: str
    meaning: str


TABLE: tuple[KeySpec, ...] = (
    KeySpec("phase", "string", "epoch", "OPEN, DRAIN while writes of the last epoch may still land, HELD: paused"),
    KeySpec("hold", "string", "until ended", "why the fleet is paused: who else works on our kinds"),
    KeySpec("run", "string", "epoch", "run id of the server the epoch began on, and its last promotion"),
    KeySpec("fleet", "string", "epoch", "id of the fleet that began it: workers of another one wait"),
    KeySpec("queues", "set", "epoch", "names of the queues"),
    KeySpec("<queue>:stream", "stream", "epoch", "the front of the work queue: one entry a key, group 'workers'"),
    KeySpec(
        "<queue>:backlog",
        "zset",
        "while the front is full",
        "the queued keys behind the front -> 4 * round + lane, and ms it came at (its last 8 digits)",
    ),
    KeySpec("<queue>:passed", "string", "epoch", "how many keys workers have taken from the backlog"),
    KeySpec("<queue>:rounds", "zset", "while the front is full", "lane and namespace -> round of the next key it adds"),
    KeySpec(
        "<queue>:state", "hash", "epoch", "key -> queued | running | running+ | parked | held, why; absent is idle"
    ),
    KeySpec("<queue>:delayed", "zset", "epoch", "key -> ms when it is to be queued"),
    KeySpec("<queue>:parked", "zset", "epoch", "key that crashes its workers -> ms when it is tried again"),
    KeySpec("<queue>:held", "set", "until resumed", "keys that a pause took out of the stream"),
    KeySpec("<queue>:locks", "hash", "epoch", "key -> holder, nonce, since when, why it was queued"),
    KeySpec("<queue>:turns", "hash", "a day, or until Redis is nearly full", "key -> its newest turns, a line each"),
    KeySpec("<queue>:history", "hash", "as its turns", "key -> the turns before those, a line each"),
    KeySpec("<queue>:failures", "hash", "until a good turn", "key -> failed turns in a row"),
    KeySpec(
        "<queue>:crashes",
        "hash",
        "until a finish",
        "key -> workers it killed in a row; 0: suspect, its lease ended once",
    ),
    KeySpec("<queue>:bucket", "hash", "epoch", "the shared rate limit of retries: tokens, at_ms"),
    KeySpec("<queue>:rate", "hash", "epoch", "the rate of a controller's turns: tokens, at_ms"),
    KeySpec(
        "<queue>:expect:<key>",
        "hash",
        "300 s, 30 min with a back-off, 8 days with a write that the cache has yet to show, renewed",
        "the expectations: writes announced, names that cannot be had for now, nodes backed off",
    ),
    KeySpec(
        "<queue>:needs",
        "hash",
        "until read",
        "key -> resource=rv of our own writes that the cache has to pass (min_rv)",
    ),
    KeySpec("<queue>:unsettled", "hash", "until answered", "key -> ms since when it has writes without an answer"),
    KeySpec("<queue>:wake", "list", "until taken", "a token for each worker that waits for its keys and may go"),
    KeySpec("leases", "zset", "epoch", "queue:key -> ms when the lock ends unless renewed"),
    KeySpec(
        "holders",
        "hash",
        "until released",
        "worker -> its supervisor, since when, its queues, drain if it is to leave; only these may claim",
    ),
    KeySpec(
        "seen", "zset", "until released", "worker -> ms of its last renewal: one silent for a minute is struck off"
    ),
    KeySpec("holder:<holder>", "set", "until released", "queue:key of every lock the worker has"),
    KeySpec(
        "lone",
        "string",
        "until it claims",
        "worker that ends its turns to claim a key alone, until when others leave that to it, the queue of the key",
    ),
    KeySpec("waiters", "zset", "1.5 s, renewed", "idle worker -> ms until which it waits"),
    KeySpec("timer", "list", "epoch", "a token when a delayed key is due before the others"),
    KeySpec("tick", "string", "epoch", "ms of the last renewal call: shows a clock that jumps"),
    KeySpec("no_reclaim_until", "string", "epoch", "ms until which no lease is ended, after such a jump"),
    KeySpec(
        "capping", "hash", "until walked", "set -> ms down to which it was rid of times that a jump left too far away"
    ),
    KeySpec("histories", "zset", "as the histories", "queue:key with a history -> ms of its last turn, to ten minutes"),
    KeySpec("history_bytes", "string", "as the histories", "bytes of all histories, about"),
    KeySpec("pauses", "hash", "until resumed", "what people have paused: scope -> since when, until when, who, why"),
    KeySpec(
        "strides", "hash", "epoch", "queue -> keys taken by its weight, where a controller has one; '': of the last"
    ),
    KeySpec("limits", "hash", "until another rate", "namespace with a rate -> when the next turn may go, its bucket"),
    KeySpec(
        "limited:<namespace>",
        "zset",
        "while any waits",
        "queue:key -> place in the line for the rate of its namespace; below 0 once it is queued again",
    ),
    KeySpec("pauses_kept", "string", "until others", "digest of the pauses that the Lease has too"),
    KeySpec("resuming", "hash", "until walked", "queue whose held keys are looked at -> cursor"),
    KeySpec("drains", "zset", "a day of silence", "supervisor that begins no worker -> ms when it asked last"),
    KeySpec("audit", "stream", "the last 1000", "what people did: pauses and their ends, requeues, drains"),
    KeySpec(
        "budget", "hash", "epoch", "the API budget: rate now and at most, when and why it was cut, until when to wait"
    ),
    KeySpec("shares", "hash", "a lease, renewed", "worker -> until when it has its shares of the budget, and which"),
    KeySpec("ingestors", "hash", "a minute, renewed", "ingestor -> when it said so, and what it hears of the API"),
    KeySpec("audit_told", "string", "epoch", "id of the last act that an ingestor took, to tell it as an event"),
    KeySpec("shadow:<queue>", "hash", "epoch", "of a dry run: key -> the course of its comparison with upstream"),
    KeySpec("shadow_windows", "hash", "epoch", "of a dry run: queue and verdict -> windows that closed so"),
    KeySpec("shadow_differences", "stream", "the last 10000", "of a dry run: what upstream did that was not decided"),
    KeySpec("watermark", "hash", "epoch", "resource -> resourceVersion the cache equals"),
    KeySpec("watermark_at", "hash", "epoch", "resource -> ms when that was last confirmed"),
    KeySpec(
        "unread:<resource>",
        "zset",
        "until read",
        "(length, rv, queue:key), sorted: whom to wake when the cache passes rv",
    ),
    KeySpec("generation", "hash", "epoch", "resource -> generation of the cache that is read"),
    KeySpec(
        "cache:<resource>:<generation>",
        "hash",
        "until relisted",
        "id -> rv, uid, a signature if it has one, index entries, wake keys, blob",
    ),
    KeySpec(
        "index:<resource>:<generation>:<entry>",
        "hash",
        "until relisted",
        "id -> '' for each object with the entry",
    ),
    KeySpec(
        "summary:<resource>:<generation>:<entry>",
        "hash",
        "until relisted",
        "class -> how many objects with the entry are of it, its text, whom they wake, and how their blobs end",
    ),
    KeySpec(
        "apart:<resource>:<generation>",
        "hash",
        "until relisted",
        "digest -> how many owners have the entry *<digest>, and their template, deflated",
    ),
    KeySpec(
        "changes:<resource>:<generation>",
        "zset",
        "until relisted",
        "id with the entry 'mirror' -> number of its last change",
    ),
    KeySpec(
        "changes_at:<resource>:<generation>",
        "hash",
        "until relisted",
        "seq -> number of the last change, floor -> of the last one no longer listed",
    ),
    KeySpec("staging:<resource>", "string", "until committed", "generation being staged, until when it is let alone"),
    KeySpec("abandoned", "set", "epoch", "generations whose stager came too late: never staged or read again"),
    KeySpec("republish", "list", "until done", "generations still to walk after a list, with their cursor"),
)


class Keys:
    """The names of one shard and epoch, for Python readers; ``Keys(7).state("replicaset")``."""

    def __init__(self, epoch_number: int, shard: str = "0") -> None:
        self.epoch = epoch(shard)
        self.base = base(epoch_number, shard)

    def of(self, name: str) -> str:
        """A fixed key by its name in ``TABLE``, e.g. ``of("leases")``."""
        return self.base + name

    def _of_queue(self, name: str, queue: str) -> str:
        return f"{self.base}{queue}:{name}"

    stream = partialmethod(_of_queue, "stream")
    backlog = partialmethod(_of_queue, "backlog")
    passed = partialmethod(_of_queue, "passed")
    rounds = partialmethod(_of_queue, "rounds")
    state = partialmethod(_of_queue, "state")
    delayed = partialmethod(_of_queue, "delayed")
    parked = partialmethod(_of_queue, "parked")
    locks = partialmethod(_of_queue, "locks")
    failures = partialmethod(_of_queue, "failures")
    crashes = partialmethod(_of_queue, "crashes")
    min_rv = partialmethod(_of_queue, "needs")
    unsettled = partialmethod(_of_queue, "unsettled")
    rate = partialmethod(_of_queue, "rate")
    turns = partialmethod(_of_queue, "turns")
    history = partialmethod(_of_queue, "history")
    held = partialmethod(_of_queue, "held")
    wake = partialmethod(_of_queue, "wake")

    def limited(self, namespace: str) -> str:
        return f"{self.base}limited:{namespace}"

    def shadow(self, queue: str) -> str:
        return f"{self.base}shadow:{queue}"

    def expect(self, queue: str, key: str) -> str:
        return f"{self.base}{queue}:expect:{key}"

    def objects(self, resource: str, generation: str) -> str:
        return f"{self.base}cache:{resource}:{generation}"

    def index(self, resource: str, generation: str, entry: str) -> str:
        return f"{self.base}index:{resource}:{generation}:{entry}"

    def changes_at(self, resource: str, generation: str) -> str:
        return f"{self.base}changes_at:{resource}:{generation}"

    def summary(self, resource: str, generation: str, entry: str) -> str:
        return f"{self.base}summary:{resource}:{generation}:{entry}"
