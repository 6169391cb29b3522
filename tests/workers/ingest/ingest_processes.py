"""Ingestors as processes of their own, over the embedded API server and the embedded Redis."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from oarlock.controllers.registry import WATCHED
from oarlock.sandbox.host import free_port
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.death_signal import command_dying_with_this_process
from oarlock.workers.process.kinds import cluster_resource
from oarlock.workers.process.settings import Settings
from tests import ROOT
from tests.workers.ingest.ingest_rig import Server

QUICK = Settings(lease_ms=1_000, renew_every_ms=300, request_timeout_ms=500, send_margin_ms=100)
"""D is three seconds."""
RUN = (
    "import sys, logging; from oarlock.workers.process.settings import Settings; "
    "from oarlock.controllers.builtin import register_builtin; register_builtin(); "
    "from oarlock.workers.supervisor.ingest_command import run_ingestor; "
    "logging.basicConfig(level=logging.INFO); wait_s = float(sys.argv[1]); "
    "sys.exit(run_ingestor(Settings.from_env(), embedded=True, wait_for_redis_s=wait_s))"
)


def until(condition: Callable[[], bool], limit_s: float = 15.0, what: str = "it did not happen") -> float:
    """Seconds until a condition holds."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() - began_s < limit_s, what
        time.sleep(0.01)
    return time.monotonic() - began_s


class Child:
    """A process whose standard output is read line by line."""

    def __init__(self, command: list[str], env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command_dying_with_this_process(command),
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.errors: list[str] = []
        self._readers = [threading.Thread(target=each, daemon=True) for each in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        for text in self.process.stdout or ():
            self.lines.put(json.loads(text))

    def _read_errors(self) -> None:
        for text in self.process.stderr or ():
            self.errors.append(text)

    def said(self, limit_s: float = 30.0) -> dict[str, Any]:
        """The next line it prints."""
        try:
            return self.lines.get(timeout=limit_s)
        except queue.Empty:
            raise AssertionError("".join(self.errors) or "it said nothing") from None

    def ended(self, limit_s: float) -> int:
        """The exit code of a process that ends by itself; all that it said has been read."""
        code = self.process.wait(limit_s)
        for reader in self._readers:
            reader.join(limit_s)
        return code

    def end(self, signum: signal.Signals = signal.SIGTERM, limit_s: float = 30.0) -> tuple[int, float]:
        """(exit code, seconds it took)."""
        began_s = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signum)
        return self.process.wait(limit_s), time.monotonic() - began_s


class Cluster:
    """The embedded API server as a process."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        self.kubeconfig = folder / "kubeconfig"
        self.port = free_port()
        self.start()

    def start(self) -> None:
        given = ["--port", str(self.port), "--kubeconfig", str(self.kubeconfig), "--admin", "--bookmark-s", "1"]
        self.child = Child([sys.executable, "-m", "oarlock.sandbox.apiserver", *given, *self.options])
        self.url = self.child.said()["url"]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else orjson.dumps(body),
            headers={"Content-Type": "application/json" if method != "PATCH" else "application/merge-patch+json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return orjson.loads(answer.read())

    def create_owner(self, name: str, app: str) -> str:
        """Returns its uid."""
        template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        body = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": app}}, "template": template},
        }
        made = self.ask("POST", "/apis/apps/v1/namespaces/default/replicasets", body)
        return str(made["metadata"]["uid"])

    def create_pod(self, name: str, app: str, owner: str = "", owner_uid: str = "") -> None:
        meta: dict[str, Any] = {"name": name, "labels": {"app": app}}
        if owner:
            ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner_uid, "controller": True}
            meta["ownerReferences"] = [ref]
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        self.ask("POST", "/api/v1/namespaces/default/pods", body)

    def cached(self, resource: str) -> dict[str, tuple[str, bytes]]:
        """What the cache must be now."""
        kind = WATCHED[resource]
        found = {}
        for item in self.ask("GET", cluster_resource(kind).collection())["items"]:
            rv, obj = kind.from_json(orjson.dumps(item))
            found[obj.key] = rv, kind.encode(obj)
        return found


class Stage:
    """A cluster, a Redis, ingestors."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.cluster = Cluster(folder, *options)
        self.redis = EmbeddedRedis(folder / "redis").start()
        self.settings = replace(QUICK, redis_url=self.redis.url("ingestor"), kubeconfig=str(self.cluster.kubeconfig))
        self.server = Server(self.redis.url("admin"))
        self.children: list[Child] = [self.cluster.child]

    def ingestor(self, wait_for_redis_s: float = 0.0, **settings: Any) -> Child:
        child = Child([sys.executable, "-c", RUN, str(wait_for_redis_s)], replace(self.settings, **settings).to_env())
        self.children.append(child)
        return child

    def in_step(self) -> bool:
        """Whether the cache is what the API has."""
        number = self.server.epoch().epoch
        return all(self.server.cache(number, each) == self.cluster.cached(each) for each in WATCHED)

    def close(self) -> None:
        for child in (*self.children, self.cluster.child):
            child.end(signal.SIGKILL)
        self.redis.stop()
