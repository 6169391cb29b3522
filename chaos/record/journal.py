"""The recorder of the cluster: a list and a watch of our own for each resource, without a gap or with one admitted.

It shares no code with the fleet's client. Each event is kept as what is judged of it, in memory and, one JSON line
each, in a file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp
import msgspec

from oarlock.chaos.judge.evidence.objects import PATHS, Meta, Object, seen
from oarlock.chaos.judge.evidence.sightings import Seen

SILENCE_S = 30.0
"""The embedded server sends bookmarks every ten seconds."""
CHUNK_BYTES = 1 << 20


class _Failure(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Head(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _List(msgspec.Struct):
    metadata: Meta
    items: list[Object]


_head = msgspec.json.Decoder(_Head)
_object = msgspec.json.Decoder(Object)
_failure = msgspec.json.Decoder(_Failure)
_list = msgspec.json.Decoder(_List)


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

    def _take(self, resource: str, obj: Object, gone: bool) -> None:
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
