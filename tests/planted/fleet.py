"""The fleet in which faults are planted: an `oarlock up` of real processes, and a second ingestor behind a proxy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import IO, Any
from urllib.parse import urlsplit

from oarlock.broker import epoch
from oarlock.broker.looks.inspect import Inspector
from tests import ROOT
from tests.e2e.e2e_helpers import RunningUp, environment, stopped, until
from tests.planted.api import Api, replicaset

OWNERS = {("shop", "cart"): 3, ("batch", "crunch"): 3, ("web", "front"): 3}
"""(namespace, name) -> replicas, of the ReplicaSets that are there from the beginning."""
FAILED = "it failed:"
"""Before what went wrong, in an answer that is none."""
READY_WITHIN_S, PAUSE_S = 60.0, 0.1


class Fleet:
    """Use it as a context manager. ``seed``: of what faults draw. ``folder``: where a person's commands are run."""

    def __init__(self, root: Path, seed: int) -> None:
        self.seed, self.folder = seed, root
        self.up = RunningUp(root / "state", "--ingestors", "1", "--faults")
        self.api = Api(self.api_url, self.up.token())
        self._started: list[subprocess.Popen[Any]] = []
        self._proxy: subprocess.Popen[str] | None = None

    @property
    def api_url(self) -> str:
        return str(self.up.state.read_up()["api_url"])

    def __enter__(self) -> Fleet:
        for namespace in {namespace for namespace, _ in OWNERS}:
            self.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for (namespace, name), replicas in OWNERS.items():
            path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
            self.api.call("POST", path, replicaset(namespace, name, replicas))
        self._start_second_ingestor()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.api.close()
        for process in reversed(self._started):
            stopped(process, 15, 20)
        if self._proxy is not None:
            self._proxy.kill()
            self._proxy.wait()
        self.up.stop()

    def start_operator(self, file: Path) -> None:
        """A user's own controllers, with the fleet's Redis and cluster."""
        self._start(
            "operator", "operator", str(file), "--workers", "1", "--install-crds", cluster=self.up.state.kubeconfig
        )

    def _start(self, name: str, *arguments: str, cluster: Path) -> None:
        """An oarlock command that stays; it ends with the fleet."""
        where = {"OARLOCK_REDIS_URL": self.up.state.read_redis_url(), "OARLOCK_KUBECONFIG": str(cluster)}
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "oarlock.cli", *arguments]
            mine = environment(OARLOCK_EMBEDDED="1", **where)
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, env=mine)
        self._started.append(process)

    @property
    def second_ingestor(self) -> int:
        """Its process number, which is part of its name."""
        return self._started[0].pid

    def network(self, mode: str) -> None:
        """Between the second ingestor and the API server, a mode of ``oarlock.chaos.faults.proxy``."""
        assert self._proxy is not None
        _pipe(self._proxy.stdin).write(f"{mode}\n")
        _pipe(self._proxy.stdin).flush()
        assert json.loads(_pipe(self._proxy.stdout).readline())["mode"] == mode

    def ask(self, script: str) -> str:
        """What a person sees who runs these lines for this fleet. The last line tells an exit code other than 0."""
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        done = subprocess.run(
            ["bash", "-euc", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=environment(PATH=path, OARLOCK_STATE_DIR=str(self.up.state.root)),
            timeout=60,
            check=False,
        )
        return done.stdout + (f"\n{FAILED} exit code {done.returncode}" if done.returncode else "")

    def connected(self) -> Api:
        """Another connection to the API server, for another thread."""
        return Api(self.api_url, self.up.token())

    def try_again(self, namespace: str, name: str) -> None:
        """A ReplicaSet that failed: not when its pause is over but now, as the page says."""
        self.ask(f"oarlock requeue rs/{namespace}/{name}")

    def kinds(self, version: str) -> list[str]:
        """The resources of a group and version that the API server serves; none where it does not know them."""
        groups = [each["preferredVersion"]["groupVersion"] for each in self.api.call("GET", "/apis")["groups"]]
        if version not in groups:
            return []
        return [each["name"] for each in self.api.call("GET", f"/apis/{version}")["resources"]]

    def rest(self, within_s: float) -> None:
        """Wait until no key waits and every ReplicaSet has its pods. Raises AssertionError."""
        until(lambda: not self._busy(), within_s, "the fleet is at rest", pause_s=PAUSE_S)

    def until(self, happened: Callable[[], bool], what: str) -> None:
        """Wait for it. Raises AssertionError."""
        until(happened, READY_WITHIN_S, what, pause_s=PAUSE_S)

    def _busy(self) -> list[str]:
        with closing(self.up.redis()) as client:
            inspector = Inspector(client, epoch.current(client).epoch)
            queues = [inspector.queue(name) for name in inspector.queues()]
        counts = ("queued", "in_work", "parked", "failing")  # a delayed key may only have something to forget
        busy = [f"{each.name}: {name}" for each in queues for name in counts if getattr(each, name)]
        for owner in self.api.call("GET", "/apis/apps/v1/replicasets")["items"]:
            wanted, available = owner["spec"]["replicas"], owner["status"].get("availableReplicas", 0)
            if wanted != available:
                busy.append(f"{owner['metadata']['name']}: {available} of {wanted} pods")
        return busy

    def _start_second_ingestor(self) -> None:
        target = urlsplit(self.api_url).netloc
        command = [sys.executable, "-m", "oarlock.chaos.faults.proxy", target, str(self.seed)]
        pipe = subprocess.PIPE
        self._proxy = subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=ROOT, env=environment(), text=True)
        port = json.loads(_pipe(self._proxy.stdout).readline())["port"]
        kubeconfig = self.folder / "kubeconfig-of-the-second-ingestor"
        kubeconfig.touch(0o600)
        kubeconfig.write_text(self.up.state.kubeconfig.read_text().replace(target, f"127.0.0.1:{port}"))
        self._start("ingestor", "ingest", cluster=kubeconfig)


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
