"""What `oarlock run` shows: apply, wait until all is ready, kill a worker in a burst, roll DaemonSets to another
revision and back while another worker is killed, roll a Deployment and have a bad image of it stopped, and count pods
too many, pods too few and nodes down.

It is a client like any other: it knows the running cluster by its state directory only.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import orjson

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.keys import Keys
from oarlock.cluster.access import config
from oarlock.cluster.client import Client
from oarlock.controllers.flavour import DAEMONSET
from oarlock.controllers.registry import CONTROLLERS, QUEUE_OF_KIND, WATCHED, all_queues
from oarlock.sandbox.demo import deployments, rollout
from oarlock.sandbox.demo.history import History
from oarlock.sandbox.demo.progress import Goal, Progress, await_settled
from oarlock.sandbox.demo.seen import ROLLING_UPDATE, DaemonsSeen, DeploymentSeen, SetSeen
from oarlock.sandbox.demo.summary import Rolled, Summary, told
from oarlock.sandbox.demo.surplus import duplicate_daemons, most_and_fewest, most_nodes_down, pods_too_many
from oarlock.sandbox.demo.takeover import Takeover, kill_busy_worker
from oarlock.sandbox.manifests.applying import NotApplied, apply
from oarlock.sandbox.manifests.checks import Item
from oarlock.sandbox.up.state_dir import StateDir
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.kinds import cluster_resource

BURST_SETS = 3
BURST_LEAST = 100
"""The largest set grows by as much again, at least by this many pods; the others by as much again."""
BURST_PENDING, ROLL_PENDING = 16, 1
"""A worker is killed only with at least so many writes in flight."""
T = TypeVar("T")


class DidNotConverge(Exception):
    """Some owners were not ready in time. ``waiting``: their titles."""

    def __init__(self, waiting: Sequence[str], stage: str) -> None:
        super().__init__(f"{stage}: not ready in time: {', '.join(waiting)}")
        self.waiting = list(waiting)


class Demo:
    """One demonstration. ``check`` raises when the running cluster has ended; ``quiet``: no progress is shown."""

    def __init__(self, state: StateDir, deadline_s: float, check: Callable[[], None], *, quiet: bool = False) -> None:
        self._state, self._deadline, self._check, self._quiet = state, deadline_s, check, quiet
        self._config = config.load(state.kubeconfig)
        self._io = IoLoop()
        self.client = self.run(self._open())
        self.history = History()
        self._watching = asyncio.run_coroutine_threadsafe(self.history.run(self.client), self._io.loop)
        self.summary = Summary()
        self.goals: dict[str, Goal] = {}

    async def _open(self) -> Client:
        return Client(self._config, role="run")

    def run(self, request: Coroutine[Any, Any, T]) -> T:
        """The result of what is done with the client."""
        return self._io.run(request)

    def close(self) -> None:
        self._watching.cancel()
        self.run(self.client.close())
        self._io.close()

    def apply(self, items: Sequence[Item]) -> None:
        """Apply the objects and wait until all owners among them are ready. Raises DidNotConverge, NotApplied."""
        if not self.history.started.wait(10):
            raise DidNotConverge([], "the API server did not answer a list of pods within 10 s")
        owners = [item for item in items if item.kind.name in QUEUE_OF_KIND]
        self.goals = {item.title: goal_of(item) for item in owners}
        self.summary.owners = dict(Counter(item.kind.name for item in owners))
        began = time.monotonic()
        self.run(apply(self._config, items))
        self.settle("applied; waiting until all pods are ready", "after applying")
        self.summary.ready_s, self.summary.pods = _since(began), self._pods()

    def kill_a_worker(self, say: Callable[[str], None]) -> None:
        """Scale up the largest sets, SIGKILL a worker that has writes in flight, wait for the end. As ``apply``."""
        owners = self.history.owners()
        sets = [seen for title in self.goals if isinstance(seen := owners[title], SetSeen)]
        growing = sorted(sets, key=lambda seen: -seen.wanted)[:BURST_SETS]
        if not growing:
            return
        for at, seen in enumerate(growing):
            goal = seen.wanted + max(seen.wanted, BURST_LEAST if at == 0 else 1)
            self.goals[seen.title] = Goal(goal)
            self.summary.scaled[seen.title] = [seen.wanted, goal]
        by_key = {seen.key: self.summary.scaled[seen.title] for seen in growing}
        say("scaling " + ", ".join(f"{key} {a} -> {b}" for key, (a, b) in by_key.items()))
        began = time.monotonic()
        task = f"{QUEUE_OF_KIND[growing[0].kind]}:{growing[0].key}"
        self.summary.takeover, _ = self._kill_while(self._scale(growing), task, BURST_PENDING)
        say(told(self.summary.takeover))
        self.settle("waiting until all pods are ready again", "after the kill")
        self.summary.ready_again_s, self.summary.pods_after = _since(began), self._pods()

    def roll(self, say: Callable[[str], None], *, kill: bool) -> None:
        """Roll DaemonSets to another revision, on demand killing a worker meanwhile, and back. As ``apply``."""
        chosen = self._to_roll()
        if not chosen:
            return
        say(f"rolling {_listed(chosen)} to another revision, as kubectl rollout restart does")
        began = time.monotonic()
        changes = self._change(chosen, lambda seen: rollout.restart(self.client, seen.key))
        if kill:
            self.summary.roll_killed = True
            task = f"{QUEUE_OF_KIND[chosen[0].kind]}:{chosen[0].key}"
            self.summary.roll_takeover, revisions = self._kill_while(changes, task, ROLL_PENDING)
            say(told(self.summary.roll_takeover))
        else:
            revisions = self.run(changes)
        self.summary.rolled = [
            Rolled(seen.title, seen.uid, seen.wanted, seen.down_allowed, seen.surge_nodes, seen.min_ready_s, rv)
            for seen, rv in zip(chosen, revisions, strict=True)
        ]
        self.settle("waiting until every pod is of the new revision", "rolled to another revision")
        self.summary.roll_s = _since(began)
        say(f"and back, as kubectl rollout undo does: {_listed(chosen)}")
        began = time.monotonic()
        self.run(self._change(chosen, lambda seen: rollout.undo(self.client, seen.key, seen.uid)))
        self.settle("waiting until every pod is of the old revision again", "rolled back")
        self.summary.back_s = _since(began)
        for seen, rolled in zip(chosen, self.summary.rolled, strict=True):
            rolled.revisions = self.run(rollout.revision_numbers(self.client, seen.key, seen.uid))

    def roll_out(self, say: Callable[[str], None]) -> None:
        """Roll the largest Deployment, have a bad image stopped by its deadline, and go back. As ``apply``."""
        owners = self.history.owners()
        found = [seen for title in self.goals if isinstance(seen := owners[title], DeploymentSeen)]
        rolling = [seen for seen in found if seen.surge or seen.unavailable]
        if rolling:
            self.summary.rolled_out = deployments.roll(self, max(rolling, key=lambda seen: seen.wanted), say)

    def settle(self, title: str, stage: str) -> None:
        """Wait until all goals are reached. ``title``: what is shown meanwhile. Raises DidNotConverge."""
        with self._progress(title) as progress:
            waiting = await_settled(self.history, self.goals, self._deadline, progress.update, self._check)
        if waiting:
            raise DidNotConverge(waiting, stage)

    def count(self) -> None:
        """Count from the history the pods that were too many, and the nodes that were down."""
        events = self.history.events()
        self.summary.too_many, self.summary.duplicates = pods_too_many(events), duplicate_daemons(events)
        for rolled in self.summary.rolled:
            rolled.most_down = most_nodes_down(events, rolled.uid, rolled.from_rv, rolled.min_ready_s)
        if (each := self.summary.rolled_out) is not None:
            each.most, each.fewest = most_and_fewest(events, each.uid, each.from_rv, each.min_ready_s)
        self.summary.events, self.summary.counted = len(events), self.history.complete

    # -- inside

    def _to_roll(self) -> list[DaemonsSeen]:
        """At most one that may take nodes down, and one that surges; each on as many nodes as possible."""
        owners = self.history.owners()
        daemons = [seen for title in self.goals if isinstance(seen := owners[title], DaemonsSeen) and seen.wanted]
        rolling = sorted((each for each in daemons if each.strategy == ROLLING_UPDATE), key=lambda each: -each.wanted)
        kinds = ([each for each in rolling if each.surges is surges] for surges in (False, True))
        return [each for some in kinds for each in some[:1]]

    async def _change(
        self, chosen: Sequence[DaemonsSeen], change: Callable[[DaemonsSeen], Coroutine[Any, Any, tuple[int, int]]]
    ) -> list[int]:
        """Change each; the next look waits for that generation. Returns the revisions at which they were changed."""
        done = await asyncio.gather(*(change(seen) for seen in chosen))
        for seen, (_, generation) in zip(chosen, done, strict=True):
            self.goals[seen.title] = Goal(None, generation)
        return [rv for rv, _ in done]

    def _kill_while(self, begin: Coroutine[Any, Any, T], task: str, least_pending: int) -> tuple[Takeover | None, T]:
        """SIGKILL the worker that has so many writes of a task in flight, once ``begin`` has set it to work."""
        client = connect(self._state.read_redis_url())
        keys = Keys(epoch.current(client).epoch)
        beginning = asyncio.run_coroutine_threadsafe(begin, self._io.loop)
        try:
            takeover = kill_busy_worker(client, keys, all_queues(), self._workers(), task, least_pending=least_pending)
        finally:
            client.close()
            done = beginning.result(30)
        return takeover, done

    def _pods(self) -> int:
        return sum(self.history.active(seen.uid) for seen in self.history.owners().values())

    def _progress(self, title: str) -> AbstractContextManager[Progress]:
        return Progress(self.history, list(self.goals), title, quiet=self._quiet)

    def _workers(self) -> Mapping[str, int]:
        return {each.rq_worker: each.pid for each in self._state.read_processes() if each.rq_worker}

    async def _scale(self, sets: Sequence[SetSeen]) -> None:
        async def one(seen: SetSeen) -> None:
            namespace, _, name = seen.key.partition("/")
            resource = cluster_resource(WATCHED[CONTROLLERS[QUEUE_OF_KIND[seen.kind]].resource])
            body = orjson.dumps({"spec": {"replicas": self.goals[seen.title].replicas}})
            answer = await self.client.patch(resource, namespace, name, body, subresource="scale")
            if not answer.ok:
                raise NotApplied(f"{seen.title} to be scaled: {answer.message}")

        await asyncio.gather(*(one(seen) for seen in sets))


def goal_of(item: Item) -> Goal:
    """What an object asks for; the server's default where it does not say."""
    if item.kind.name == DAEMONSET.kind:
        return Goal()
    replicas = item.obj["spec"].get("replicas")
    return Goal(1 if replicas is None else int(replicas))


def _listed(chosen: Sequence[DaemonsSeen]) -> str:
    return ", ".join(
        f"{each.key} ({each.wanted} nodes, "
        + (f"{each.surge_nodes} with a second pod" if each.surges else f"{each.down_allowed} down")
        + " at a time)"
        for each in chosen
    )


def _since(began: float) -> float:
    return round(time.monotonic() - began, 2)
