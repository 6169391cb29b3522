"""People who pause, park, resume, replay, requeue and drain, and what they may rely on.

They keep their own list of what is paused and who is drained, and compare each claim with it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.simulation.checker import Violation

QUEUE, SUPERVISOR = "replicaset", "supervisor"
"""Of all owners, and of all workers of a run."""


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

    def act(self, broker: Any, keys: list[str], workers: list[str]) -> None:
        """One of them does something."""
        key = self._random.choice(keys)
        scope = self._random.choice(_scopes_over(key))
        act = self._random.choice(("pause", "park", "resume", "resume", "replay", "requeue", "drain", "drain all"))
        self._count(act)
        match act:
            case "pause":
                self._pause(broker, scope, None)
            case "park":
                self._pause(broker, f"key {QUEUE}:{key}", self._random.choice((1, 50, 1_000, 8_000)))
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

    def end_all(self, broker: Any) -> None:
        """Nothing is paused without an end, or drained, any more. The other pauses are left to their ends."""
        for scope in [scope for scope, until_ms in self._paused.items() if until_ms is None]:
            self._resume(broker, scope)
        if self._drained:
            self._drain_all(broker, undrain=True)

    def _pause(self, broker: Any, scope: str, for_ms: int | None) -> None:
        broker.steer("pause", scope, "by=me", for_ms=for_ms)
        self._paused[scope] = None if for_ms is None else self._clock_ms() + for_ms
        self._kept = broker.pauses()

    def _resume(self, broker: Any, scope: str) -> None:
        broker.steer("resume", scope, "by=me")
        self._paused.pop(scope, None)
        self._kept = broker.pauses()

    def _drain_all(self, broker: Any, *, undrain: bool) -> None:
        leaving = broker.drain("undrain" if undrain else "drain", SUPERVISOR, "by=me")
        if leaving is not None:
            self._drained = not undrain
            self._leaving |= set(leaving)


def _scopes_over(key: str) -> tuple[str, ...]:
    """What a pause may be over that the key is in."""
    return "all", f"queue {QUEUE}", f"namespace {key.partition('/')[0]}", f"key {QUEUE}:{key}"
