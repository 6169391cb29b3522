"""Reads the fleet-wide figures of one shard from Redis, with plain commands that any of the ACL users may give.

Three round trips, whose cost grows only with the number of queues and resources. Names come from the registry, never
from Redis, so content of Redis cannot create labels. A key of a wrong type only leaves out its own figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis
from redis.exceptions import RedisError

from oarlock.broker import keys
from oarlock.broker.connection import server_facts
from oarlock.broker.looks.inspect import raw_answers
from oarlock.broker.looks.views import FRONT_MAX, backlog_keys, queued_keys
from oarlock.broker.pauses import Pause
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.controllers.registry import WATCHED, all_queues

KEYS_SAMPLED = 128
"""Of those with writes without an answer."""

COUNTS: dict[str, tuple[str, Callable[[keys.Keys, str], str]]] = {
    "workqueue_depth": ("XLEN", keys.Keys.stream),  # and the backlog
    "oarlock_keys_in_work": ("HLEN", keys.Keys.locks),
    "oarlock_keys_delayed": ("ZCARD", keys.Keys.delayed),
    "oarlock_keys_parked": ("ZCARD", keys.Keys.parked),
    "oarlock_keys_held": ("SCARD", keys.Keys.held),
    "oarlock_keys_crashing": ("HLEN", keys.Keys.crashes),
    "oarlock_keys_failing": ("HLEN", keys.Keys.failures),
    "oarlock_records_unanswered": ("HLEN", keys.Keys.unsettled),
}
"""Metric of a queue -> the command that counts it, and the key it is asked of."""

QueueFigures = dict[str, float | None]
"""Metric -> its value for one queue; None: it could not be read."""


@dataclass(slots=True)
class FleetFigures:
    """One look. ``phase`` "" where there is no epoch; ages in seconds by Redis's clock."""

    shard: str
    epoch: int
    intact: bool
    phase: str
    memory_bytes: int
    memory_max_bytes: int
    queues: dict[str, QueueFigures] = field(default_factory=dict)
    watermark_age_s: dict[str, float] = field(default_factory=dict)
    objects: dict[str, int] = field(default_factory=dict)
    registered: int | None = None
    idle: int | None = None
    history_bytes: int | None = None
    pauses: int | None = None
    budget: tuple[float, float] = 0.0, 0.0
    """Requests a second that the fleet may make, now and at most; 0: it has no API budget."""


class FleetReader:
    """``client`` has a short timeout of its own. Raises BrokerUnreachable."""

    def __init__(self, client: redis.Redis, shard: str = "0") -> None:
        self._client, self.shard, self._queues, self._resources = client, shard, all_queues(), tuple(WATCHED)

    def read(self) -> FleetFigures:
        """Look now."""
        number, time, memory, *told = self._ask(
            ("GET", keys.epoch(self.shard)),
            ("TIME",),
            ("INFO", "memory"),
            *(("INFO", section) for section in server_facts.LIFE),
        )
        epoch = _number(number) or 0
        k = keys.Keys(epoch, self.shard)
        used, server = _info(memory), {name: value for each in told for name, value in _info(each).items()}
        run = server_facts.life(server)
        now_ms = int(time[0]) * 1_000 + int(time[1]) // 1_000 if isinstance(time, list) else 0
        run_bootstrapped, phase, holders, idle, history, pauses, rates, weights, budget, marks, generations, *rest = (
            self._ask(
                ("GET", k.of("run")),
                ("GET", k.of("phase")),
                ("HLEN", k.of("holders")),
                ("ZCOUNT", k.of("waiters"), now_ms, "+inf"),
                ("GET", k.of("history_bytes")),
                ("HLEN", k.of("pauses")),
                ("HMGET", k.of("pauses"), *(f"rate {queue}" for queue in self._queues)),
                ("HMGET", k.of("pauses"), *(f"weight queue {queue}" for queue in self._queues)),
                ("HMGET", k.of("budget"), "rate", "most"),
                ("HMGET", k.of("watermark_at"), *self._resources),
                ("HMGET", k.of("generation"), *self._resources),
                *(command for queue in self._queues for command in _of_queue(k, queue)),
            )
        )
        intact = epoch > 0 and run != "" and _text(run_bootstrapped) == run
        found = FleetFigures(
            self.shard,
            epoch,
            intact,
            _text(phase) if epoch else "",
            int(used.get("used_memory", 0)),
            int(used.get("maxmemory", 0)),
        )
        if not epoch:
            return found
        found.registered, found.idle = _number(holders), _number(idle)
        found.history_bytes, found.pauses = _number(history or 0), _number(pauses)
        now_and_most = [each for each in map(_number, _listed(budget)) if each is not None]
        if len(now_and_most) == 2:
            found.budget = now_and_most[0] / 1_000, now_and_most[1] / 1_000
        width = len(rest) // len(self._queues)
        for at, queue in enumerate(self._queues):
            found.queues[queue] = _queue_figures(rest[at * width : (at + 1) * width], now_ms)
        for queue, text in zip(self._queues, _listed(rates), strict=False):
            rate = Pause.parse(f"rate {queue}", _text(text)).rate_per_s
            if rate is not None:
                found.queues[queue]["oarlock_rate_limit_turns"] = rate
        for queue, text in zip(self._queues, _listed(weights), strict=False):
            weight = Pause.parse(f"weight queue {queue}", _text(text)).weight
            if weight is not None:
                found.queues[queue]["oarlock_controller_weight"] = weight
        for resource, at_ms in zip(self._resources, _listed(marks), strict=False):
            if (since := _number(at_ms)) is not None:
                found.watermark_age_s[resource] = max(0, now_ms - since) / 1_000
        current = [
            (name, _text(each)) for name, each in zip(self._resources, _listed(generations), strict=False) if each
        ]
        counts = self._ask(*(("HLEN", k.objects(name, generation)) for name, generation in current))
        for (name, _), count in zip(current, counts, strict=True):
            if isinstance(count, int):
                found.objects[name] = count
        return found

    def _ask(self, *commands: tuple[Any, ...]) -> list[Any]:
        """Answers as the protocol gives them; an error is the answer of its command alone."""
        try:
            return raw_answers(self._client, commands, raise_on_error=False)
        except RedisError as error:
            raise BrokerUnreachable(f"figures: {error}") from None


def _of_queue(k: keys.Keys, queue: str) -> list[tuple[Any, ...]]:
    return [
        ("XINFO", "STREAM", k.stream(queue)),
        ("XRANGE", k.stream(queue), "-", "+", "COUNT", FRONT_MAX),
        ("ZCARD", k.backlog(queue)),
        ("GET", k.passed(queue)),
        ("ZRANGE", k.backlog(queue), 0, 0, "WITHSCORES"),
        ("HRANDFIELD", k.unsettled(queue), KEYS_SAMPLED, "WITHVALUES"),
        *((command, key(k, queue)) for command, key in COUNTS.values()),
    ]


def _queue_figures(answers: Sequence[Any], now_ms: int) -> QueueFigures:
    info, front, behind, passed, next_up, sample, *counts = answers
    figures: QueueFigures = {name: _number(count) for name, count in zip(COUNTS, counts, strict=True)}
    waiting = _number(behind)
    figures["workqueue_depth"] = _sum(figures["workqueue_depth"], waiting)
    if isinstance(info, list):  # a key enters the stream or the backlog
        entered = _number(dict(zip(info[::2], info[1::2], strict=False)).get(b"entries-added"))
        figures["workqueue_adds_total"] = _sum(entered, waiting, _number(passed or 0))
    if isinstance(front, list) and isinstance(next_up, list):
        came = [*queued_keys(front).values(), *backlog_keys(next_up, now_ms).values()]
        figures["oarlock_oldest_queued_seconds"] = max(0, now_ms - min(came, default=now_ms)) / 1_000
    if isinstance(sample, list):
        since = [at for at in map(_number, sample[1::2]) if at is not None]
        figures["oarlock_record_age_seconds"] = max(0, now_ms - min(since)) / 1_000 if since else 0.0
    return figures


def _sum(*counts: float | None) -> float | None:
    """None where one of them could not be read."""
    known = [each for each in counts if each is not None]
    return sum(known) if len(known) == len(counts) else None


def _listed(answer: Any) -> list[Any]:
    return answer if isinstance(answer, list) else []


def _text(answer: Any) -> str:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else ""


def _number(answer: Any) -> int | None:
    if isinstance(answer, int):
        return answer
    text = _text(answer)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _info(answer: Any) -> dict[str, str]:
    return server_facts.facts(answer) if isinstance(answer, bytes) else {}
