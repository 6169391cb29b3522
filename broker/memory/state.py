"""The data of one epoch of the twin, and the moves that every step is made of: ``scripts/lib`` in Python.

The scripts are compared with it, so it is written to be read, not to be fast.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from oarlock.broker.expectations import BACK_OFF, NOTES
from oarlock.broker.memory.budget import BudgetState
from oarlock.broker.memory.lanes import first_why, lane_of_why, with_trigger
from oarlock.broker.memory.steering.scopes import weight_of
from oarlock.broker.values.events import ending_of, wakes_in
from oarlock.broker.values.objects import Cached

EXPECTATIONS_TTL_MS = 300_000
BACK_OFF_TTL_MS = 1_800_000
OPEN_TTL_MS = 691_200_000
OUTLIVES_ANSWER = ("delete ", "scale ")
PARKED_MAX_MS = 300_000
CLOCK_JUMP_MS = 3_000
SILENT_MS = 60_000
CAP_PAGE = 2_000
WAITER_MS = 1_500
FRONT = 32
STEPS = (1, 0.5, 0.75, 4)
SCALE = 100_000_000
ROUND = 4 * SCALE


def split(task: str) -> tuple[str, str]:
    """ "queue:key" -> queue, key."""
    queue, _, key = task.partition(":")
    return queue, key


def namespace_of(key: str) -> str:
    """ "" for a key without one."""
    return key.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Lock:
    holder: str
    nonce: str
    since_ms: int
    why: str
    """What had queued the key, as text."""

    @property
    def text(self) -> str:
        """As Redis stores it."""
        return f"holder={self.holder} nonce={self.nonce} since_ms={self.since_ms} why={self.why}"


@dataclass(slots=True)
class ExpectHash:
    """The expectation hash of a key as Redis stores it, and when it is gone."""

    fields: dict[str, str]
    ends_ms: int

    @property
    def backs_off(self) -> bool:
        """Whether it has a back-off."""
        return any(name.startswith(f"{BACK_OFF} ") for name in self.fields)


def is_open(field_name: str, value: str) -> bool:
    """Whether a field is a write without an answer, or a name that an earlier create may still take."""
    verb = field_name.partition(" ")[0]
    return verb == "reserved" or (value.startswith("pending ") and verb not in NOTES)


def timed(value: str) -> tuple[str, int | None]:
    """A value up to the time at its end, and that; None where it has none."""
    head, _, until_ms = value.rpartition("until_ms=")
    has_time = head + until_ms != value and until_ms.isascii() and until_ms.isdigit()
    return (head, int(until_ms)) if has_time else (value, None)


@dataclass(slots=True)
class QueueState:
    """Everything of one queue. A key without a state is idle."""

    stream: list[str] = field(default_factory=list)
    backlog: dict[str, int] = field(default_factory=dict)
    rounds: dict[str, float] = field(default_factory=dict)
    passed: int = 0
    state: dict[str, str] = field(default_factory=dict)
    delayed: dict[str, int] = field(default_factory=dict)
    parked: dict[str, int] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    locks: dict[str, Lock] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    crashes: dict[str, int] = field(default_factory=dict)
    expectations: dict[str, ExpectHash] = field(default_factory=dict)
    min_rv: dict[str, dict[str, str]] = field(default_factory=dict)
    unsettled: dict[str, int] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=dict)
    history: dict[str, str] = field(default_factory=dict)
    bucket: tuple[float, int] | None = None
    """Tokens left (negative: promised ahead), and when that was."""
    rate: tuple[float, int] | None = None
    """The same, of the rate of its turns."""
    wake_tokens: int = 0

    @property
    def queued(self) -> int:
        """How many keys are queued."""
        return len(self.stream) + len(self.backlog)

    def line_up(self, key: str, now: int, weight: float) -> None:
        """Into the backlog, or forward in it: the next place of its namespace in its lane."""
        if not self.backlog:
            self.rounds.clear()
        lane = lane_of_why(key, self.why[key])
        name, served = f"{lane} {namespace_of(key)}", min(self.backlog.values(), default=0) // ROUND
        step = STEPS[lane] / weight
        latest = served + (len(self.backlog) + 1) * step
        round_ = min(max(served, self.rounds.get(name, 0)), latest)
        place = math.floor(round_ + 1e-6) * ROUND + lane * SCALE + now % SCALE
        if place < self.backlog.get(key, math.inf):
            self.rounds[name] = round_ + step
            self.backlog[key] = place

    def first(self, count: int) -> list[str]:
        """The next keys. They stay where they are."""
        waiting = sorted(self.backlog, key=lambda key: (self.backlog[key], key.encode()))
        return [*self.stream, *waiting][:count]

    def take(self, keys: Sequence[str]) -> None:
        """They leave the queue for a worker, which may have passed others over."""
        places = [self.backlog.pop(key) for key in keys if key in self.backlog]
        self.stream = [each for each in self.stream if each not in keys]
        self.passed += len(places)
        if places:
            served = min(places[-1], min(self.backlog.values(), default=places[-1])) // ROUND
            self.rounds = {name: next_ for name, next_ in self.rounds.items() if next_ > served}

    def expected(self, key: str, now_ms: int) -> ExpectHash | None:
        """The expectations of a key, unless their time is over."""
        found = self.expectations.get(key)
        if found is not None and now_ms >= found.ends_ms:
            del self.expectations[key]
            return None
        return found


class Stored(NamedTuple):
    """A cached object with what the scripts keep beside it."""

    rv: str
    uid: str
    entries: str
    wakes: str
    blob: bytes
    signature: str = ""
    kind: bytes = b""
    """The text of the class at the end of its entries."""

    @property
    def all_wakes(self) -> str:
        """The keys that it wakes, also those that are kept with its class."""
        return wakes_in(self.kind) if self.kind else self.wakes

    @property
    def apart(self) -> str:
        """Name of what lies apart from it; "" where nothing does."""
        if "*" not in self.entries:
            return ""
        return next((each[1:] for each in self.entries.split() if each[0] == "*"), "")

    @property
    def cached(self) -> Cached:
        """What a reader gets."""
        return Cached(self.rv, self.uid, self.blob + ending_of(self.kind, self.uid), self.signature)

    @property
    def head(self) -> str:
        """The first line of its text in Redis."""
        return f"{self.rv} {self.uid} {self.signature}" if self.signature else f"{self.rv} {self.uid}"

    @property
    def size(self) -> int:
        """Bytes of its text, as a reader gets it."""
        return len(f"{self.head}\n{self.entries}\n{self.wakes}\n".encode()) + len(self.cached.blob)


@dataclass(slots=True)
class Part:
    """What is kept apart from the objects that name it, and how many these are."""

    content: bytes
    count: int = 0


@dataclass(slots=True)
class Job:
    """A generation still to walk after a list; ``rest`` is None until the walk begins."""

    mode: str
    resource: str
    generation: str
    rest: list[str] | None = None


@dataclass(slots=True)
class ChangeLog:
    """Of the mirrored objects of a generation: id -> number of its last change, while that is above ``floor``."""

    seq: int = 0
    floor: int = 0
    changed: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class EpochState:
    """One life of the data."""

    phase: str = "DRAIN"
    pause_reason: str = ""
    """Why no turn begins."""
    registered: set[str] = field(default_factory=set)
    front: int = FRONT
    """How many keys the front of a queue takes."""
    queues: dict[str, QueueState] = field(default_factory=dict)
    leases: dict[str, int] = field(default_factory=dict)
    holders: dict[str, tuple[str, int]] = field(default_factory=dict)
    tasks_of: dict[str, set[str]] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    lone: tuple[str, int, str] | None = None
    """The worker that ends its turns to claim a key that is claimed alone, and until when others leave that to it."""
    serves: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Holder -> its queues, as it registered."""
    waiters: dict[str, int] = field(default_factory=dict)
    came: Counter[str] = field(default_factory=Counter)
    """How many keys have entered each queue in this step: ``wake`` takes them."""
    timer_tokens: int = 0
    tick: int | None = None
    no_reclaim_until: int = 0
    capping: dict[str, float] = field(default_factory=dict)
    """Set -> time down to which it was walked since the clock jumped."""
    pauses: dict[str, str] = field(default_factory=dict)
    limits: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Namespace with a rate -> ms when its next key may leave the line, and since when its bucket would be filled."""
    lines: dict[str, dict[str, int]] = field(default_factory=dict)
    """Namespace with a rate -> task -> its place in the line; below 0 once it is queued again."""
    strides: dict[str, float] = field(default_factory=dict)
    """Queue -> keys taken by its weight; "": where the queue stood that was served last."""
    pauses_kept: str = ""
    resuming: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    """Holders that are to leave."""
    drains: dict[str, int] = field(default_factory=dict)
    """Supervisors that begin no worker, and when they asked last."""
    audit: list[str] = field(default_factory=list)
    acts: int = 0
    """How many acts there were."""
    acts_told: int = 0
    histories: dict[str, int] = field(default_factory=dict)
    history_bytes: int = 0
    remembers: bool = True
    """Whether there are histories. Nothing is decided by them, so who plays thousands of fleets may do without."""
    ingestors: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Ingestor -> when it said what."""
    budget: BudgetState = field(default_factory=BudgetState)
    watermark: dict[str, str] = field(default_factory=dict)
    watermark_at: dict[str, int] = field(default_factory=dict)
    unread: dict[str, set[tuple[int, str, str]]] = field(default_factory=dict)
    """resource -> (length of rv, rv, task): whom to wake when the cache passes rv."""
    generation: dict[str, str] = field(default_factory=dict)
    objects: dict[tuple[str, str], dict[str, Stored]] = field(default_factory=dict)
    index: dict[tuple[str, str, str], dict[str, None]] = field(default_factory=dict)
    apart: dict[tuple[str, str], dict[str, Part]] = field(default_factory=dict)
    """What objects have in common, by its name."""
    summary: dict[tuple[str, str, str], dict[bytes, int]] = field(default_factory=dict)
    """(resource, generation, entry) -> text of a class -> how many objects have it under the entry."""
    changes: dict[tuple[str, str], ChangeLog] = field(default_factory=dict)
    staging: dict[str, tuple[str, int]] = field(default_factory=dict)
    abandoned: set[str] = field(default_factory=set)
    republish: list[Job] = field(default_factory=list)

    def queue(self, name: str) -> QueueState:
        found = self.queues.get(name)
        if found is None:
            found = self.queues[name] = QueueState()
        return found

    # -- lib/queue.lua -------------------------------------------------------------------------------------------

    def wake(self, now: int) -> None:
        """For each key that came to a queue one worker may go that waits for its keys."""
        if self.came:
            came, self.came = self.came, Counter()
            for queue, count in came.items():
                self._let_go(queue, count, now)

    def wake_for(self, queue: str) -> None:
        """Keys are queued, and the worker that was to take them may not come."""
        self.came[queue] = max(self.came[queue], 1)

    def wake_for_queued(self) -> None:
        for queue in self.registered:
            if self.queue(queue).queued:
                self.wake_for(queue)

    def wake_all(self, now: int) -> None:
        """All that wait may go. A worker's token lies where it looks first."""
        waiting = [holder for holder, until in self.waiters.items() if until >= now and self.serves[holder]]
        for queue, count in Counter(self.serves[holder][0] for holder in waiting).items():
            self._let_go(queue, count, now)

    def _let_go(self, queue: str, count: int, now: int) -> None:
        q = self.queue(queue)
        serving = sum(until >= now and queue in self.serves[holder] for holder, until in self.waiters.items())
        q.wake_tokens += max(0, min(count, serving - q.wake_tokens))

    def hurry(self) -> None:
        self.timer_tokens = max(1, self.timer_tokens)

    def append(self, queue: str, key: str, now: int) -> None:
        q = self.queue(queue)
        if q.backlog or len(q.stream) >= self.front:
            q.line_up(key, now, weight_of(self.pauses, namespace_of(key)))
        else:
            q.stream.append(key)
        q.state[key] = "queued"
        self.came[queue] += 1

    def because(self, queue: str, key: str, trigger: str, now: int) -> bool:
        """Note what queues a key: since when, how many triggers, the first, the last of the most urgent. Returns
        whether its lane is a more urgent one now, for a key that waits behind the front.
        """
        q = self.queue(queue)
        was = q.why.get(key)
        q.why[key] = first_why(trigger, now) if was is None else with_trigger(key, was, trigger)
        return was is not None and key in q.backlog and lane_of_why(key, q.why[key]) < lane_of_why(key, was)

    def queued_since_ms(self, queue: str, key: str) -> int:
        """Since when a key is queued for its next turn."""
        return int(self.queue(queue).why[key].partition(" ")[0])

    def add(self, queue: str, key: str, trigger: str, now: int) -> int:
        return self.add_all([(f"{queue}:{key}", trigger)], now)

    def add_all(self, woken: Sequence[tuple[str, str]], now: int) -> int:
        """Tasks with their triggers. All triggers are noted before a key gets its place."""
        more_urgent: dict[str, bool] = {}
        for task, trigger in woken:
            more_urgent[task] = self.because(*split(task), trigger, now) or more_urgent.get(task, False)
        added = 0
        for task, moves in more_urgent.items():
            queue, key = split(task)
            q = self.queue(queue)
            if key not in q.state:
                self.append(queue, key, now)
                added += 1
            elif q.state[key] == "running":
                q.state[key] = "running+"
            elif moves:
                q.line_up(key, now, weight_of(self.pauses, namespace_of(key)))
        return added

    def add_after(self, queue: str, key: str, delay_ms: int, now: int) -> None:
        if delay_ms <= 0:
            self.add(queue, key, "due", now)
            return
        delayed, due = self.queue(queue).delayed, now + delay_ms
        if not delayed or due < min(delayed.values()):
            self.hurry()
        delayed[key] = min(due, delayed.get(key, due))

    def back_off_ms(self, queue: str, key: str, now: int) -> int:
        q = self.queue(queue)
        failures = q.failures.get(key, 0)
        q.failures[key] = failures + 1
        own = 1_000_000 if failures > 17 else 5 << failures
        tokens, at = q.bucket or (100.0, now)
        tokens = min(100.0, tokens + max(0, now - at) / 100) - 1
        q.bucket = (float(f"{tokens:.2f}"), now)
        return max(own, math.ceil(-tokens * 100 - 0.001) if tokens < 0 else 0)

    # -- lib/locks.lua -------------------------------------------------------------------------------------------

    def unlock(self, queue: str, key: str, holder: str) -> None:
        task = f"{queue}:{key}"
        self.queue(queue).locks.pop(key, None)
        self.leases.pop(task, None)
        tasks = self.tasks_of.get(holder, set())
        tasks.discard(task)
        if not tasks:
            self.tasks_of.pop(holder, None)

    def strike_off(self, holder: str) -> None:
        for of in (self.holders, self.serves, self.waiters, self.seen):
            of.pop(holder, None)
        self.leaving.discard(holder)

    def keep_expectations(self, queue: str, key: str, delay_ms: int, now: int) -> None:
        expected = self.queue(queue).expected(key, now)
        if expected is not None:
            least_ms = BACK_OFF_TTL_MS if expected.backs_off else 0
            if key in self.queue(queue).unsettled or any(name.startswith(OUTLIVES_ANSWER) for name in expected.fields):
                least_ms = OPEN_TTL_MS
            expected.ends_ms = now + max(EXPECTATIONS_TTL_MS + delay_ms, least_ms)

    def requeue_crashed(self, queue: str, key: str, now: int) -> None:
        q = self.queue(queue)
        q.crashes[key] = crashes = q.crashes.get(key, 0) + 1
        if crashes == 1:
            self.append(queue, key, now)
            return
        pause = min(1000 * 2 ** min(crashes - 2, 20), PARKED_MAX_MS)
        q.state[key] = "parked"
        q.parked[key] = now + pause
        self.hurry()
        self.keep_expectations(queue, key, pause, now)
