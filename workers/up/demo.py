"""The main job, shown: apply, wait until all is ready, then kill a worker in a burst and count what came of it.

A client like any other: it knows the running one by its state directory only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import orjson
import redis

from broker import epoch
from broker.connection import connect
from broker.keys import Keys
from cluster import config
from cluster.client import Client
from cluster.resources import REPLICASETS
from controllers.registry import CONTROLLERS
from workers.io_loop import IoLoop
from workers.up.applying import apply
from workers.up.checks import Item
from workers.up.history import History, pods_too_many
from workers.up.progress import Progress, await_settled
from workers.up.state_dir import StateDir
from workers.up.takeover import Takeover, kill_busy_worker

BURST_SETS = 3
BURST_LEAST = 100
"""The largest set grows by as much again, at least by this many pods; the others by as much again."""


class DidNotConverge(Exception):
    """Some sets were not ready in time. ``waiting``: their keys."""

    def __init__(self, waiting: Sequence[str], stage: str) -> None:
        super().__init__(f"{stage}: not ready in time: {', '.join(waiting)}")
        self.waiting = list(waiting)


@dataclass(slots=True)
class Summary:
    """What `oarlock run -o json` prints; see the command's help."""

    replicasets: int = 0
    pods: int = 0
    ready_s: float = 0.0
    takeover: Takeover | None = None
    scaled: dict[str, list[int]] = field(default_factory=dict)
    ready_again_s: float | None = None
    pods_after: int = 0
    too_many: dict[str, int] = field(default_factory=dict)
    events: int = 0
    counted: bool = True

    def as_json(self) -> dict[str, Any]:
        takeover = self.takeover
        chaos = None
        if self.scaled:
            chaos = {
                "scaled": self.scaled,
                "killed_worker": takeover.worker if takeover else None,
                "killed_pid": takeover.pid if takeover else None,
                "writes_in_flight": takeover.pending if takeover else None,
                "keys_held": [held.task for held in takeover.held] if takeover else [],
                "takeover_ms": takeover.claimed_ms if takeover else {},
                "takeover_max_ms": max(takeover.claimed_ms.values(), default=None) if takeover else None,
                "taken_over": takeover.complete if takeover else False,
                "ready_again_s": self.ready_again_s,
                "pods": self.pods_after,
            }
        return {
            "replicasets": self.replicasets,
            "pods": self.pods,
            "ready_s": self.ready_s,
            "pods_per_s": round(self.pods / self.ready_s, 1) if self.ready_s else None,
            "chaos": chaos,
            "pods_too_many": sum(self.too_many.values()) if self.counted else None,
            "pods_too_many_by_set": self.too_many,
            "events_counted": self.events,
        }


class Demo:
    """One showing. ``check`` raises when the running one has ended; ``show(title, keys)`` makes a progress display."""

    def __init__(self, state: StateDir, deadline_s: float, check: Callable[[], None], *, quiet: bool = False) -> None:
        self._state, self._deadline, self._check, self._quiet = state, deadline_s, check, quiet
        self._config = config.load(state.kubeconfig)
        self._io = IoLoop()
        self._client = self._io.run(self._open())
        self.history = History()
        self._watching = asyncio.run_coroutine_threadsafe(self.history.run(self._client), self._io.loop)
        self.summary = Summary()
        self.wanted: dict[str, int] = {}

    async def _open(self) -> Client:
        return Client(self._config, role="run")

    def close(self) -> None:
        self._watching.cancel()
        self._io.run(self._client.close())
        self._io.close()

    def apply(self, items: Sequence[Item]) -> None:
        """Apply the objects and wait until all sets among them are ready. Raises DidNotConverge, NotApplied."""
        if not self.history.started.wait(10):
            raise DidNotConverge([], "the API server did not answer a list of pods within 10 s")
        self.wanted = {
            f"{item.namespace}/{item.name}": replicas_of(item) for item in items if item.kind.name == REPLICASETS.kind
        }
        began = time.monotonic()
        self._io.run(apply(self._config, items))
        with self._progress("applied; waiting until all pods are ready") as progress:
            waiting = await_settled(self.history, self.wanted, self._deadline, progress.update, self._check)
        self.summary.ready_s = round(time.monotonic() - began, 2)
        self.summary.replicasets, self.summary.pods = len(self.wanted), self._pods()
        if waiting:
            raise DidNotConverge(waiting, "after applying")

    def kill_a_worker(self, say: Callable[[str], None]) -> None:
        """Scale up the largest sets, SIGKILL a worker that has writes in flight, wait for the end. As ``apply``."""
        growing = sorted(self.wanted, key=lambda key: -self.wanted[key])[:BURST_SETS]
        for at, key in enumerate(growing):
            before = self.wanted[key]
            self.wanted[key] = before + max(before, BURST_LEAST if at == 0 else 1)
            self.summary.scaled[key] = [before, self.wanted[key]]
        say("scaling " + ", ".join(f"{key} {a} -> {b}" for key, (a, b) in self.summary.scaled.items()))
        client = connect(self._state.read_redis_url())
        began = time.monotonic()
        scaling = asyncio.run_coroutine_threadsafe(self._scale(growing), self._io.loop)
        try:
            takeover = kill_busy_worker(
                client, self._keys(client), tuple(CONTROLLERS), self._workers(), f"replicaset:{growing[0]}"
            )
        finally:
            client.close()
            scaling.result(30)
        self.summary.takeover = takeover
        say(told(takeover))
        with self._progress("waiting until all pods are ready again") as progress:
            waiting = await_settled(self.history, self.wanted, self._deadline, progress.update, self._check)
        self.summary.ready_again_s = round(time.monotonic() - began, 2)
        self.summary.pods_after = self._pods()
        if waiting:
            raise DidNotConverge(waiting, "after the kill")

    def count(self) -> None:
        """Count from the history how many pods too many there ever were."""
        events = self.history.events()
        self.summary.too_many = pods_too_many(events)
        self.summary.events, self.summary.counted = len(events), self.history.complete

    def _pods(self) -> int:
        return sum(self.history.active(seen.uid) for seen in self.history.sets().values())

    def _progress(self, title: str) -> AbstractContextManager[Progress]:
        return Progress(self.history, list(self.wanted), title, quiet=self._quiet)

    def _workers(self) -> Mapping[str, int]:
        return {each.rq_worker: each.pid for each in self._state.read_processes() if each.rq_worker}

    def _keys(self, client: redis.Redis) -> Keys:
        return Keys(epoch.current(client).epoch)

    async def _scale(self, keys: Sequence[str]) -> None:
        async def one(key: str) -> None:
            namespace, _, name = key.partition("/")
            body = orjson.dumps({"spec": {"replicas": self.wanted[key]}})
            answer = await self._client.patch(REPLICASETS, namespace, name, body, subresource="scale")
            if not answer.ok:
                raise DidNotConverge([key], f"could not be scaled: {answer.message}")

        await asyncio.gather(*(one(key) for key in keys))


def replicas_of(item: Item) -> int:
    """What a ReplicaSet asks for; the server's default where it does not say."""
    replicas = item.obj["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def told(takeover: Takeover | None) -> str:
    """The kill in a sentence or two."""
    if takeover is None:
        return "no worker was caught with writes in flight: nothing was killed"
    keys = ", ".join(held.task.partition(":")[2] for held in takeover.held)
    text = (
        f"SIGKILL to worker {takeover.worker} (pid {takeover.pid}), which held {keys}"
        f" with {takeover.pending} writes not yet answered"
    )
    if not takeover.complete:
        return text + "; not all its keys were claimed again in time"
    times = ", ".join(
        f"{held.task.partition(':')[2]} after {takeover.claimed_ms[held.task]:g} ms" for held in takeover.held
    )
    return f"{text}\ntaken over by {', '.join(sorted(set(takeover.new_holders.values())))}: {times}"
