"""What a side's API shows of one scenario, kept up to date by watches.

A scenario is a namespace and the nodes labelled with its name.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from oarlock.cluster.client import Client
from oarlock.cluster.event_correlator import COMBINED_PREFIX
from oarlock.cluster.resources import (
    CONTROLLERREVISIONS,
    DAEMONSETS,
    EVENTS,
    NODES,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    Resource,
)
from oarlock.sandbox.reflector import Reflector
from tests.differential.naming import Naming

Obj = dict[str, Any]
SCENARIO = "differential.scenario"
"""Label of nodes: whose they are."""
DEPLOYMENTS = Resource("apps/v1", "deployments", "Deployment")
QUOTAS = Resource("v1", "resourcequotas", "ResourceQuota")
OWNERS = (DEPLOYMENTS, REPLICASETS, REPLICATIONCONTROLLERS, DAEMONSETS)
REFUSED = "Warning FailedCreate"
"""Type and reason of the event about a refused create."""
WATCHED = (NODES, PODS, *OWNERS, CONTROLLERREVISIONS, EVENTS, QUOTAS)


class Scene:
    """The objects of one scenario by kind and name. `touched_s`: when one of them last changed (time.monotonic).
    `told`: uid of what events are about -> (type and reason, message) -> how often that was told. `naming`: what stands
    for the names of a Deployment's ReplicaSets."""

    def __init__(self) -> None:
        self.told: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self.objects: dict[str, dict[str, Obj]] = {resource.kind: {} for resource in WATCHED}
        self.naming = Naming()
        self.touched_s = 0.0

    def put(self, kind: str, obj: Obj) -> None:
        """An object, new or changed."""
        if kind == "ReplicaSet":
            self.naming.learn(obj)
        self.objects[kind][obj["metadata"]["name"]] = obj

    def all(self, kind: str) -> list[Obj]:
        """In the order of creation, then of names."""
        return sorted(self.objects[kind].values(), key=_age)

    def owners(self) -> Iterator[Obj]:
        for resource in OWNERS:
            for owner in self.all(resource.kind):
                yield {**owner, "kind": resource.kind}

    def get(self, kind: str, name: str) -> Obj | None:
        return self.objects[kind].get(name)

    def hear(self, event: Obj, before: Obj | None) -> None:
        """An event, new or counted up. One that stands for many similar ones bears the message of the last."""
        more = (event.get("count") or 1) - ((before or {}).get("count") or 0)
        message = event["message"].removeprefix(COMBINED_PREFIX)
        self.told[event["involvedObject"].get("uid", "")][f"{event['type']} {event['reason']}", message] += max(0, more)

    def quiet_s(self) -> float:
        """For how long nothing has changed."""
        return time.monotonic() - self.touched_s


class Scenes:
    """All scenes of one side. Use inside one event loop, as an async context manager."""

    def __init__(self, client: Client) -> None:
        self._scenes: dict[str, Scene] = defaultdict(Scene)
        self._client = client
        self._tasks: list[asyncio.Task[None]] = []
        self._versions: dict[str, int] = defaultdict(int)

    def version(self, resource: Resource) -> int:
        """Up to which resourceVersion the watch has told everything."""
        return self._versions[resource.kind]

    def __getitem__(self, scenario: str) -> Scene:
        return self._scenes[scenario]

    def forget(self, scenario: str) -> None:
        self._scenes.pop(scenario, None)

    async def __aenter__(self) -> Scenes:
        reflectors = [Reflector(self._client, each, self._listener(each)) for each in WATCHED]
        self._tasks = [asyncio.create_task(each.run()) for each in reflectors]
        for each in reflectors:
            await each.listed.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task

    def _listener(self, resource: Resource) -> Any:
        kind = resource.kind

        def told(obj: Obj, gone: bool) -> None:
            meta = obj["metadata"]
            self._versions[kind] = max(self._versions[kind], int(meta["resourceVersion"]))
            scenario = meta["namespace"] if resource.namespaced else (meta.get("labels") or {}).get(SCENARIO, "")
            if not scenario:
                return
            scene = self._scenes[scenario]
            known = scene.objects[kind].get(meta["name"])
            if kind == "Event" and not gone:
                scene.hear(obj, known)
            if gone:
                scene.objects[kind].pop(meta["name"], None)
            else:
                scene.put(kind, obj)
            if gone or known is None or _matters(kind, known, obj):
                scene.touched_s = time.monotonic()

        return told


def _matters(kind: str, old: Obj, new: Obj) -> bool:
    """Whether a change says that somebody is still at work. A create that is refused is tried for ever."""
    if kind == "Event":
        return bool(new["reason"] != "FailedCreate")
    if kind == "Pod" and not new["spec"].get("nodeName"):
        return _without_messages(old) != _without_messages(new)
    return True


def _without_messages(pod: Obj) -> Obj:
    """Why it has no node is worded anew whenever there are more nodes of others."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    bare = [(each["type"], each["status"]) for each in conditions]
    meta = {key: value for key, value in pod["metadata"].items() if key not in ("resourceVersion", "managedFields")}
    return {"metadata": meta, "spec": pod["spec"], "phase": (pod.get("status") or {}).get("phase"), "conditions": bare}


def _age(obj: Obj) -> tuple[str, str]:
    return obj["metadata"]["creationTimestamp"], obj["metadata"]["name"]
