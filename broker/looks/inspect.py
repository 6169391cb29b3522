"""Looks into an epoch with plain read commands, and returns as values what ``redis-cli`` would show.

No look changes anything, or needs more rights than the user "metrics" has. One look is several commands, so two of its
numbers may be some milliseconds apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from oarlock.broker import keys
from oarlock.broker.budget import BudgetView, view_of
from oarlock.broker.looks.hearing import Hearing, hearing_of
from oarlock.broker.looks.history import Queued, past_turns
from oarlock.broker.looks.views import (
    FRONT_MAX,
    ExpectationsView,
    KeyLine,
    KeyView,
    LockView,
    QueueView,
    ResourceView,
    backlog_keys,
    lock_view,
    queued_keys,
)
from oarlock.broker.pauses import Pause, digest
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.broker.values.events import ending_of
from oarlock.broker.values.objects import Cached


class Inspector:
    """Looks at one epoch. Every method raises BrokerUnreachable; ``now_ms`` replaces Redis's clock in tests."""

    def __init__(
        self, client: redis.Redis, epoch: int, shard: str = "0", now_ms: Callable[[], int] | None = None
    ) -> None:
        self._client, self.keys = client, keys.Keys(epoch, shard)
        self._now_ms = now_ms or self._redis_ms

    def now_ms(self) -> int:
        """Redis's clock."""
        return self._now_ms()

    def queues(self) -> list[str]:
        """Names of the queues."""
        (names,) = self._ask(("SMEMBERS", self.keys.of("queues")))
        return sorted(name.decode() for name in names)

    def pause_reason(self) -> str:
        """Why the fleet is paused; "" where it is not."""
        (reason,) = self._ask(("GET", self.keys.of("hold")))
        return reason.decode() if reason is not None else ""

    def pauses(self) -> list[Pause]:
        """What people have paused, the longest first."""
        (found,) = self._ask(("HGETALL", self.keys.of("pauses")))
        pauses = [Pause.parse(scope, text) for scope, text in _texts(found).items()]
        return sorted(pauses, key=lambda each: (each.since_ms, each.scope))

    def hearings(self) -> list[Hearing]:
        """What each ingestor says it hears of the API, by its name."""
        now = self._now_ms()
        (found,) = self._ask(("HGETALL", self.keys.of("ingestors")))
        return [hearing_of(name, text, now) for name, text in sorted(_texts(found).items())]

    def budget(self) -> BudgetView | None:
        """The API budget of the fleet; None where it has none."""
        now = self._now_ms()
        found, shares = self._ask(("HGETALL", self.keys.of("budget")), ("HGETALL", self.keys.of("shares")))
        return view_of(_texts(found), _texts(shares), now)

    def pauses_kept(self) -> bool:
        """Whether the Lease has all of them, so that they outlive a loss of Redis."""
        found, kept = self._ask(("HGETALL", self.keys.of("pauses")), ("GET", self.keys.of("pauses_kept")))
        return bool(kept is not None and kept.decode() == digest(_texts(found)))

    def audit(self, most: int) -> list[tuple[int, str]]:
        """The last acts of people: ms by Redis's clock, and what was done. The newest comes last."""
        (entries,) = self._ask(("XREVRANGE", self.keys.of("audit"), "+", "-", "COUNT", most))
        return [(int(entry[0].split(b"-")[0]), entry[1][1].decode(errors="replace")) for entry in reversed(entries)]

    def queue(self, name: str) -> QueueView:
        """One queue in numbers."""
        now, k = self._now_ms(), self.keys
        front, entries, behind, first, locks, delayed, parked, failing, held = self._ask(
            ("XLEN", k.stream(name)),
            ("XRANGE", k.stream(name), "-", "+", "COUNT", FRONT_MAX),
            ("ZCARD", k.backlog(name)),
            ("ZRANGE", k.backlog(name), 0, 0, "WITHSCORES"),
            ("HLEN", k.locks(name)),
            ("ZCARD", k.delayed(name)),
            ("ZCARD", k.parked(name)),
            ("HLEN", k.failures(name)),
            ("SCARD", k.held(name)),
        )
        came = [*queued_keys(entries).values(), *backlog_keys(first, now).values()]
        oldest = max(0, now - min(came)) if came else None
        return QueueView(name, front + behind, locks, delayed, parked, failing, oldest, held)

    def keys_of(self, queue: str) -> list[KeyLine]:
        """Every key that is not idle: those in work, those that a pause holds, the queued in their order, the parked
        and the delayed in the order of their times. A key that is delayed and has another state has a line for each.
        """
        now, k = self._now_ms(), self.keys
        states, crashes, entries, behind, delayed, parked, pauses = self._ask(
            ("HGETALL", k.state(queue)),
            ("HGETALL", k.crashes(queue)),
            ("XRANGE", k.stream(queue), "-", "+"),
            ("ZRANGE", k.backlog(queue), 0, -1),
            ("ZRANGE", k.delayed(queue), 0, -1, "WITHSCORES"),
            ("ZRANGE", k.parked(queue), 0, -1, "WITHSCORES"),
            ("HGETALL", k.of("pauses")),
        )
        by_hand = {each.parked: each for each in (Pause.parse(*pair) for pair in _texts(pauses).items())}
        words = {
            key.decode(): state.decode(errors="replace").partition(" ")[0] for key, state in _pairs(states).items()
        }
        running = sorted(each for each in words.items() if each[1].startswith("running"))
        lines = [KeyLine(queue, key, state) for key, state in running]
        for key in sorted(key for key, word in words.items() if word == "held"):
            aside = by_hand.get(f"{queue}:{key}")
            if aside is None or aside.until_ms is None:
                lines.append(KeyLine(queue, key, "held"))
            else:
                lines.append(KeyLine(queue, key, "parked", aside.until_ms - now, by=aside.by))
        queued = dict.fromkeys([*queued_keys(entries), *(key.decode() for key in behind)])  # one may move up meanwhile
        lines += [KeyLine(queue, key, "queued") for key in queued]
        for state, waiting in (("parked", parked), ("delayed", delayed)):
            lines += [KeyLine(queue, key.decode(), state, _int(at) - now) for key, at in _pairs(waiting).items()]
        marked = _texts(crashes)
        return [replace(line, crashes=int(marked[line.key])) if line.key in marked else line for line in lines]

    def ahead_of(self, queue: str, key: str, most: int) -> int:
        """How many keys are queued before this one; ``most`` where it is not among the first so many."""
        k = self.keys
        entries, place = self._ask(
            ("XRANGE", k.stream(queue), "-", "+", "COUNT", most), ("ZRANK", k.backlog(queue), key)
        )
        front = [*queued_keys(entries)]
        return front.index(key) if key in front else min(most, len(front) + (place or 0))

    def locks(self) -> list[LockView]:
        """Every lock; the one that ends first comes first."""
        now, found = self._now_ms(), []
        (leases,) = self._ask(("ZRANGE", self.keys.of("leases"), 0, -1, "WITHSCORES"))
        ends = {task.decode(): _int(at) for task, at in _pairs(leases).items()}
        queues = sorted({task.partition(":")[0] for task in ends})
        for queue, locks in zip(
            queues, self._ask(*(("HGETALL", self.keys.locks(queue)) for queue in queues)), strict=True
        ):
            for key, lock in _pairs(locks).items():
                found.append(lock_view(queue, key.decode(), lock, ends.get(f"{queue}:{key.decode()}", now), now))
        return sorted(found, key=lambda lock: (lock.remaining_ms, lock.queue, lock.key))

    def key(self, queue: str, key: str) -> KeyView:
        """All that is known of one key. A key that needs nothing is "idle"."""
        now, k = self._now_ms(), self.keys
        state, lock, lease, delayed, parked, failures, crashes, min_rv, unsettled, fields, ttl, newest, older = (
            self._ask(
                ("HGET", k.state(queue), key),
                ("HGET", k.locks(queue), key),
                ("ZSCORE", k.of("leases"), f"{queue}:{key}"),
                ("ZSCORE", k.delayed(queue), key),
                ("ZSCORE", k.parked(queue), key),
                ("HGET", k.failures(queue), key),
                ("HGET", k.crashes(queue), key),
                ("HGET", k.min_rv(queue), key),
                ("HGET", k.unsettled(queue), key),
                ("HGETALL", k.expect(queue, key)),
                ("PTTL", k.expect(queue, key)),
                ("HGET", k.turns(queue), key),
                ("HGET", k.history(queue), key),
            )
        )
        word, _, why = state.decode(errors="replace").partition(" ") if state else ("idle", "", "")
        return KeyView(
            queue,
            key,
            word,
            lock_view(queue, key, lock, _int(lease), now) if lock and lease is not None else None,
            None if delayed is None else _int(delayed) - now,
            None if parked is None else _int(parked) - now,
            int(failures or 0),
            int(crashes or 0),
            min_rv.decode() if min_rv else "",
            now - int(unsettled) if unsettled else None,
            ExpectationsView(queue, key, _texts(fields), ttl, now) if fields else None,
            crashes == b"0",
            Queued.parse(why),
            past_turns((newest or b"").decode(errors="replace"), (older or b"").decode(errors="replace"), key),
            now,
        )

    def rate_wait_ms(self, queue: str, rate_per_s: float, ahead: int) -> int:
        """How long a queued key with ``ahead`` keys before it waits for the rate of its queue, as `claim.lua` counts
        it; 0: the rate lets it go now.
        """
        now, most = self._now_ms(), max(1.0, rate_per_s)
        ((tokens, at_ms),) = self._ask(("HMGET", self.keys.rate(queue), "tokens", "at_ms"))
        since_ms = max(0, now - int(at_ms)) if at_ms else 0
        left = min(most, (float(tokens) if tokens else most) + since_ms * rate_per_s / 1000)
        return max(0, math.ceil((ahead + 1 - left - 1e-6) * 1000 / rate_per_s))

    def line_wait(self, queue: str, key: str, rate_per_s: float) -> tuple[int, int] | None:
        """How many keys are before it in the line for the rate of its namespace, and ms until it is queued, as
        `lib/limits.lua` counts; None where it is not in line.
        """
        now, namespace, task = self._now_ms(), key.rpartition("/")[0], f"{queue}:{key}"
        line = self.keys.limited(namespace)
        place, rank, left, pace = self._ask(
            ("ZSCORE", line, task),
            ("ZRANK", line, task),
            ("ZCOUNT", line, "-inf", "(0"),
            ("HGET", self.keys.of("limits"), namespace),
        )
        if place is None or float(place) <= 0:
            return None
        next_ms, ahead = float(pace.split()[0]) if pace else now, max(0, (rank or 0) - left)
        return ahead, max(0, math.ceil(next_ms + ahead * 1000 / rate_per_s - now))

    def expectations(self, queue: str) -> Iterator[ExpectationsView]:
        """The expectations of every key of a queue, in no order. Walks the key space."""
        now, prefix = self._now_ms(), self.keys.expect(queue, "")
        for names in self._scan(prefix + "*"):
            asked = [command for name in names for command in (("HGETALL", name), ("PTTL", name))]
            answers = self._ask(*asked)
            for name, fields, ttl in zip(names, answers[::2], answers[1::2], strict=True):
                if fields:
                    yield ExpectationsView(queue, name.decode()[len(prefix) :], _texts(fields), ttl, now)

    def resources(self) -> list[ResourceView]:
        """Every cached resource."""
        now, k = self._now_ms(), self.keys
        marks, ages, generations = (
            _texts(found)
            for found in self._ask(
                ("HGETALL", k.of("watermark")), ("HGETALL", k.of("watermark_at")), ("HGETALL", k.of("generation"))
            )
        )
        names = sorted(marks)
        counts = self._ask(*(("HLEN", k.objects(name, generations.get(name, "0"))) for name in names))
        return [
            ResourceView(name, marks[name], max(0, now - int(ages.get(name, now))), generations.get(name, "0"), count)
            for name, count in zip(names, counts, strict=True)
        ]

    def object(self, resource: str, object_id: str) -> Cached | None:
        """One cached object."""
        name = self._objects(resource)
        (value,) = self._ask(("HGET", name, object_id))
        return self._whole(name, (value,))[0] if value else None

    def objects(self, resource: str) -> Iterator[tuple[str, Cached]]:
        """Every cached object with its id, in no order; one that changes meanwhile may come twice."""
        name, cursor = self._objects(resource), b"0"
        while True:
            ((cursor, step),) = self._ask(("HSCAN", name, cursor, "COUNT", 500))
            found = _pairs(step)
            yield from zip((each.decode() for each in found), self._whole(name, tuple(found.values())), strict=True)
            if int(cursor) == 0:
                return

    def _whole(self, name: str, values: Sequence[bytes]) -> list[Cached]:
        """Objects from the hash ``name``, each with its end and its part that are stored apart, unless these have gone
        since.
        """
        found = Cached.parse_all(values)
        words = [value.split(b"\n", 2)[1].split() for value in values]
        counted = {i: (each[0], each[-1][1:]) for i, each in enumerate(words) if each and each[-1].startswith(b"#")}
        self._end(name, found, counted)
        parts = {i: word[1:] for i, each in enumerate(words) for word in each if word.startswith(b"*")}
        if parts:
            (contents,) = self._ask(("HMGET", name.replace(":cache:", ":apart:", 1), *parts.values()))
            for i, content in zip(parts, contents, strict=True):
                found[i] = found[i]._replace(apart=(content or b"").partition(b" ")[2])
        return found

    def _end(self, name: str, found: list[Cached], classes: Mapping[int, tuple[bytes, bytes]]) -> None:
        """Put behind the blobs of objects what their classes (first entry, name) say that they end with."""
        places = list(dict.fromkeys(classes.values()))
        if not places:
            return
        summary = name.replace(":cache:", ":summary:", 1).encode()
        texts = self._ask(*(("HGET", b"%b:%b" % (summary, entry), kind) for entry, kind in places))
        kinds = dict(zip(places, (text or b"" for text in texts), strict=True))
        for i, place in classes.items():
            found[i] = found[i]._replace(blob=found[i].blob + ending_of(kinds[place], found[i].uid))

    def _objects(self, resource: str) -> str:
        (generation,) = self._ask(("HGET", self.keys.of("generation"), resource))
        return self.keys.objects(resource, generation.decode() if generation else "0")

    def _scan(self, pattern: str) -> Iterator[list[bytes]]:
        cursor: bytes | int = 0
        while True:
            ((cursor, names),) = self._ask(("SCAN", cursor, "MATCH", pattern, "COUNT", 500))
            if names:
                yield names
            if int(cursor) == 0:
                return

    def _redis_ms(self) -> int:
        ((seconds, micros),) = self._ask(("TIME",))
        return int(seconds) * 1000 + int(micros) // 1000

    def _ask(self, *commands: tuple[Any, ...]) -> list[Any]:
        try:
            return raw_answers(self._client, commands)
        except (RedisConnectionError, RedisTimeoutError, ResponseError) as error:
            raise BrokerUnreachable(f"look: {error}") from None


def raw_answers(client: redis.Redis, commands: Sequence[tuple[Any, ...]], raise_on_error: bool = True) -> list[Any]:
    """Answers in the words and shapes of the protocol, not in redis-py's, over one round trip. Raises RedisError."""
    if not commands:
        return []
    with client.pipeline(transaction=False) as pipe:
        pipe.response_callbacks = type(pipe.response_callbacks)({})  # the client shares its own
        for command in commands:
            pipe.execute_command(*command)  # type: ignore[no-untyped-call]
        return pipe.execute(raise_on_error)


def _pairs(flat: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _texts(flat: list[bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in _pairs(flat).items()}


def _int(score: bytes) -> int:
    return int(float(score))
