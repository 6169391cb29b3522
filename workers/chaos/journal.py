"""The recorder of the cluster: a list and a watch of our own for each resource, without a gap or with one admitted.

It shares no code with the fleet's client. Each event is kept as what is judged of it, in memory and, one JSON line
each, in a file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from workers.chaos.evidence import QUEUE_OF_KIND, NamespaceSeen, OwnerSeen, PodSeen, Seen

STRICT = "oarlock.io/strict"
PATHS = {
    "pods": "/api/v1/pods",
    "replicasets": "/apis/apps/v1/replicasets",
    "namespaces": "/api/v1/namespaces",
}
SILENCE_S = 30.0
"""The embedded server sends bookmarks every ten seconds."""
CHUNK_BYTES = 1 << 20


class _Ref(msgspec.Struct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Ref] | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    replicas: int = 0
    node_name: str = ""


class _StatusPart(msgspec.Struct, rename="camel"):
    phase: str = ""
    conditions: list[_Condition] | None = None
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0


class _Object(msgspec.Struct, rename="camel"):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _StatusPart = msgspec.field(default_factory=_StatusPart)


class _Failure(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Head(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _List(msgspec.Struct):
    metadata: _Meta
    items: list[_Object]


_head = msgspec.json.Decoder(_Head)
_object = msgspec.json.Decoder(_Object)
_failure = msgspec.json.Decoder(_Failure)
_list = msgspec.json.Decoder(_List)


def seen(resource: str, obj: Any, gone: bool, at_s: float) -> Seen:
    """What is judged of an object."""
    meta, status = obj.metadata, obj.status
    rv = int(meta.resource_version)
    if resource == "pods":
        owner = task = ""
        for ref in meta.owner_references or ():
            if ref.controller:
                owner = ref.uid
                task = f"{QUEUE_OF_KIND.get(ref.kind, ref.kind.lower())}:{meta.namespace}/{ref.name}"
        return PodSeen(
            rv,
            at_s,
            gone,
            meta.namespace,
            meta.name,
            meta.uid,
            owner,
            task,
            ",".join(f"{key}={value}" for key, value in sorted((meta.labels or {}).items())),
            obj.spec.node_name,
            meta.deletion_timestamp is not None,
            status.phase,
            any(each.type == "Ready" and each.status == "True" for each in status.conditions or ()),
        )
    if resource == "replicasets":
        return OwnerSeen(
            rv,
            at_s,
            gone,
            f"replicaset:{meta.namespace}/{meta.name}",
            meta.uid,
            meta.generation,
            obj.spec.replicas,
            meta.deletion_timestamp is not None,
            (meta.annotations or {}).get(STRICT) == "true",
            status.observed_generation,
            status.replicas,
            status.ready_replicas,
        )
    return NamespaceSeen(rv, at_s, gone, meta.name, meta.deletion_timestamp is not None)


class Journal:
    """``listen`` begins, ``run`` goes on until it is cancelled. ``gaps``: what could not be seen.

    ``on_seen`` is told of everything as it comes.
    """

    def __init__(self, url: str, path: Path, on_seen: Callable[[Seen], None] = lambda seen: None) -> None:
        self._url, self._on_seen = url.rstrip("/"), on_seen
        self._file = path.open("wb", buffering=CHUNK_BYTES)
        self._encoder = msgspec.json.Encoder()
        self._rvs: dict[str, int] = {}
        self._session: aiohttp.ClientSession | None = None
        self.history: list[Seen] = []
        self.gaps: list[str] = []
        self.from_rv = 0
        self.last_s = 0.0

    async def listen(self) -> None:
        """List everything; the watches begin there."""
        timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=SILENCE_S)
        self._session = aiohttp.ClientSession(timeout=timeout, headers={"User-Agent": "chaos-journal"})
        for resource, path in PATHS.items():
            async with self._session.get(self._url + path) as response:
                response.raise_for_status()
                listed = _list.decode(await response.read())
            self._rvs[resource] = int(listed.metadata.resource_version)
            for obj in listed.items:
                self._take(resource, obj, False)
        self.from_rv = self._rvs["pods"]

    async def run(self) -> None:
        """Watch."""
        assert self._session is not None, "listen comes first"
        try:
            async with asyncio.TaskGroup() as group:
                for resource in PATHS:
                    group.create_task(self._watch(self._session, resource))
        finally:
            await self._session.close()
            self._file.close()

    def _take(self, resource: str, obj: _Object, gone: bool) -> None:
        each = seen(resource, obj, gone, time.time())
        self.history.append(each)
        self._file.write(self._encoder.encode((resource, each)) + b"\n")
        self._rvs[resource] = max(self._rvs[resource], each.rv)
        self.last_s = each.at_s
        self._on_seen(each)

    async def _watch(self, session: aiohttp.ClientSession, resource: str) -> None:
        while True:
            query = f"?watch=true&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion={self._rvs[resource]}"
            try:
                async with session.get(self._url + PATHS[resource] + query) as response:
                    if response.status != 200:
                        raise _Gap(f"watch of {resource}: HTTP {response.status}")
                    await self._follow(resource, response.content)
            except _Gap as gap:
                self.gaps.append(f"{resource} after revision {self._rvs[resource]}: {gap}")
                return
            except (aiohttp.ClientError, TimeoutError, OSError):
                await asyncio.sleep(0.05)  # from the last event on, nothing is missed

    async def _follow(self, resource: str, content: aiohttp.StreamReader) -> None:
        rest = b""
        async for chunk in content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if not line:
                    continue
                event = _head.decode(line)
                if event.type == "ERROR":
                    failure = _failure.decode(event.object)
                    raise _Gap(f"{failure.code} {failure.message}")
                obj = _object.decode(event.object)
                if event.type == "BOOKMARK":
                    self._rvs[resource] = max(self._rvs[resource], int(obj.metadata.resource_version))
                else:
                    self._take(resource, obj, event.type == "DELETED")


class _Gap(Exception):
    """A part of the history is gone for good."""
