"""A real `oarlock up` under a benchmark: its processes, its Redis as the admin sees it, its API as a client does."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson

from benchmarks.report import Unfit
from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.keys import Keys
from oarlock.cli.run.underneath import Underneath
from oarlock.cluster.access import config
from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client
from oarlock.cluster.listing import Page
from oarlock.cluster.resources import DAEMONSETS, NAMESPACES, NODES, PODS, REPLICASETS, Resource
from oarlock.controllers.objects import wire
from oarlock.controllers.registry import all_queues
from oarlock.sandbox.up.state_dir import PREFIX, StateDir
from oarlock.workers.process.io_loop import IoLoop

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
        """Create these ReplicaSets (name -> replicas) of a usual pod; the namespace too."""
        self.create(REPLICASETS, [replicaset(name, count) for name, count in sets.items()])

    def create(self, resource: Resource, objects: Iterable[Mapping[str, Any]]) -> None:
        """Create objects, ``IN_FLIGHT`` at once; first the namespace, where there is none."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.io.run(self.client.create(NAMESPACES, "", orjson.dumps(namespace)))
        into = NAMESPACE if resource.namespaced else ""
        bodies = [orjson.dumps(each) for each in objects]
        self._all([self.client.create(resource, into, body) for body in bodies], f"create {resource.plural}")

    def scale(self, name: str, replicas: int) -> None:
        """As kubectl scale does it."""
        self._all([self._patch(REPLICASETS, name, {"spec": {"replicas": replicas}}, "scale")], f"scale {name}")

    def roll(self, name: str, image: str) -> None:
        """Give a DaemonSet's only container another image."""
        containers = [daemonset(name, image)["spec"]["template"]["spec"]["containers"][0]]
        self._all([self._patch(DAEMONSETS, name, {"spec": {"template": {"spec": {"containers": containers}}}})], "roll")

    def change_nodes(self, names: Iterable[str], change: Mapping[str, Any], subresource: str = "") -> str:
        """Patch each of these nodes, ``IN_FLIGHT`` at once. The last resourceVersion that came of it."""
        patches = [self._patch(NODES, name, change, subresource) for name in names]
        versions = [answer.resource_version for answer in self._all(patches, "change nodes")]
        return max(versions, key=lambda rv: (len(rv), rv))

    def _patch(
        self, resource: Resource, name: str, change: Mapping[str, Any], subresource: str = ""
    ) -> Coroutine[Any, Any, Answer]:
        into = NAMESPACE if resource.namespaced else ""
        return self.client.patch(resource, into, name, orjson.dumps(change), subresource=subresource)

    def _all(self, requests: list[Coroutine[Any, Any, Answer]], what: str) -> list[Answer]:
        """The answers, none of which may be a refusal."""

        async def together() -> list[Answer]:
            return list(await asyncio.gather(*requests))

        answers: list[Answer] = self.io.run(together(), 300.0)
        for answer in answers:
            if not answer.ok:
                raise Unfit(f"could not {what}: {answer.message}")
        return answers

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
        """Pods that live now in the namespace."""
        return len(self.names(PODS, NAMESPACE))

    def names(self, resource: Resource, namespace: str = "") -> list[str]:
        """Names of all there are."""

        async def read() -> list[str]:
            found: list[str] = []
            async with aclosing(self.client.list_pages(resource, namespace=namespace)) as pages:
                async for page in pages:
                    found += [orjson.loads(item)["metadata"]["name"] for item in page.items]
            return found

        names: list[str] = self.io.run(read(), 60.0)
        return names

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

    def quiet(self, *, but_delayed: bool = False) -> bool:
        """Whether no key of any queue is queued, in work or, unless these do not matter, delayed."""
        with self.redis.pipeline(transaction=True) as pipe:
            for queue in all_queues():
                pipe.hlen(self.keys.state(queue))
                pipe.hlen(self.keys.locks(queue))
                if not but_delayed:
                    pipe.zcard(self.keys.delayed(queue))
            return not any(pipe.execute())

    def queued(self) -> dict[str, int]:
        """How often a key has entered each queue so far: the turns there were, once all is quiet.

        Redis counts the entries of a stream from version 7 on; claims count those of the backlog. Raises Unfit for an
        older one.
        """
        counts = {}
        for queue in all_queues():
            stream = self.keys.stream(queue)
            told: Any = self.redis.xinfo_stream(stream) if self.redis.exists(stream) else {"entries-added": 0}
            if "entries-added" not in told:
                raise Unfit("counting turns takes Redis 7 or later")
            counts[queue] = int(told["entries-added"]) + int(self.redis.get(self.keys.passed(queue)) or 0)
        return counts

    def used_memory(self) -> int:
        """Bytes of Redis's own count."""
        return int(self.redis.info("memory")["used_memory"])


_IMAGE = "example/web:1.27.3"


def replicaset(name: str, replicas: int) -> dict[str, Any]:
    """A ReplicaSet of a usual web server."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": _labels(name)},
        "spec": {"replicas": replicas, "selector": {"matchLabels": _labels(name)}, "template": _template(name, _IMAGE)},
    }


def daemonset(name: str, image: str = _IMAGE, node_label: str = "") -> dict[str, Any]:
    """A DaemonSet of the same pod, updated on a tenth of its nodes at a time; ``node_label``: only where that is set
    to "yes".
    """
    template = _template(name, image)
    if node_label:
        template["spec"]["nodeSelector"] = {node_label: "yes"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": _labels(name)},
        "spec": {
            "selector": {"matchLabels": _labels(name)},
            "template": template,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        },
    }


def deployment(name: str, replicas: int, image: str = _IMAGE) -> dict[str, Any]:
    """A Deployment of the same pod, with the limits that a server gives it: a quarter more, a quarter fewer."""
    asked = replicaset(name, replicas)
    return {**asked, "kind": "Deployment", "spec": {**asked["spec"], "template": _template(name, image)}}


def _labels(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": NAMESPACE}


def _template(name: str, image: str) -> dict[str, Any]:
    container = {
        "name": "web",
        "image": image,
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "LOG_LEVEL", "value": "info"}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    return {"metadata": {"labels": _labels(name)}, "spec": {"containers": [container]}}
