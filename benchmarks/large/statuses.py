"""What the owners of a large cluster say in their statuses, and when they said it first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from benchmarks.tree import Tree
from benchmarks.watching import follow
from oarlock.cluster.resources import Resource


@dataclass(slots=True)
class Told:
    """Of one owner: when it was first seen, and when its status first told of a pod; seconds of a clock that never goes
    back. ``pods``: how many its status tells of now.
    """

    uid: str
    seen_s: float
    first_s: float | None = None
    pods: int = 0
    settled: bool = False


class Status(NamedTuple):
    """Of an owner's JSON: name, uid, the pods that its status tells of, whether all that it asks for is available."""

    name: str
    uid: str
    pods: int
    settled: bool

    @classmethod
    def parse(cls, raw: bytes) -> Status:
        obj: dict[str, Any] = orjson.loads(raw)
        meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
        if obj["kind"] == "DaemonSet":
            wanted = status.get("desiredNumberScheduled", 0)
            pods, available = status.get("currentNumberScheduled", 0), status.get("numberAvailable", 0)
            whole = wanted > 0
        else:
            wanted, whole = spec["replicas"], True
            pods, available = status.get("replicas", 0), status.get("availableReplicas", 0)
        fresh = status.get("observedGeneration", 0) >= meta["generation"]
        return cls(meta["name"], meta["uid"], pods, whole and fresh and pods == available == wanted)


class Statuses:
    """Of the owners of one resource with these names, from now on: watched while the tree's loop runs."""

    def __init__(self, tree: Tree, resource: Resource, names: Iterable[str]) -> None:
        self.owners: dict[str, Told] = {}
        self._waiting = set(names)
        self._task: Future[None] = asyncio.run_coroutine_threadsafe(
            self._watch(tree, resource, tree.position(resource)), tree.io.loop
        )

    @property
    def unsettled(self) -> int:
        """Raises what ended the watch."""
        if self._task.done():
            self._task.result()
        return len(self._waiting)

    @property
    def pods(self) -> int:
        """That the statuses tell of."""
        return sum(each.pods for each in list(self.owners.values()))

    def stop(self) -> None:
        self._task.cancel()

    async def _watch(self, tree: Tree, resource: Resource, position: str) -> None:
        names = frozenset(self._waiting)
        async with aclosing(follow(tree.client, resource, position)) as events:
            async for event in events:
                status, now_s = Status.parse(event.object), time.monotonic()
                if status.name not in names:
                    continue
                told = self.owners.setdefault(status.name, Told(status.uid, now_s))
                told.pods, told.settled = status.pods, status.settled
                if told.first_s is None and status.pods:
                    told.first_s = now_s
                (self._waiting.discard if status.settled else self._waiting.add)(status.name)
