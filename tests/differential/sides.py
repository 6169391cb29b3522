"""The two sides: each a fresh etcd, kube-apiserver and simulated nodes, and then upstream's manager or a fleet.

Of upstream's manager both have the garbage collector, the namespace and the quota controllers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from realserver.processes import Running
from realserver.server import RealServer

from broker.embedded_redis import EmbeddedRedis

ROOT = Path(__file__).parents[2]
OTHERS = ("namespace", "garbagecollector", "resourcequota")
OURS = ("replicaset", "replicationcontroller", "daemonset")
_START_LIMIT_S = 300.0
_PATIENT = {"OARLOCK_KUBE_API_QPS": "0", "OARLOCK_REQUEST_TIMEOUT_MS": "30000", "OARLOCK_LEASE_MS": "15000"}
"""Upstream's manager waits for an answer for ever. Where many scenarios play at once an answer may take longer than the
fleet's usual 4 s, and be told as a failed create."""

SideName = Literal["upstream", "fleet"]
SIDES: tuple[SideName, SideName] = ("upstream", "fleet")


class SideBroken(Exception):
    """A program of a side has ended or did not start; the text ends with what it said."""


class Side:
    """Use as a context manager, from the main thread. `kubeconfig` is that of its server."""

    def __init__(self, name: SideName, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self._ending = ExitStack()
        self._running: list[Running] = []

    def __enter__(self) -> Side:
        try:
            server = self._ending.enter_context(RealServer(self._folder / "server"))
            self.kubeconfig = server.kubeconfig
            controllers = (*OTHERS, *OURS) if self.name == "upstream" else OTHERS
            self._running.append(server.run_controllers(*controllers))
            flags = ["--count", "0", "--schedule", "--gone-node-ms", "300", "--heartbeat-s", "0"]
            self._oarlock(["nodes", "run", *flags], "nodes", "ready: ")
            if self.name == "fleet":
                self._start_fleet()
        except BaseException:
            self._ending.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def check(self) -> None:
        """Raises SideBroken when one of its programs has ended."""
        for each in self._running:
            if not each.alive:
                raise SideBroken(f"{self.name}: {each.name} ended with code {each.process.returncode}:\n{each.told()}")

    def _start_fleet(self) -> None:
        redis = self._ending.enter_context(EmbeddedRedis(self._folder / "redis"))
        for number in (1, 2):
            self._oarlock(["ingest", "--embedded", "--redis", redis.url("ingestor")], f"ingestor-{number}", "{")
        self._oarlock(["worker", "--workers", "2", "--redis", redis.url("worker")], "workers", "")

    def _oarlock(self, arguments: list[str], name: str, first_line: str) -> None:
        """Start a command of ours, and wait until it prints a line that begins so."""
        ours = {key: value for key, value in os.environ.items() if not key.startswith("OARLOCK_")}
        command = [sys.executable, "-m", "workers.cli", *arguments, "--kubeconfig", str(self.kubeconfig)]
        log = self._folder / f"{name}.log"
        running = Running(command, log, cwd=ROOT, env={**ours, **_PATIENT})
        self._ending.callback(running.kill)
        self._running.append(running)
        if first_line:
            _wait(lambda: any(line.startswith(first_line) for line in _lines(log)), self.check, f"{self.name}: {name}")


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()


def _wait(reached: Callable[[], bool], check: Callable[[], None], what: str) -> None:
    ends_s = time.monotonic() + _START_LIMIT_S
    while not reached():
        check()
        if time.monotonic() > ends_s:
            raise SideBroken(f"{what} was not ready within {_START_LIMIT_S:g} s")
        time.sleep(0.05)
