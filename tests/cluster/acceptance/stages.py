"""Where the acceptance suite plays: an API server, simulated nodes and a fleet, all in processes of their own.

OARLOCK_TEST_SERVER says which server: `embedded` (the default), or `real`: etcd and upstream's kube-apiserver, and of
upstream's kube-controller-manager what is no business of the fleet. OARLOCK_TEST_KUBECONFIG names a cluster that
exists instead; its own controllers of these kinds have to be switched off, and it is given nodes if it has none.

With OARLOCK_TEST_CONTROLLERS=upstream the real server is given upstream's own controllers of these kinds and no fleet:
what fails then is a test that asks for more, or for something else, than upstream does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.kinds import controller_names
from tests import ROOT
from tests.cluster.acceptance.middleman import Middleman
from tests.e2e.e2e_helpers import environment, oarlock
from tests.e2e.e2e_kubectl import Kubectl, until
from tests.realserver.processes import Running
from tests.realserver.server import RealServer
from tests.realserver.versions import MAX_SURGE_SINCE

NODES, INGESTORS = 4, 2
OTHERS = ("namespace", "garbagecollector", "resourcequota")
"""Of upstream's controllers: what the embedded server does by itself."""
OURS = tuple(controller_names())
"""Of upstream's controllers: those whose work the fleet does."""

UNHURRIED = {"OARLOCK_LEASE_MS": "5000", "OARLOCK_RENEW_EVERY_MS": "1000", "OARLOCK_REQUEST_TIMEOUT_MS": "4000"}
"""The defaults: a busy machine keeps to them, and nothing here waits for a lease to end."""
BRISK = {"OARLOCK_LEASE_MS": "2500", "OARLOCK_RENEW_EVERY_MS": "600", "OARLOCK_REQUEST_TIMEOUT_MS": "1500"}
"""For tests that wait until no request can be under way any more: 6.5 s with these."""


@dataclass(frozen=True)
class Stage:
    """`nodes`: names of the nodes every DaemonSet runs on; `version`: (major, minor) of the server; `server`: the
    real one that was started for the suite, if it was; `embedded`: whether it is ours. `fleet`: its processes; none
    where upstream's controllers play. `redis_url`: its Redis. `middleman`: through whom the fleet speaks to the server,
    if through anybody.
    """

    kubeconfig: Path
    nodes: tuple[str, ...]
    version: tuple[int, int]
    server: RealServer | None
    embedded: bool = False
    fleet: tuple[Running, ...] = ()
    redis_url: str = ""
    middleman: Middleman | None = None

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """The fleet's ingestors are stopped: no process of it hears anything of the cluster, and the workers go on."""
        ingestors = [each.process for each in self.fleet if each.name.startswith("ingestor")]
        assert len(ingestors) == INGESTORS
        for each in ingestors:
            each.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for each in ingestors:
                each.send_signal(signal.SIGCONT)

    def await_heard(self, *keys: str) -> None:
        """Wait until the fleet has heard of all that it wrote to these (rs/namespace/name)."""

        def heard() -> bool:
            told = [oarlock("explain", key, "--redis", self.redis_url) for key in keys]
            assert not any(each.returncode for each in told), told
            return not any("waits to read its own writes" in each.stdout for each in told)

        until(heard, 30, f"the writes to {', '.join(keys)} were heard of")

    def look_again(self, *keys: str) -> None:
        """Have the fleet take a turn over each key, and wait for the end of these turns."""
        done = oarlock("requeue", *keys, "--redis", self.redis_url)
        assert done.returncode == 0, done.stderr
        until(self._is_idle, 30, f"{', '.join(keys)} were looked at")

    def _is_idle(self) -> bool:
        done = oarlock("queue", "--redis", self.redis_url, "-o", "json")
        assert done.returncode == 0, done.stderr
        return not any(each["queued"] + each["in_work"] for each in json.loads(done.stdout))

    def change_nodes(self, *arguments: str) -> None:
        """`oarlock nodes ARGUMENTS`."""
        done = oarlock("nodes", *arguments, "--kubeconfig", str(self.kubeconfig))
        assert done.returncode == 0, done.stderr


def need_surge(stage: Stage) -> None:
    """Skip where a server is too old to keep a DaemonSet's maxSurge. The embedded one always does."""
    if not stage.embedded and stage.version < MAX_SURGE_SINCE:
        has, first = (".".join(map(str, each)) for each in (stage.version, MAX_SURGE_SINCE))
        pytest.skip(f"a server of {has} drops a DaemonSet's maxSurge: {first} keeps it")


with_own_server = pytest.mark.skipif(
    os.environ.get("OARLOCK_TEST_SERVER") != "real" or "OARLOCK_TEST_KUBECONFIG" in os.environ,
    reason="starts real servers of its own, as make test-cluster does unless it is given a cluster",
)


def by_upstream() -> bool:
    """Whether upstream's controllers play instead of the fleet."""
    return os.environ.get("OARLOCK_TEST_CONTROLLERS") == "upstream"


def beyond_upstream(why: str, since: tuple[int, int] = (99, 0), version: tuple[int, int] = (0, 0)) -> None:
    """Skip where upstream's controllers play, of a `version` before the one `since` which they do this too."""
    if by_upstream() and version < since:
        pytest.skip(f"upstream's controllers do not: {why}")


@contextmanager
def stage(folder: Path, *, with_middleman: bool = False) -> Iterator[Stage]:
    """Everything, running and ready; ended on the way out. A fleet with a middleman is one of BRISK times."""
    with ExitStack() as ending:
        kubeconfig, server = ending.enter_context(_server(folder))
        client = Kubectl(kubeconfig, folder)
        nodes = _nodes(client)
        if not nodes:
            ending.callback(run_nodes(kubeconfig, folder).end)
            nodes = _nodes(client)
        middleman = ending.enter_context(Middleman(kubeconfig)) if with_middleman else None
        fleet, redis_url = list[Running](), ""
        if not by_upstream():
            redis = ending.enter_context(EmbeddedRedis(folder / "redis"))
            redis_url = redis.url("admin")
            seen = middleman.write_kubeconfig(folder / "through") if middleman else kubeconfig
            for each in run_fleet(redis, seen, folder, BRISK if middleman else UNHURRIED):
                ending.callback(each.kill)
                fleet.append(each)
        embedded = server is None and "OARLOCK_TEST_KUBECONFIG" not in os.environ
        yield Stage(kubeconfig, nodes, _version(client), server, embedded, tuple(fleet), redis_url, middleman)


@contextmanager
def _server(folder: Path) -> Iterator[tuple[Path, RealServer | None]]:
    named = os.environ.get("OARLOCK_TEST_KUBECONFIG")
    which = os.environ.get("OARLOCK_TEST_SERVER", "embedded")
    if named:
        yield Path(named), None
    elif which == "real":
        with RealServer(folder / "server") as server:
            server.run_controllers(*OTHERS, *(OURS if by_upstream() else ()))
            yield server.kubeconfig, server
    elif which == "embedded":
        command = [sys.executable, "-m", "oarlock.sandbox.apiserver", "--admin", "--state-dir", str(folder / "server")]
        running = _ours(command, folder / "server.log")
        try:
            ready = json.loads(_first_line(running, "{"))
            yield Path(ready["kubeconfig"]), None
        finally:
            running.kill()
    else:
        raise ValueError(f"OARLOCK_TEST_SERVER={which}: embedded or real")


def run_nodes(kubeconfig: Path, folder: Path) -> Running:
    running = _oarlock(
        f"nodes run --count {NODES} --schedule --remove --gone-node-ms 1000 --terminate-ms 100".split(),
        folder / "nodes.log",
        kubeconfig,
    )
    _first_line(running, "ready: ")
    return running


def run_fleet(
    redis: EmbeddedRedis, kubeconfig: Path, folder: Path, times: dict[str, str] = UNHURRIED
) -> Iterator[Running]:
    for number in range(1, INGESTORS + 1):
        command = ["ingest", "--embedded", "--redis", redis.url("ingestor")]
        ingestor = _oarlock(command, folder / f"ingestor-{number}.log", kubeconfig, times)
        yield ingestor
        _first_line(ingestor, "{")
    command = ["worker", "--workers", "2", "--redis", redis.url("worker")]
    yield _oarlock(command, folder / "workers.log", kubeconfig, times)


def _oarlock(arguments: list[str], log: Path, kubeconfig: Path, times: dict[str, str] = UNHURRIED) -> Running:
    command = [sys.executable, "-m", "oarlock.cli", *arguments, "--kubeconfig", str(kubeconfig)]
    return _ours(command, log, times)


def _ours(command: list[str], log: Path, times: dict[str, str] = UNHURRIED) -> Running:
    return Running(command, log, cwd=ROOT, env=environment(**times, OARLOCK_KUBE_API_QPS="0"))


def _first_line(running: Running, beginning: str) -> str:
    """The first line in its log that begins so."""

    def found() -> str:
        assert running.alive, f"{running.name} ended:\n{running.told()}"
        lines = running.log.read_text(errors="replace").splitlines()
        return next((line for line in lines if line.startswith(beginning)), "")

    line: str = until(found, 60, f"{running.name} is ready")
    return line


def _nodes(client: Kubectl) -> tuple[str, ...]:
    return tuple(sorted(node["metadata"]["name"] for node in client.items("nodes")))


def _version(client: Kubectl) -> tuple[int, int]:
    said: dict[str, Any] = json.loads(client.run("get", "--raw", "/version"))
    return int(said["major"]), int(said["minor"].rstrip("+"))
