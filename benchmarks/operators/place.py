"""The API server of a run as a process of its own, its user, and an observer that sees what there is by watches."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson

from benchmarks.operators.sides import stop
from benchmarks.report import Unfit
from benchmarks.watching import follow
from oarlock.cluster.access import config
from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client
from oarlock.cluster.resources import NAMESPACES, Resource
from oarlock.workers.process.death_signal import command_dying_with_this_process
from oarlock.workers.process.io_loop import IoLoop

NAMESPACE = "bench"
IN_FLIGHT = 50
START_LIMIT_S = 30.0
LOOK_EVERY_S = 0.05


class Place:
    """A context manager. ``audit_log``: the server's own record of all writes, with requests and answers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.kubeconfig = directory / "kubeconfig"
        self.audit_log = directory / "audit.log"
        command = [sys.executable, "-m", "oarlock.sandbox.apiserver", "--new-token", "--admin"]
        paths = ["--kubeconfig", str(self.kubeconfig), "--audit-log", str(self.audit_log), "--audit-full"]
        self._server = subprocess.Popen(
            command_dying_with_this_process([*command, *paths]),
            stdout=subprocess.PIPE,
            stderr=(directory / "api.log").open("wb"),
        )
        assert self._server.stdout is not None
        if not self._server.stdout.readline():
            raise Unfit("the API server did not come up")
        self.io = IoLoop()
        self.client: Client = self.io.run(self._open())

    async def _open(self) -> Client:
        return Client(config.load(self.kubeconfig), role="user", writes_max=IN_FLIGHT)

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self.io.run(self.client.close(), 5.0)
        self.io.close()
        stop(self._server)

    @property
    def pid(self) -> int:
        return self._server.pid

    def define(self, definitions: Iterable[Mapping[str, Any]], resource: Resource) -> None:
        """Create definitions and the namespace; return once they are served."""
        from benchmarks.operators.wanted import DEFINITIONS

        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.all([self.client.create(NAMESPACES, "", orjson.dumps(namespace))], "create the namespace")
        requests = [self.client.create(DEFINITIONS, "", orjson.dumps(each)) for each in definitions]
        self.all(requests, "create the definitions")
        self.await_true(lambda: self._served(resource), f"{resource.plural} to be served", START_LIMIT_S)

    def _served(self, resource: Resource) -> bool:
        answer: Answer = self.io.run(self.client.get(resource, NAMESPACE, "nobody"))
        return b"nobody" in answer.body

    def create(self, resource: Resource, objects: Iterable[Mapping[str, Any]]) -> None:
        """``IN_FLIGHT`` at once."""
        bodies = [orjson.dumps(each) for each in objects]
        self.all([self.client.create(resource, NAMESPACE, body) for body in bodies], f"create {resource.plural}")

    def patch(self, resource: Resource, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """By name: merge patches."""
        requests = [
            self.client.patch(resource, NAMESPACE, name, orjson.dumps(change)) for name, change in changes.items()
        ]
        self.all(requests, f"patch {resource.plural}")

    def delete(self, resource: Resource, uids: Mapping[str, str]) -> None:
        """By name, with the UID."""
        requests = [self.client.delete(resource, NAMESPACE, name, uid=uid) for name, uid in uids.items()]
        self.all(requests, f"delete {resource.plural}")

    def all(self, requests: list[Coroutine[Any, Any, Answer]], what: str) -> list[Answer]:
        """The answers, none of which may be a refusal."""

        async def together() -> list[Answer]:
            return list(await asyncio.gather(*requests))

        answers: list[Answer] = self.io.run(together(), 300.0)
        for answer in answers:
            if not answer.ok:
                raise Unfit(f"could not {what}: {answer.message}")
        return answers

    def await_true(self, reached: Callable[[], bool], what: str, limit_s: float) -> None:
        """Look twenty times a second: each look costs. Raises Unfit after ``limit_s``."""
        deadline = time.monotonic() + limit_s
        while not reached():
            if time.monotonic() > deadline:
                raise Unfit(f"gave up waiting for {what} after {limit_s:.0f} s; see {self.directory}")
            time.sleep(LOOK_EVERY_S)


class Seen:
    """All objects of some resources, kept up by watches. A context manager. ``changed_s``: of the last event."""

    def __init__(self, place: Place, resources: Iterable[Resource]) -> None:
        self._place = place
        self.objects: dict[str, dict[str, dict[str, Any]]] = {each.plural: {} for each in resources}
        self.changed_s = 0.0
        self._watches = [asyncio.run_coroutine_threadsafe(self._watch(each), place.io.loop) for each in resources]

    def __enter__(self) -> Seen:
        return self

    def __exit__(self, *_: object) -> None:
        for watch in self._watches:
            watch.cancel()

    async def _watch(self, resource: Resource) -> None:
        position = ""
        held = self.objects[resource.plural]
        async with aclosing(self._place.client.list_pages(resource, namespace=NAMESPACE)) as pages:
            async for page in pages:
                position = page.rv
                for item in page.items:
                    self._take(held, "ADDED", json.loads(item))
        async with aclosing(follow(self._place.client, resource, position)) as events:
            async for event in events:
                self._take(held, event.type, json.loads(event.object))

    def _take(self, held: dict[str, dict[str, Any]], what: str, found: dict[str, Any]) -> None:
        if found["metadata"].get("namespace") != NAMESPACE:
            return
        self.changed_s = time.monotonic()
        if what == "DELETED":
            held.pop(found["metadata"]["name"], None)
        else:
            held[found["metadata"]["name"]] = found

    def check(self) -> None:
        """Raises Unfit where a watch has ended."""
        for watch in self._watches:
            if watch.done():
                raise Unfit(f"a watch ended: {watch.exception()}")
