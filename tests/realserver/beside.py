"""Commands of ours beside a real server: simulated nodes, and a fleet with a Redis of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.kinds import controller_names
from tests import ROOT
from tests.realserver.processes import Running

OURS = tuple(controller_names())
"""The controllers that a fleet has, as upstream 1.20 calls them."""
_START_LIMIT_S = 300.0


class Broken(Exception):
    """A program has ended or did not start; the text ends with what it said."""


class Beside:
    """A context manager, for the main thread; all ends with it. `called` is for messages, `settings` for commands.

    The folder, with a log of each program, stays.
    """

    def __init__(
        self, folder: Path, kubeconfig: Path, *, called: str = "", settings: Mapping[str, str] | None = None
    ) -> None:
        self._folder, self._kubeconfig = folder, kubeconfig
        self._mark = f"{called}: " if called else ""
        ours = {name: value for name, value in os.environ.items() if not name.startswith("OARLOCK_")}
        self._environment = {**ours, **(settings or {})}
        self._ending = ExitStack()
        self._running: list[Running] = []

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def watch(self, running: Running) -> None:
        """Have `check` look at another program too."""
        self._running.append(running)

    def start_nodes(self, *flags: str) -> None:
        """`oarlock nodes run`, until it says that its nodes are ready. Raises Broken."""
        self._start(["nodes", "run", *flags], "nodes", "ready: ")

    def start_fleet(self, *flags: str) -> EmbeddedRedis:
        """Two ingestors, and a supervisor with two workers; `flags` of both commands. Raises Broken."""
        redis = self._ending.enter_context(EmbeddedRedis(self._folder / "redis"))
        for number in (1, 2):
            ingest = ["ingest", *flags, "--embedded", "--redis", redis.url("ingestor")]
            self._start(ingest, f"ingestor-{number}", "{")
        self._start(["worker", *flags, "--workers", "2", "--redis", redis.url("worker")], "workers", "")
        return redis

    def check(self) -> None:
        """Raises Broken when one of the programs has ended."""
        for each in self._running:
            if not each.alive:
                raise Broken(f"{self._mark}{each.name} ended with code {each.process.returncode}:\n{each.told()}")

    def _start(self, arguments: list[str], name: str, first_line: str) -> None:
        """Start a command of ours, and wait until it prints a line that begins so."""
        command = [sys.executable, "-m", "oarlock.cli", *arguments, "--kubeconfig", str(self._kubeconfig)]
        log = self._folder / f"{name}.log"
        running = Running(command, log, cwd=ROOT, env=self._environment)
        self._ending.callback(running.kill)
        self._running.append(running)
        if first_line:
            self._wait(lambda: any(line.startswith(first_line) for line in _lines(log)), name)

    def _wait(self, reached: Callable[[], bool], name: str) -> None:
        ends_s = time.monotonic() + _START_LIMIT_S
        while not reached():
            self.check()
            if time.monotonic() > ends_s:
                raise Broken(f"{self._mark}{name} was not ready within {_START_LIMIT_S:g} s")
            time.sleep(0.05)


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()
