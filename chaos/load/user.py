"""A user of the cluster, as all parts of the load need one: its requests, its view, and a count of what was done."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson

from oarlock.chaos.judge.evidence.sightings import PodSeen
from oarlock.chaos.load.live import Live
from oarlock.cluster import resources
from oarlock.cluster.client import Client, PatchType
from oarlock.cluster.resources import Resource

GONE_LIMIT_S = 15.0


class User:
    """``done``: how often what was done; what the server refused does not count.

    ``pace``: how much slower than usual.
    """

    def __init__(self, client: Client, live: Live, pace: float = 1.0) -> None:
        self.client, self.live, self.pace = client, live, pace
        self.done: Counter[str] = Counter()

    async def create(self, resource: Resource, namespace: str, body: bytes, what: str = "") -> bool:
        """Whether it was made."""
        answer = await self.client.create(resource, namespace, body)
        return self._tally(answer.ok, what)

    async def merge(self, resource: Resource, namespace: str, name: str, change: dict[str, Any], what: str) -> bool:
        """A merge patch. Whether it was taken."""
        answer = await self.client.patch(resource, namespace, name, orjson.dumps(change), PatchType.MERGE)
        return self._tally(answer.ok, what)

    async def merge_pod(self, pod: PodSeen, metadata: dict[str, Any], what: str) -> bool:
        """A merge patch of this very pod."""
        change = {"metadata": {"uid": pod.uid, **metadata}}
        return await self.merge(resources.PODS, pod.namespace, pod.name, change, what)

    async def delete_pod(self, pod: PodSeen, what: str, grace_s: int | None = None) -> bool:
        answer = await self.client.delete(resources.PODS, pod.namespace, pod.name, uid=pod.uid, grace_s=grace_s)
        return self._tally(answer.ok, what)

    async def delete_owner(self, resource: Resource, namespace: str, name: str, uid: str, cascade: str) -> bool:
        answer = await self.client.delete(resource, namespace, name, uid=uid, propagation=cascade)
        return self._tally(answer.ok, f"deleted ({cascade})")

    async def make_namespace(self, name: str) -> None:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.client.create(resources.NAMESPACES, "", orjson.dumps(made))

    def some_pods(self, owner_uid: str, chance: random.Random, most: int) -> list[PodSeen]:
        """A few of its active pods."""
        pods = [pod for pod in self.live.pods_of(owner_uid) if pod.active]
        return chance.sample(pods, min(len(pods), chance.randint(1, most)))

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for something to be seen, for a while."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + GONE_LIMIT_S
        while not true() and loop.time() < until_s:
            await asyncio.sleep(0.02)

    def _tally(self, ok: bool, what: str) -> bool:
        if what:
            self.done[what] += ok
        return ok
