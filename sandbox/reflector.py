"""What happens in one collection of an API server, told in order: its events, or a copy that is kept up to date.

Upstream: client-go/tools/cache/reflector.go.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final

import orjson

from oarlock.cluster.client import Client
from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.listing import ListError, list_all
from oarlock.cluster.resources import Resource
from oarlock.cluster.watch import Expired, WatchError

Obj = dict[str, Any]
Key = tuple[str, str]

_FIRST_WAIT_S: Final = 0.05  # between two tries; doubles as long as nothing is heard
_LONGEST_WAIT_S: Final = 5.0

_log = logging.getLogger("oarlock.nodes")


async def follow(client: Client, resource: Resource, rv: str) -> AsyncGenerator[WatchEvent, None]:
    """Every event after `rv`, bookmarks too. A watch that ends or breaks is begun again after its last event.

    Raises Expired where the server does not keep what comes next.
    """
    wait_s = _FIRST_WAIT_S
    while True:
        before = rv
        try:
            since_s = time.monotonic()
            async with aclosing(client.watch_batches(resource, rv)) as batches:
                async for batch in batches:
                    for event in batch:
                        rv = event.rv
                        yield event
            if time.monotonic() - since_s > _LONGEST_WAIT_S:  # a whole life, though perhaps nothing was to be heard
                wait_s = _FIRST_WAIT_S
        except Expired:
            raise
        except WatchError as error:
            _interrupted(resource, error)
        if rv != before:
            wait_s = _FIRST_WAIT_S
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)


class Reflector:
    """`told(object, gone)` is called, within `run`, for everything that exists and then for every change.

    An object that was replaced by another of its name is told gone first. What vanished while nothing was heard is
    told gone, as it was last known, after the next list. `objects` is by namespace and name; `listed` is set by the
    first complete list.
    """

    def __init__(self, client: Client, resource: Resource, told: Callable[[Obj, bool], None]) -> None:
        self._client, self._resource, self._told = client, resource, told
        self.objects: dict[Key, Obj] = {}
        self.listed = asyncio.Event()

    async def run(self) -> None:
        """List and watch until cancelled. What goes wrong is logged and tried again."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                rv = await self._list()
                async with aclosing(follow(self._client, self._resource, rv)) as events:
                    async for event in events:
                        self._take(event)
                        wait_s = _FIRST_WAIT_S
            except Expired:
                pass
            except ListError as error:
                _interrupted(self._resource, error)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def _list(self) -> str:
        rv, items = await list_all(self._client.list_pages(self._resource))
        found = {_key(obj): obj for obj in map(orjson.loads, items)}
        for key in [key for key in self.objects if key not in found]:
            self._told(self.objects.pop(key), True)
        for obj in found.values():
            self._changed(obj)
        self.listed.set()
        return rv

    def _take(self, event: WatchEvent) -> None:
        if event.type == "DELETED":
            obj = orjson.loads(event.object)
            self.objects.pop(_key(obj), None)
            self._told(obj, True)
        elif event.type != "BOOKMARK":
            self._changed(orjson.loads(event.object))

    def _changed(self, obj: Obj) -> None:
        key, meta = _key(obj), obj["metadata"]
        known = self.objects.get(key)
        if known is not None:
            if known["metadata"]["resourceVersion"] == meta["resourceVersion"]:
                return
            if known["metadata"]["uid"] != meta["uid"]:
                self._told(known, True)
        self.objects[key] = obj
        self._told(obj, False)


def _interrupted(resource: Resource, error: Exception) -> None:
    _log.warning("event=interrupted resource=%s reason=%s", resource.plural, json.dumps(str(error)))


def _key(obj: Obj) -> Key:
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]
