"""Upstream's real API server under a benchmark: namespaces that come and go, and what becomes visible in them when.

Its programs are those of the acceptance suite (tests/realserver): given by the environment, or built on the first use.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Any

import orjson

from benchmarks.report import Unfit
from benchmarks.watching import follow
from oarlock.cluster.access import config
from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client
from oarlock.cluster.listing import Page
from oarlock.cluster.resources import DAEMONSETS, DEPLOYMENTS, NAMESPACES, NODES, PODS, REPLICASETS, Resource
from oarlock.workers.process.io_loop import IoLoop

ROOT = Path(__file__).parents[1]
IN_FLIGHT = 50
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


def _obtained() -> dict[str, str]:
    """Have upstream's programs before anything is started; their versions.

    Exit 2 with one line when something is missing.
    """
    from tests.realserver.programs import obtain, version_of
    from tests.realserver.telling import CannotObtain

    try:
        obtain(*PROGRAMS)
        return {name: str(version_of(name)) for name in PROGRAMS}
    except CannotObtain as error:
        print(f"benchmark: {error}", file=sys.stderr)
        sys.exit(2)


class Place:
    """One etcd and one kube-apiserver for the whole benchmark. A context manager; the main thread makes it.

    ``versions``: of upstream's programs, by name.
    """

    def __init__(self) -> None:
        self.versions = _obtained()
        from tests.realserver.server import RealServer

        self.folder = Path(tempfile.mkdtemp(prefix="oarlock-versus-"))
        self._numbers = itertools.count(1)
        self._ending = ExitStack()
        self._ending.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self._server = self._ending.enter_context(RealServer(self.folder / "server"))
            self.kubeconfig: Path = self._server.kubeconfig
            self.io = IoLoop()
            self.client = self.io.run(self._open())
        except BaseException:
            self._ending.close()
            raise

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.io.run(self.client.close(), 5.0)
            self.io.close()
        finally:
            self._ending.close()

    async def _open(self) -> Client:
        return Client(config.load(self.kubeconfig), role="bench", writes_max=IN_FLIGHT, request_timeout_s=60.0)

    def pids(self) -> dict[str, int]:
        """Of the server's programs."""
        return self._server.pids()

    def metrics(self) -> str:
        """The server's own counters, as it tells them to Prometheus."""
        answer = self.io.run(self.client.transport.read("/metrics"), 30.0)
        if not answer.ok:
            raise Unfit(f"no metrics of the server: {answer.code} {answer.message}")
        return answer.body.decode()

    def run_nodes(self, count: int) -> None:
        """Simulated nodes that neither schedule nor report again: the pods stay pending on both sides alike."""
        flags = ["--count", str(count), "--no-schedule", "--heartbeat-s", "0"]
        nodes = self.run_beside([sys.executable, "-m", "oarlock.cli", "nodes", "run", *flags], "nodes", {})
        await_true(lambda: self._untainted() == count, "the nodes", 90.0, 0.5)
        nodes.kill()

    def _untainted(self) -> int:
        """Nodes that pods may go to: a server taints each new one until its node controller has seen it ready."""

        async def count() -> int:
            found = 0
            async with aclosing(self.client.list_pages(NODES)) as pages:
                async for page in pages:
                    found += sum("taints" not in orjson.loads(item)["spec"] for item in page.items)
            return found

        return int(self.io.run(count(), 60.0))

    def run_beside(self, command: list[str], name: str, env: Mapping[str, str]) -> Any:
        """A program with this server's kubeconfig; its output goes to a file, and it ends when we do."""
        import os

        from tests.realserver.processes import Running

        ours = {key: value for key, value in os.environ.items() if not key.startswith("OARLOCK_")}
        number = next(self._numbers)
        return Running(
            [*command, f"--kubeconfig={self.kubeconfig}"],
            self.folder / f"{name}-{number}.log",
            cwd=ROOT,
            env={**ours, **env},
        )

    def new_namespace(self) -> str:
        name = f"versus-{next(self._numbers)}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self._must([self.client.create(NAMESPACES, "", orjson.dumps(body))], "make a namespace")
        return name

    def create(self, resource: Resource, namespace: str, objects: Iterable[Mapping[str, Any]]) -> None:
        """``IN_FLIGHT`` at once."""
        bodies = [orjson.dumps({**each, "metadata": {**each["metadata"], "namespace": namespace}}) for each in objects]
        self._must([self.client.create(resource, namespace, body) for body in bodies], f"create {resource.plural}")

    def patch(self, resource: Resource, namespace: str, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """By name; ``IN_FLIGHT`` at once."""
        bodies = {name: orjson.dumps(change) for name, change in changes.items()}
        asked = [self.client.patch(resource, namespace, name, body) for name, body in bodies.items()]
        self._must(asked, f"patch {resource.plural}")

    def clear(self, namespace: str) -> None:
        """Take away owners and pods, once nobody works; and the Leases, so that the next to start need not wait."""
        for resource in (DEPLOYMENTS, REPLICASETS, DAEMONSETS, PODS):
            path = resource.collection(namespace) + "?propagationPolicy=Background&gracePeriodSeconds=0"
            for _ in range(CLEAR_TRIES):  # tens of thousands take longer than a request may; what is gone stays gone
                answer = self.io.run(self.client.transport.write("DELETE", path, b""), 300.0)
                if answer.ok:
                    break
            else:
                raise Unfit(f"could not clear {resource.plural}: {answer.code} {answer.message}")
        for name in ("oarlock", "kube-controller-manager"):
            self.io.run(self.client.transport.write("DELETE", f"{LEASES}/{name}", b""))

    def _must(self, requests: list[Any], what: str) -> None:
        async def together() -> list[Answer]:
            return list(await asyncio.gather(*requests))

        for answer in self.io.run(together(), 300.0):
            if not answer.ok:
                raise Unfit(f"could not {what}: {answer.code} {answer.message}")

    def position(self, resource: Resource) -> str:
        """The resourceVersion of now."""

        async def first() -> Page:
            async with aclosing(self.client.list_pages(resource, limit=1)) as pages:
                return await anext(pages)

        return self.io.run(first()).rv


CLEAR_TRIES = 10


class Seen:
    """What a user's watches show from now on: pods as they appear, owners as their status tells them complete.

    Times are ``time.monotonic`` at which this process had the event. ``kind``: of the owners; ``status``: the field
    that counts their pods. A context manager.
    """

    def __init__(self, place: Place, kind: Resource, status: str, wanted: int) -> None:
        self.pods: list[tuple[float, str]] = []  # and the value of the pod's name label
        self.complete: dict[str, float] = {}
        self._place, self._status, self._wanted = place, status, wanted
        self._watching = [
            asyncio.run_coroutine_threadsafe(self._watch(resource, place.position(resource), note), place.io.loop)
            for resource, note in ((PODS, self._pod), (kind, self._owner))
        ]

    def __enter__(self) -> Seen:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._watching:
            each.cancel()

    async def _watch(self, resource: Resource, position: str, note: Callable[[str, dict[str, Any]], None]) -> None:
        async with aclosing(follow(self._place.client, resource, position)) as events:
            async for event in events:
                note(event.type, orjson.loads(event.object))

    def _pod(self, what: str, pod: dict[str, Any]) -> None:
        if what == "ADDED":
            self.pods.append((time.monotonic(), pod["metadata"]["labels"]["app.kubernetes.io/name"]))

    def _owner(self, what: str, owner: dict[str, Any]) -> None:
        if owner.get("status", {}).get(self._status, 0) == self._wanted:
            self.complete.setdefault(owner["metadata"]["name"], time.monotonic())

    def check(self) -> None:
        """Raises Unfit where a watch could not go on."""
        for each in self._watching:
            if each.done():
                each.result()


def await_true(reached: Callable[[], bool], what: str, limit_s: float, every_s: float = 0.02) -> None:
    """Raises Unfit after ``limit_s``."""
    deadline = time.monotonic() + limit_s
    while not reached():
        if time.monotonic() > deadline:
            raise Unfit(f"gave up waiting for {what} after {limit_s:.0f} s")
        time.sleep(every_s)


def descendants(pid: int) -> list[int]:
    """A process and all it started that live now."""
    told = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = [tuple(map(int, line.split())) for line in told.splitlines()]
    found = [pid]
    for each in found:
        found += [child for child, parent in parents if parent == each]
    return found
