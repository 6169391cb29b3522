"""The HTTP server of the board. Without --write it has no route that changes anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from oarlock.cli.board.access import HEADERS, Access
from oarlock.cli.board.hub import Hub
from oarlock.cli.board.key_pages import KeyPages
from oarlock.cli.board.page_files import page_files
from oarlock.cli.board.shown import PARTS, PROCESSES, TAB_NAMES, event
from oarlock.cli.problems import InputProblem
from oarlock.cli.top.fleet import Fleet
from oarlock.cli.top.tabs import TABS, Task
from oarlock.controllers.registry import all_queues

WATCHING_MAX = 100
SLOW_S = 10.0
"""A page that takes no bytes for so long is left; it comes back by itself. Meanwhile nothing is kept for it."""
BODY_MAX = 10_000
KEY_MAX = 512


@dataclass(frozen=True, slots=True)
class Options:
    """``prefix``: "" or /path without a slash at its end. ``by``: who writes, for the audit stream."""

    prefix: str
    interval_s: float
    write: bool
    by: str = "board"


class Board:
    """Answers requests. ``fleet`` blocks, so it is asked in threads."""

    def __init__(self, fleet: Fleet, access: Access, options: Options) -> None:
        self._fleet, self._access, self._options = fleet, access, options
        self.hub = Hub(fleet.look, all_queues(), options.interval_s)
        self._keys, self._files = KeyPages(fleet), page_files()

    def app(self) -> web.Application:
        """All routes, below the prefix."""
        app = web.Application(middlewares=[self._access.guard], client_max_size=BODY_MAX)
        prefix = self._options.prefix
        app.cleanup_ctx.append(self._looking)
        app.router.add_get(f"{prefix}/healthz", self._healthz)
        app.router.add_get(f"{prefix}/api/events", self._told(self._events))
        app.router.add_get(f"{prefix}/api/look", self._told(self._look))
        app.router.add_get(f"{prefix}/api/key", self._told(self._key))
        app.router.add_get(f"{prefix}/api/find", self._told(self._find))
        if self._options.write:
            app.router.add_post(f"{prefix}/api/requeue", self._told(self._requeue))
        app.router.add_get(f"{prefix}/{{path:.*}}", self._file)
        if prefix:
            app.router.add_get(prefix, self._to_the_page)
        return app

    def _told(self, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Any:
        """A handler that needs the token, and whose problems are answers of one line."""

        async def answer(request: web.Request) -> web.StreamResponse:
            self._access.check_token(request)
            try:
                return await handler(request)
            except InputProblem as problem:
                return web.json_response({"problem": " ".join(problem.lines)}, status=400)

        return answer

    async def _looking(self, app: web.Application) -> AsyncIterator[None]:
        looking = asyncio.create_task(self.hub.run())
        yield
        looking.cancel()
        await asyncio.wait([looking])

    # -- the page ---------------------------------------------------------------------------------------------------

    async def _file(self, request: web.Request) -> web.Response:
        found = self._files.get(request.match_info["path"] or "index.html")
        if found is None:
            raise web.HTTPNotFound(text="there is no such page\n")
        return found.answer(request)

    async def _to_the_page(self, request: web.Request) -> web.Response:
        raise web.HTTPMovedPermanently(f"{self._options.prefix}/")

    async def _healthz(self, request: web.Request) -> web.Response:
        """Alive. It does not ask Redis: another start would not bring it back."""
        return web.Response(text="ok\n")

    # -- looks ------------------------------------------------------------------------------------------------------

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """A stream of looks, until the page or the server goes. Each look that a slow page misses is left out."""
        parts = _parts(request)
        if self.hub.watching >= WATCHING_MAX:
            raise web.HTTPServiceUnavailable(text=f"{WATCHING_MAX} pages watch already\n")
        stream = web.StreamResponse(headers={**HEADERS, "X-Accel-Buffering": "no"})
        stream.content_type = "text/event-stream"
        await stream.prepare(request)
        with self.hub.watch():
            try:
                await self._send(stream, event("hello", self._hello(_number(request, "after"))))
                shown, whole = await self.hub.first(), True
                while True:
                    await self._send(stream, shown.events(parts, whole=whole))
                    number = shown.number
                    shown = await self.hub.after(number)
                    whole = shown.number != number + 1  # it was slow: of what has changed meanwhile a part is gone
            except (ConnectionError, TimeoutError):
                if request.transport is not None:
                    request.transport.abort()
        return stream

    async def _send(self, stream: web.StreamResponse, data: bytes) -> None:
        await asyncio.wait_for(stream.write(data), SLOW_S)

    def _hello(self, after_s: float) -> dict[str, Any]:
        """What a page needs to know once."""
        return {
            "write": self._options.write,
            "interval_s": self._options.interval_s,
            "tabs": [{"name": tab.name, "title": tab.title, "columns": tab.columns} for tab in TABS],
            "series": self.hub.past.series,
            "queues": self.hub.past.queues,
            "points": self.hub.past.since(after_s),
        }

    async def _look(self, request: web.Request) -> web.Response:
        """One look as JSON, for scripts."""
        with self.hub.watch():
            shown = await self.hub.first()
        told = {"head": shown.head(), **{name: shown.part(name) for name in PARTS}}
        return web.json_response(told)

    # -- keys -------------------------------------------------------------------------------------------------------

    async def _key(self, request: web.Request) -> web.Response:
        query = request.query
        task = _task(query.get("shard", "0"), query.get("queue", ""), query.get("key", ""))
        return web.Response(body=await self._keys.page(task), content_type="application/json")

    async def _find(self, request: web.Request) -> web.Response:
        text = request.query.get("key", "").strip()[:KEY_MAX]
        found = await asyncio.to_thread(self._fleet.find, text)
        return web.json_response({"tasks": found})

    async def _requeue(self, request: web.Request) -> web.Response:
        try:
            asked = await request.json()
            task = _task(asked["shard"], asked["queue"], asked["key"])
        except (ValueError, KeyError, TypeError):
            raise web.HTTPBadRequest(text='send {"shard": "0", "queue": ..., "key": ...}\n') from None
        told = await asyncio.to_thread(self._fleet.requeue, task, self._options.by, f"from {request.remote}")
        self._keys.forget(task)
        return web.json_response({"told": told})


def _parts(request: web.Request) -> list[str]:
    """The parts that a page asks for; what there is not is left out."""
    asked = request.query.get("parts", "").split(",")
    return [name for name in (*TAB_NAMES, PROCESSES) if name in asked]


def _number(request: web.Request, name: str) -> float:
    try:
        return float(request.query.get(name, "0"))
    except ValueError:
        return 0.0


def _task(shard: str, queue: str, key: str) -> Task:
    """Raises InputProblem."""
    if queue not in all_queues():
        raise InputProblem(f"{queue[:100]!r} is no controller; there are: {', '.join(all_queues())}")
    if not key or len(key) > KEY_MAX:
        raise InputProblem("key: write namespace/name, or the name of a node")
    return Task(shard, queue, key)
