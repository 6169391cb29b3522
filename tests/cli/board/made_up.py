"""A fleet that is made up, and a server of the board over it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from aiohttp import web

from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cli.board.access import Access
from oarlock.cli.board.server import Board, Options
from oarlock.cli.problems import InputProblem, NotDone
from oarlock.cli.top.tabs import Task
from oarlock.cli.watch.fleet_look import FleetLook
from tests.cli.watch.looks import QUEUE, busy

TOKEN = "0123456789abcdef"
TURN = {
    "verdict": "ok",
    "did": "create pods",
    "turns": 1,
    "ended_ms": 4_000,
    "waited_ms": 5,
    "took_ms": 7,
    "holder": "w-1-1",
    "triggers": {"events": 1, "first": "asked", "last": "asked"},
}
SET = {"name": "web-5d", "revision": 4, "replicas": 8, "created": 7, "available": 6, "observed": True}
FACTS: dict[str, Any] = {
    "state": "idle",
    "failures": 0,
    "crashes": 0,
    "delayed_in_ms": None,
    "parked_in_ms": None,
    "suspect": False,
    "now_ms": 5_000,
    "why": None,
    "lock": None,
    "sentences": ["All is as it should be."],
    "turns": [TURN, {**TURN, "verdict": "retry", "turns": 3, "ended_ms": 1_000, "did": "ValueError: no size"}],
    "rollout": {"new": SET, "old": [], "complete": False, "waiting_for": "2 pods are to come", "error": ""},
    "nodes": {"counts": {"new": 2, "none": 1}, "each": {"n1": "new", "n2": "new", "n3": "none"}},
    "object": {"secret": "not shown"},
}


class MadeUp:
    """Answers as told. ``gone``: Redis is. ``ages``: whether each look differs from the one before. ``name``: of a key
    that is in its lists besides.
    """

    def __init__(self, name: str = "") -> None:
        self.gone, self.looks, self.ages, self.name = False, 0, False, name
        self.asked: list[tuple[Any, ...]] = []
        self.board: Board | None = None

    def look(self) -> FleetLook:
        self.looks += 1
        if self.gone:
            raise BrokerUnreachable("connection refused")
        found = busy()
        if self.ages:
            first, *rest = found.keys
            found = replace(found, keys=(replace(first, age_ms=5_000 + self.looks * 1_000), *rest))
        if self.name:
            odd = {"key": self.name, "queue": QUEUE}
            found = replace(
                found,
                keys=(replace(found.keys[1], **odd), *found.keys),
                trouble=(replace(found.trouble[1], **odd, did=self.name), *found.trouble),
                workers=(*found.workers, replace(found.workers[1], worker=self.name, supervisor=self.name)),
                namespaces=(replace(found.namespaces[0], namespace=self.name), *found.namespaces),
                away=(("1", self.name),),
            )
        return found

    def facts(self, task: Task) -> dict[str, Any]:
        self.asked.append(("facts", task.key))
        if task.key == "shop/gone":
            raise NotDone("Redis does not say")
        if self.name:
            odd = {**SET, "name": self.name}
            rollout = {"new": odd, "old": [odd], "complete": False, "waiting_for": self.name, "error": ""}
            turn = {**TURN, "did": self.name, "holder": self.name}
            nodes = {"counts": {"new": 1}, "each": {self.name: "new"}}
            return {**FACTS, "sentences": [self.name], "turns": [turn], "rollout": rollout, "nodes": nodes}
        return FACTS

    def traceback(self, task: Task) -> str:
        return f"Traceback:\n  ValueError: \x1b[31mred{self.name}"

    def find(self, text: str) -> list[Task]:
        if not text:
            raise InputProblem("'' is no key")
        return [Task("0", QUEUE, text)]

    def requeue(self, task: Task, by: str, reason: str) -> str:
        self.asked.append(("requeue", task.key, by, reason))
        return f"{task.key}: queued"


@contextmanager
def serving(fleet: MadeUp, port: int = 0, *, prefix: str = "", write: bool = False, token: str = "") -> Iterator[str]:
    """The address of a board, meanwhile."""
    board = fleet.board = Board(fleet, Access((), token), Options(prefix, 0.2, write))  # type: ignore[arg-type]
    begun, loop, bound = threading.Event(), asyncio.new_event_loop(), [port]

    async def begin() -> web.AppRunner:
        runner = web.AppRunner(board.app(), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        bound[0] = runner.addresses[0][1]
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(begin())
        begun.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(10)
    try:
        yield f"http://127.0.0.1:{bound[0]}{prefix}/"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
