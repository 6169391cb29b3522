"""Rollouts beside upstream: Deployments given another template, until all their pods are of it and available.

A rollout goes on only as its pods become available. So the client makes every pod ready as soon as it sees it, for both
sides alike. The pods are on no node, therefore the API server takes a deleted one away at once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, aclosing
from functools import partial
from typing import Any

import orjson

from benchmarks.processes import CpuMeter
from benchmarks.report import Unfit, say
from benchmarks.tree import deployment
from benchmarks.versus_kcm_place import Place, await_true
from benchmarks.versus_kcm_run import REST_S, Run, Shape, side_of, tell, warm
from benchmarks.versus_kcm_server import ServerMeter
from benchmarks.versus_kcm_sides import Fleet, peak_kb
from benchmarks.watching import follow
from oarlock.broker import epoch
from oarlock.broker.keys import Keys
from oarlock.cluster.resources import DEPLOYMENTS, PODS, Resource
from oarlock.controllers.registry import all_queues

SETTLED_S = 3.0
"""From the first rollout to the second: statuses and events that are put off have come by then."""
NEW_IMAGE = "example/web:1.28.0"


class ReadyPods:
    """Makes every pod ready that is created from now on, and tells which Deployments are rolled out. A context manager.

    ``created``: when each pod became visible. ``living``: UIDs of the pods there are, but for those from before.
    ``done``: by name of a Deployment, its generation and when its status told that all its pods are of the template,
    available, and none is left over.
    """

    def __init__(self, place: Place) -> None:
        self.created: list[float] = []
        self.living: set[str] = set()
        self.done: dict[str, tuple[int, float]] = {}
        self._place = place
        self._under_way: set[asyncio.Task[None]] = set()
        self._errors: list[str] = []
        self._watching = [
            asyncio.run_coroutine_threadsafe(self._watch(resource, place.position(resource)), place.io.loop)
            for resource in (PODS, DEPLOYMENTS)
        ]

    def __enter__(self) -> ReadyPods:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._watching:
            each.cancel()

    def check(self) -> None:
        """Raises Unfit where a watch could not go on, or a pod not be made ready."""
        for each in self._watching:
            if each.done():
                each.result()
        if self._errors:
            raise Unfit(f"could not make a pod ready: {self._errors[0]}")

    def rolled_out(self, generation: int) -> int:
        """How many Deployments are through with this generation."""
        return sum(1 for of, _ in self.done.values() if of >= generation)

    async def _watch(self, resource: Resource, position: str) -> None:
        note = self._pod if resource == PODS else self._deployment
        async with aclosing(follow(self._place.client, resource, position)) as events:
            async for event in events:
                note(event.type, orjson.loads(event.object))

    def _pod(self, what: str, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        if what == "ADDED":
            self.created.append(time.monotonic())
            self.living.add(meta["uid"])
            task = asyncio.get_running_loop().create_task(self._make_ready(meta["namespace"], meta["name"]))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        elif what == "DELETED":
            self.living.discard(meta["uid"])

    async def _make_ready(self, namespace: str, name: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": at}
        body = orjson.dumps({"status": {"phase": "Running", "conditions": [ready]}})
        answer = await self._place.client.patch(PODS, namespace, name, body, subresource="status")
        if not answer.ok and answer.code != 404:  # it may have been deleted meanwhile
            self._errors.append(f"{answer.code} {answer.message}")

    def _deployment(self, what: str, found: dict[str, Any]) -> None:
        meta, status, wanted = found["metadata"], found.get("status", {}), found["spec"]["replicas"]
        counts = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
        is_done = counts == {wanted} and status.get("observedGeneration", 0) >= meta["generation"]
        if is_done and self.done.get(meta["name"], (0, 0.0))[0] < meta["generation"]:
            self.done[meta["name"]] = (meta["generation"], time.monotonic())


def roll(place: Place, namespace: str, names: list[str]) -> None:
    """Give all these Deployments another image, ``IN_FLIGHT`` at once."""
    containers = {name: deployment(name, 0, NEW_IMAGE)["spec"]["template"]["spec"]["containers"] for name in names}
    changes = {name: {"spec": {"template": {"spec": {"containers": each}}}} for name, each in containers.items()}
    place.patch(DEPLOYMENTS, namespace, changes)


class FleetMeter:
    """What a rollout takes inside a fleet: turns by queue, scripts called in Redis. A context manager."""

    def __init__(self, fleet: Fleet) -> None:
        self._redis = fleet.admin()
        self._keys = Keys(epoch.current(self._redis).epoch)
        self.start()

    def __enter__(self) -> FleetMeter:
        return self

    def __exit__(self, *_: object) -> None:
        self._redis.close()

    def start(self) -> None:
        """Count from now on."""
        self._turns, self._calls = self._turns_so_far(), self._calls_so_far()

    def _turns_so_far(self) -> Counter[str]:
        told = Counter[str]()
        for queue in all_queues():
            stream = self._keys.stream(queue)
            if self._redis.exists(stream):
                of_stream: Any = self._redis.xinfo_stream(stream)
                told[queue] = int(of_stream["entries-added"]) + int(self._redis.get(self._keys.passed(queue)) or 0)
        return told

    def _calls_so_far(self) -> int:
        told: Any = self._redis.info("commandstats")
        return sum(int(stats["calls"]) for name, stats in told.items() if name.startswith("cmdstat_evalsha"))

    def used_memory(self) -> int:
        """Bytes of Redis's own count."""
        return int(self._redis.info("memory")["used_memory"])

    def spent(self) -> Mapping[str, int]:
        """Since the start: "NAME turns" of each queue that had any, "scripts called"."""
        turns = {f"{queue} turns": count for queue, count in (self._turns_so_far() - self._turns).items()}
        return {**turns, "scripts called": self._calls_so_far() - self._calls}


def measure_rollout(place: Place, side: str, shape: Shape, options: argparse.Namespace, number: int) -> Run:
    """Start one side, have it roll Deployments out, then to another template, and end it; the latter is timed.

    Raises Unfit where it made more pods than are of the new template.
    """
    namespace = place.new_namespace()
    with ExitStack() as ending:
        ending.callback(place.clear, namespace)
        running = ending.enter_context(side_of(place, side, shape, options))
        warm(place, namespace, shape.kind)
        roles, objects = running.roles(), shape.objects()
        names = [each["metadata"]["name"] for each in objects]
        fleet = ending.enter_context(FleetMeter(running)) if isinstance(running, Fleet) else None
        memory = fleet.used_memory() if fleet else 0
        pods = ending.enter_context(ReadyPods(place))

        def rolled_out(generation: int) -> bool:
            pods.check()
            return pods.rolled_out(generation) >= shape.owners and len(pods.living) == shape.total

        place.create(shape.kind, namespace, objects)
        await_true(partial(rolled_out, 1), f"{side}: {shape.title}, the first template", options.limit_s)
        time.sleep(SETTLED_S)
        before = len(pods.created)
        server = ServerMeter(place.pids(), place.metrics)
        if fleet:
            fleet.start()
        meter, began_s = CpuMeter(roles), time.monotonic()
        roll(place, namespace, names)
        await_true(partial(rolled_out, 2), f"{side}: {shape.title}", options.limit_s)
        around = server.spent()
        time.sleep(REST_S)
        spent = meter.spent_ns()
        if (made := len(pods.created) - before) != shape.total:
            raise Unfit(f"{side}: {made} pods were created for {shape.total} of the new template")
        run = Run(
            side,
            shape,
            max(pods.created) - began_s,
            max(at for _, at in pods.done.values()) - began_s,
            {role: spent_ns / 1e6 for role, spent_ns in spent.items()},
            sum(peak_kb(pid) for _, pid in roles) / 1024,
            os.getloadavg()[0],
            around,
            fleet.spent() if fleet else {},
            fleet.used_memory() - memory if fleet else 0,
        )
    tell(run, number)
    if run.inside:
        told = ", ".join(f"{count:,} {what}" for what, count in run.inside.items())
        say(f"    inside: {told}; {run.redis_bytes / shape.total:.0f} bytes of Redis a pod")
    return run
