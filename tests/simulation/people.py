"""People who pause, park, limit, weigh, resume, replay, requeue and drain, and what they may rely on.

They keep their own list of what is paused, limited and drained, and compare each claim with it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.checker import Violation

QUEUE, SUPERVISOR = "replicaset", "supervisor"
"""Of all owners, and of all workers of a run."""
WITH_A_NUMBER = ("limit", "limit", "weigh")


@dataclass
class _Limit:
    """A limit, and when turns began under it since it was set."""

    rate: float
    at_ms: list[int] = field(default_factory=list)

    def begins(self, now_ms: int) -> None:
        """Raises Violation where any stretch of time brought more than a second's worth and what the rate allows."""
        if self.at_ms and now_ms < self.at_ms[-1]:
            self.at_ms.clear()
        self.at_ms.append(now_ms)
        for at, since_ms in enumerate(self.at_ms):
            began, most = len(self.at_ms) - at, max(1, self.rate) + self.rate * (now_ms - since_ms) / 1_000 + 0.01
            if began > most:
                raise Violation(f"{began} turns began in {now_ms - since_ms} ms under a limit of {self.rate} a second")


class People:
    """``count`` is told of each act. ``clock_ms``: the scripts' clock."""

    def __init__(self, chance: random.Random, clock_ms: Callable[[], int], count: Callable[[str], None]) -> None:
        self._random, self._clock_ms, self._count = chance, clock_ms, count
        self._paused: dict[str, int | None] = {}
        """Scope -> when it ends by itself, if it does."""
        self._kept: dict[str, str] = {}
        """As the Lease has them: scope -> text."""
        self._leaving: set[str] = set()
        self._drained = False
        self._limits: dict[str, _Limit] = {}

    def act(self, broker: Any, keys: list[str], workers: list[str]) -> None:
        """One of them does something."""
        key = self._random.choice(keys)
        scope = self._random.choice(_scopes_over(key))
        act = self._random.choice(
            ("pause", "park", "resume", "resume", "replay", "requeue", "drain", "drain all", *WITH_A_NUMBER)
        )
        self._count(act)
        match act:
            case "pause":
                self._pause(broker, scope, None)
            case "park":
                self._pause(broker, f"key {QUEUE}:{key}", self._random.choice((1, 50, 1_000, 8_000)))
            case "limit":
                self._limit(broker, key.partition("/")[0], self._random.choice((0.02, 0.5, 20)))
            case "weigh":
                weight = self._random.choice((0.1, 0.7, 3, 100))
                broker.steer("set", f"weight namespace {key.partition('/')[0]}", f"by=me weight={weight}")
                self._kept = broker.pauses().texts
            case "resume" if self._limits and self._random.random() < 0.2:
                self._end_limits(broker)
            case "resume":
                self._resume(broker, self._random.choice(sorted(self._paused) or [scope]))
            case "replay":
                if self._paused.get(f"key {QUEUE}:{key}") is not None:
                    self._resume(broker, f"key {QUEUE}:{key}")
                broker.add(QUEUE, [key], unpark=True)
                broker.forget(QUEUE, key)
            case "requeue":
                broker.add(QUEUE, keys, unpark=True)
            case "drain" if workers:
                name = self._random.choice(workers)
                if broker.drain("drain", name, "by=me") is not None:
                    self._leaving.add(name)
            case "drain all":
                self._drain_all(broker, undrain=self._drained)

    def claimed(self, holder: str, tasks: list[str]) -> None:
        """A worker was handed keys. Raises Violation where people have asked for the contrary."""
        if holder in self._leaving:
            raise Violation(f"{holder} is to leave and was handed {tasks}")
        for task in tasks:
            for scope in _scopes_over(task.partition(":")[2]):
                until_ms = self._paused.get(scope, 0)
                if until_ms is None or until_ms > self._clock_ms():
                    raise Violation(f"a turn of {task} begins, but {scope} is paused")
            limit = self._limits.get(task.partition(":")[2].partition("/")[0])
            if limit is not None:
                limit.begins(self._clock_ms())

    def left(self, broker: Any, worker: str) -> None:
        """A worker has left because it was drained: it held no key. Raises Violation."""
        self._count("left")
        if worker not in self._leaving:
            raise Violation(f"{worker} has left, and nobody asked for that")
        if tasks := broker.release(worker):
            raise Violation(f"I3: {worker} has left and still held {tasks}")

    def hired(self, worker: str) -> None:
        """A worker was allowed to begin. Raises Violation."""
        if self._drained:
            raise Violation(f"{worker} begins, but its supervisor is drained")

    def restore(self, broker: Any) -> None:
        """The data were lost. A new epoch begins with the pauses of the Lease, and without drains."""
        self._leaving, self._drained = set(), False
        for scope, text in self._kept.items():
            broker.steer("restore", scope, text)
        for limit in self._limits.values():
            limit.at_ms.clear()

    def end_all(self, broker: Any) -> None:
        """Nothing is paused without an end, or drained, any more. The other pauses are left to their ends."""
        for scope in [scope for scope, until_ms in self._paused.items() if until_ms is None]:
            self._resume(broker, scope)
        if self._drained:
            self._drain_all(broker, undrain=True)
        self._end_limits(broker)

    def _limit(self, broker: Any, namespace: str, rate: float) -> None:
        broker.steer("limit", f"rate namespace {namespace}", f"by=me rate={rate}")
        self._limits[namespace] = _Limit(rate)
        self._kept = broker.pauses().texts

    def _end_limits(self, broker: Any) -> None:
        for namespace in self._limits:
            broker.steer("resume", f"rate namespace {namespace}", "by=me")
        self._limits.clear()
        self._kept = broker.pauses().texts

    def _pause(self, broker: Any, scope: str, for_ms: int | None) -> None:
        broker.steer("pause", scope, "by=me", for_ms=for_ms)
        self._paused[scope] = None if for_ms is None else self._clock_ms() + for_ms
        self._kept = broker.pauses().texts

    def _resume(self, broker: Any, scope: str) -> None:
        broker.steer("resume", scope, "by=me")
        self._paused.pop(scope, None)
        self._kept = broker.pauses().texts

    def _drain_all(self, broker: Any, *, undrain: bool) -> None:
        leaving = broker.drain("undrain" if undrain else "drain", SUPERVISOR, "by=me")
        if leaving is not None:
            self._drained = not undrain
            self._leaving |= set(leaving)


def _scopes_over(key: str) -> tuple[str, ...]:
    """What a pause may be over that the key is in."""
    return "all", f"queue {QUEUE}", f"namespace {key.partition('/')[0]}", f"key {QUEUE}:{key}"
