"""The fleet in which faults are planted: an `oarlock up` of real processes, and a second ingestor behind a proxy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import IO, Any
from urllib.parse import urlsplit

from oarlock.broker import epoch
from oarlock.broker.inspect import Inspector
from tests import ROOT
from tests.e2e.e2e_helpers import RunningUp, environment, stopped
from tests.planted.api import Api, replicaset

OWNERS = {("shop", "cart"): 3, ("batch", "crunch"): 3, ("web", "front"): 3}
"""(namespace, name) -> replicas, of the ReplicaSets that are there from the beginning."""
REST_PAUSE_S = 0.1


class Fleet:
    """Use it as a context manager. ``seed``: of what faults draw."""

    def __init__(self, root: Path, seed: int) -> None:
        self.seed, self._root = seed, root
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

    def start(self, name: str, *arguments: str, **more: str) -> subprocess.Popen[Any]:
        """An oarlock command that stays; it ends with the fleet."""
        with (self._root / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "oarlock.cli", *arguments]
            mine = environment(OARLOCK_EMBEDDED="1", **more)
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, env=mine)
        self._started.append(process)
        return process

    def end(self, process: subprocess.Popen[Any]) -> None:
        """End one that ``start`` has begun."""
        self._started.remove(process)
        stopped(process, 15, 20)

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

    def try_again(self, namespace: str, name: str) -> None:
        """Not when its pause is over but now, as the page says."""
        shell(f"oarlock requeue rs/{namespace}/{name}", OARLOCK_STATE_DIR=str(self.up.state.root))

    def rest(self, within_s: float) -> None:
        """Wait until no key waits and every ReplicaSet has its pods. Raises AssertionError."""
        deadline_s = time.monotonic() + within_s
        while busy := self._busy():
            assert time.monotonic() < deadline_s, f"no rest within {within_s:g} s: {busy}"
            time.sleep(REST_PAUSE_S)

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
        kubeconfig = self._root / "kubeconfig-of-the-second-ingestor"
        kubeconfig.touch(0o600)
        kubeconfig.write_text(self.up.state.kubeconfig.read_text().replace(target, f"127.0.0.1:{port}"))
        url = self.up.state.read_redis_url()
        self.start("ingestor", "ingest", OARLOCK_REDIS_URL=url, OARLOCK_KUBECONFIG=str(kubeconfig))


def shell(script: str, **more: str) -> str:
    """What a person sees who runs these lines. Raises AssertionError where one fails: it would name nothing."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    done = subprocess.run(
        ["bash", "-euc", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=environment(PATH=path, **more),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
