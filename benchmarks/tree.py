"""A real `oarlock up` under a benchmark: its processes, its Redis as the admin sees it, its API as a client does."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson

from benchmarks.report import Unfit
from broker import epoch
from broker.connection import connect
from broker.keys import Keys
from cluster import config
from cluster.answer import Answer
from cluster.client import Client
from cluster.listing import Page
from cluster.resources import NAMESPACES, PODS, REPLICASETS, Resource
from controllers import wire
from workers.cli.run import Underneath
from workers.io_loop import IoLoop
from workers.up.state_dir import PREFIX, StateDir

NAMESPACE = "bench"
IN_FLIGHT = 50


class Tree:
    """Everything of one `oarlock up`, by itself in a temporary directory. A context manager."""

    def __init__(self, *, workers: int, nodes: int = 5, ingestors: int = 2, faults: bool = False) -> None:
        self._root = Path(tempfile.mkdtemp(prefix=PREFIX))
        arguments = ["--workers", str(workers), "--nodes", str(nodes), "--ingestors", str(ingestors)]
        self._up = Underneath(self._root, [*arguments, *(["--faults"] if faults else [])])
        try:
            self._up.await_ready()
            self.state: StateDir = self._up.state
            self.redis = connect(self.state.read_redis_url(), timeout_s=30.0)
            self.keys_epoch = epoch.current(self.redis).epoch
            self.keys = Keys(self.keys_epoch)
            self.io = IoLoop()
            self.client = self.io.run(self._open())
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.io.run(self.client.close(), 5.0)
            self.io.close()
            self.redis.close()
        finally:
            self._end()

    def _end(self) -> None:
        self._up.stop()
        shutil.rmtree(self._root, ignore_errors=True)

    async def _open(self) -> Client:
        return Client(config.load(self.state.kubeconfig), role="bench", writes_max=IN_FLIGHT)

    def roles(self) -> list[tuple[str, int]]:
        """(role, pid) of every process now: redis, api, ingestor, supervisor, worker."""
        return [(each.role, each.pid) for each in self.state.read_processes()]

    def workers(self) -> Mapping[str, int]:
        """Name in Redis -> pid."""
        return {each.rq_worker: each.pid for each in self.state.read_processes() if each.rq_worker}

    def apply(self, sets: Mapping[str, int]) -> None:
        """Create these ReplicaSets (name -> replicas) of a usual pod, ``IN_FLIGHT`` at once; the namespace too."""

        async def create() -> list[Answer]:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            await self.client.create(NAMESPACES, "", orjson.dumps(namespace))
            bodies = [orjson.dumps(replicaset(name, count)) for name, count in sets.items()]
            return list(await asyncio.gather(*(self.client.create(REPLICASETS, NAMESPACE, body) for body in bodies)))

        for answer in self.io.run(create()):
            if not answer.ok:
                raise Unfit(f"a ReplicaSet was refused: {answer.message}")

    def scale(self, name: str, replicas: int) -> None:
        """As kubectl scale does it."""
        body = orjson.dumps({"spec": {"replicas": replicas}})
        answer: Answer = self.io.run(self.client.patch(REPLICASETS, NAMESPACE, name, body, subresource="scale"))
        if not answer.ok:
            raise Unfit(f"{name} could not be scaled: {answer.message}")

    def admin(self, fault: dict[str, Any] | None) -> None:
        """Put one fault in force, or end all."""
        method, body = ("DELETE", b"") if fault is None else ("POST", orjson.dumps(fault))
        answer = self.io.run(self.client.transport.write(method, "/_oarlock/faults", body))
        if not answer.ok:
            raise Unfit(f"no fault could be set: {answer.message}")

    def await_true(self, reached: Callable[[], bool], what: str, limit_s: float = 60.0, every_s: float = 0.005) -> None:
        """Wait. Raises Unfit after ``limit_s``, UpEnded where the tree is gone."""
        deadline = time.monotonic() + limit_s
        while not reached():
            if time.monotonic() > deadline:
                raise Unfit(f"gave up waiting for {what} after {limit_s:.0f} s; see {self.state.logs}")
            self._up.check()
            time.sleep(every_s)

    def position(self, resource: Resource) -> str:
        """The resourceVersion of now."""

        async def first() -> Page:
            async with aclosing(self.client.list_pages(resource, limit=1)) as pages:
                return await anext(pages)

        return self.io.run(first()).rv

    def count_pods(self) -> int:
        """Pods of the ReplicaSets that live now."""

        async def count() -> int:
            found = 0
            async with aclosing(self.client.list_pages(PODS, namespace=NAMESPACE)) as pages:
                async for page in pages:
                    found += len(page.items)
            return found

        return self.io.run(count())

    def settled(self, sets: Mapping[str, int]) -> bool:
        """Whether the status of each says that all it asks for is there and available."""

        async def look() -> list[Answer]:
            return list(await asyncio.gather(*(self.client.get(REPLICASETS, NAMESPACE, name) for name in sets)))

        for answer, wanted in zip(self.io.run(look()), sets.values(), strict=True):
            _, found = wire.replicaset_from_json(answer.body)
            counts = {found.replicas, found.status.replicas, found.status.ready, found.status.available}
            if counts != {wanted} or found.status.observed_generation < found.generation:
                return False
        return True

    def quiet(self) -> bool:
        """Whether no key is queued, in work or delayed, and at least one worker waits."""
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.hlen(self.keys.state("replicaset"))
            pipe.hlen(self.keys.locks("replicaset"))
            pipe.zcard(self.keys.delayed("replicaset"))
            return not any(pipe.execute())


def replicaset(name: str, replicas: int) -> dict[str, Any]:
    """A ReplicaSet of a usual web server."""
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": NAMESPACE}
    container = {
        "name": "web",
        "image": "ghcr.io/example/web:1.27.3",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "LOG_LEVEL", "value": "info"}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
