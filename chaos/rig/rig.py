"""The fleet under test: an `oarlock up` with further supervisors beside it, as on several hosts; processes by role.

A single supervisor would renew the leases of a frozen worker. Only with two can one host be frozen as a whole, so that
the other takes its keys over.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from oarlock.chaos.faults.network import REDIS, Network
from oarlock.chaos.rig import processes
from oarlock.sandbox.up.state_dir import StateDir

UP_LIMIT_S = 60.0
AGAIN_S = 0.1
COMMAND = (sys.executable, "-m", "oarlock.cli")


class Target(NamedTuple):
    """A process that can be hit. ``fleet``: 0 of `oarlock up`, else the number of its host. ``name``: as in locks."""

    role: str
    pid: int
    name: str
    fleet: int


class RigFailed(Exception):
    """A part of it did not start, or ended by itself; one line."""


class Rig:
    """``start``, then ``targets``; ``stop`` in any case.

    ``root``: for the state directories, ``root/up`` and ``root/host-1`` ..., and for what they say. ``settings``:
    environment for every process of ours. ``network``: between the further hosts and everything else, if it is to be
    bad. ``shards``: into how many the fleet is divided. ``hosts``: how many. ``ingestors_beside``: whether the further
    ones have an ingestor each. ``command``: what stands for the command `oarlock`.
    """

    def __init__(
        self,
        root: Path,
        *,
        nodes: int,
        workers: int,
        ingestors: int,
        settings: Mapping[str, str],
        network: Network | None = None,
        shards: int = 1,
        hosts: int = 2,
        ingestors_beside: bool = False,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._root, self._command = root.absolute(), command
        self._network, self._shards = network, str(shards)
        self.state = StateDir(self._root / "up")
        self._counts = [(workers + hosts - 1 - host) // hosts for host in range(hosts)]
        self._nodes, self._ingestors, self._environment = nodes, ingestors, {**os.environ, **settings}
        self._ingestors_beside = ingestors_beside
        self._up: asyncio.subprocess.Process | None = None
        self._beside: dict[tuple[str, int], asyncio.subprocess.Process] = {}
        """The processes of the further hosts, by role and host."""
        self._restarters: list[asyncio.Task[None]] = []
        self._begun_s = 0.0

    @property
    def api_url(self) -> str:
        """The API server's."""
        return str(self.state.read_up()["api_url"])

    def redis_url(self) -> str:
        """The admin's URL of the Redis."""
        return self.state.read_redis_url()

    async def start(self) -> None:
        """Bring all up and wait until turns may begin. Raises RigFailed. Only the main thread may call this."""
        self._begun_s = time.monotonic()
        self._root.mkdir(parents=True, exist_ok=True)
        arguments = ["up", "--faults", "--no-api-token", "-v", "--state-dir", str(self.state.root)]
        arguments += ["--nodes", str(self._nodes), "--workers", str(self._counts[0])]
        arguments += ["--ingestors", str(self._ingestors)]
        arguments += ["--shards", self._shards]
        self._up = await self._run(arguments, self._root / "up.log")
        await self._until(self._is_ready, "not everything was up", self._root)
        if self._network is not None:
            try:
                await self._network.start(self.redis_url(), self.api_url, self.state.kubeconfig)
            except OSError as error:
                raise RigFailed(str(error)) from None
        for host, count in enumerate(self._counts):
            if host and count:
                self._start_beside(host, count)
        await self._until(self._has_workers, "not all workers were up", self.state.logs)

    def _is_ready(self) -> bool:
        up = self._up.pid if self._up is not None else 0
        return self.state.owner_pid() == up and self.state.read_up().get("state") == "ready"

    def _has_workers(self) -> bool:
        return len(self.targets("worker")) >= sum(self._counts)

    async def _until(self, true: Callable[[], bool], what: str, see: Path) -> None:
        """Wait. Raises RigFailed where the start takes too long, or a part has ended."""
        while not true():
            self.check()
            if time.monotonic() > self._begun_s + UP_LIMIT_S:
                raise RigFailed(f"{what} within {UP_LIMIT_S:.0f} s; see {see}")
            await asyncio.sleep(0.02)

    def check(self) -> None:
        """Raises RigFailed once `oarlock up` has ended."""
        if self._up is not None and self._up.returncode is not None:
            log = self._root / "up.log"
            said = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
            raise RigFailed(
                f"`oarlock up` ended with exit code {self._up.returncode}: {' '.join(said) or 'it said nothing'}"
            )

    def targets(self, role: str) -> list[Target]:
        """The processes of a role that run now."""
        found = [Target(each.role, each.pid, each.name, 0) for each in self.state.read_processes() if each.role == role]
        roots = {0: self._up.pid if self._up else 0}
        for (kind, host), process in self._beside.items():
            if process.returncode is not None:
                continue
            if kind == role:
                found.append(Target(role, process.pid, f"{role}-{host + 1}", host))
            if kind == "supervisor":
                roots[host] = process.pid
                found += self._workers_in(self._host(host), host) if role == "worker" else []
        own = {process.pid for process in self._beside.values()}
        return [each for each in found if _belongs(each.pid, each.pid if each.pid in own else roots.get(each.fleet, 0))]

    def _host(self, host: int) -> Path:
        return self._root / f"host-{host}"

    def _workers_in(self, folder: Path, fleet: int) -> list[Target]:
        """The workers that a supervisor lists. The list may be its predecessor's, and a pid may be another's by now."""
        found = []
        for path in sorted(folder.glob("workers*.json")):
            try:
                listed = json.loads(path.read_text())
            except (OSError, ValueError):
                continue
            found += [Target("worker", each["pid"], each["name"], fleet) for each in listed if each["role"] == "worker"]
        return found

    def _start_beside(self, host: int, workers: int) -> None:
        """A further host: a supervisor, and an ingestor if it is to have one."""
        folder = self._host(host)
        folder.mkdir(exist_ok=True)
        url, kubeconfig = self.redis_url(), self.state.kubeconfig
        if self._network is not None:
            url, kubeconfig = self._network.wires[REDIS].leading_to(url), self._network.kubeconfig
        extra = {**processes.servers(url, kubeconfig), "OARLOCK_EMBEDDED": "1", "OARLOCK_METRICS_BIND_ADDRESS": "0"}
        shards = ["--shards", self._shards]
        commands = {"supervisor": ["worker", "--workers", str(workers), *shards, "--state-dir", str(folder)]}
        if self._ingestors_beside:
            commands["ingestor"] = ["ingest", *shards]
        for role, command in commands.items():
            run = partial(self._run, command, self._root / f"{role}-{host}.log", extra)
            self._restarters.append(asyncio.create_task(self._keep(role, host, run)))

    async def _keep(self, role: str, host: int, run: Callable[[], Awaitable[asyncio.subprocess.Process]]) -> None:
        """Run it again whenever it ends."""
        while True:
            process = self._beside[role, host] = await run()
            await process.wait()
            await asyncio.sleep(AGAIN_S)

    async def _run(
        self, arguments: list[str], log: Path, extra: Mapping[str, str] | None = None
    ) -> asyncio.subprocess.Process:
        return await self._spawn([*self._command, *arguments], log, extra)

    async def _spawn(
        self, command: list[str], log: Path, extra: Mapping[str, str] | None = None
    ) -> asyncio.subprocess.Process:
        environment = {**self._environment, **(extra or {})}
        return await processes.start(command, log, environment=environment, at_our_death=signal.SIGTERM)

    async def stop(self) -> None:
        """End everything; the audit log and the logs stay."""
        for restarter in self._restarters:
            restarter.cancel()
        await asyncio.gather(*self._restarters, return_exceptions=True)
        await processes.end([*self._beside.values(), self._up])
        if self._network is not None:
            await self._network.stop()


def _belongs(pid: int, root: int) -> bool:
    """Whether it runs in that process's tree, or is its root."""
    return (pid == root and _parent(pid) != 0) or descends_from(pid, root)


def descends_from(pid: int, ancestor: int) -> bool:
    """Whether it runs, as a child of that process or of one of its children or theirs."""
    for _ in range(4):
        pid = _parent(pid)
        if pid == ancestor != 0:
            return True
        if pid <= 1:
            break
    return False


def _parent(pid: int) -> int:
    """Pid of the parent; 0 where there is no such process, or only its corpse."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[1])
