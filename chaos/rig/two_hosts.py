"""Two equal hosts over a pair of Redis servers: each an ingestor and a supervisor with its workers, and the API beside.

The fleet has no single Redis here, so Redis is not watched: such a campaign is judged by what the API shows alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from oarlock.chaos.faults.network import Wire
from oarlock.chaos.rig import processes
from oarlock.chaos.rig.redis_pair import Pair, PairFailed, Server
from oarlock.chaos.rig.rig import Rig, RigFailed, Target, descends_from

READY_MS, TERMINATE_MS, PODS_PER_NODE = 500, 300, 1_000
"""As `oarlock up` has them."""


class TwoHosts(Rig):
    """As ``Rig``. Without Sentinels each host reaches its Redis through a wire that can be laid to either server."""

    def __init__(self, root: Path, *, nodes: int, workers: int, settings: Mapping[str, str], sentinels: bool) -> None:
        super().__init__(root, nodes=nodes, workers=workers, ingestors=2, settings=settings)
        self.pair = Pair(self._root / "pair", sentinels=sentinels)
        self.wires = [] if sentinels else [Wire("redis", self._root / f"wire-{host}.log", host) for host in (0, 1)]
        self._api: asyncio.subprocess.Process | None = None
        self._url = ""

    @property
    def api_url(self) -> str:
        return self._url

    def redis_url(self) -> str:
        return self.pair.url("admin", self.pair.master)

    async def start(self) -> None:
        self._begun_s = time.monotonic()
        self.state.root.mkdir(parents=True, exist_ok=True)
        try:
            await self.pair.start()
            for wire in self.wires:
                await wire.start(f"127.0.0.1:{self.pair.master.port}")
        except (PairFailed, OSError) as error:
            raise RigFailed(str(error)) from None
        await self._start_api()
        for host in (0, 1):
            self._host(host).mkdir(exist_ok=True)
            count = ["--workers", str(self._counts[host]), "--shards", "1"]
            count += ["--state-dir", str(self._host(host))]
            self._start_at("ingestor", host, ["ingest", "--shards", "1"], "ingestor")
            self._start_at("supervisor", host, ["worker", *count], "worker")
        await self._until(self._has_workers, "not all workers were up", self._root)

    async def _start_api(self) -> None:
        ready = self._root / "api.json"
        words = ["--state-dir", str(self.state.root), "--audit-log", str(self.state.audit_log), "--audit-full"]
        words += [
            "--admin",
            "--nodes",
            str(self._nodes),
            "--pods-per-node",
            str(PODS_PER_NODE),
            "--ready-file",
            str(ready),
        ]
        words += ["--terminate-ms", str(TERMINATE_MS), "--ready-ms", str(READY_MS), "--ready-jitter-ms", str(READY_MS)]
        command = [sys.executable, "-m", "oarlock.sandbox.apiserver", *words]
        self._api = await self._spawn(command, self._root / "api.log")
        await self._until(ready.exists, "the API server was not ready", self._root / "api.log")
        self._url = str(json.loads(ready.read_text())["url"])

    def check(self) -> None:
        if self._api is not None and self._api.returncode is not None:
            raise RigFailed(f"the API server ended with exit code {self._api.returncode}; see {self._root / 'api.log'}")

    def targets(self, role: str) -> list[Target]:
        found = [
            Target(role, process.pid, f"{role}-{host}", host)
            for (kind, host), process in self._beside.items()
            if kind == role and process.returncode is None
        ]
        if role == "worker":
            for host in (0, 1):
                found += self._workers_in(self._host(host), host)
        return [each for each in found if descends_from(each.pid, os.getpid())]

    async def lay(self, host: int, server: Server) -> None:
        """Lead a host's Redis connections to this server from now on; open ones are reset."""
        await self.wires[host].turn(f"to 127.0.0.1:{server.port}")

    def _start_at(self, role: str, host: int, command: list[str], user: str) -> None:
        url = self.pair.url(user)
        if self.wires:
            url = self.wires[host].leading_to(url)
        extra = {**processes.servers(url, self.state.kubeconfig), "OARLOCK_METRICS_BIND_ADDRESS": "0"}
        run = partial(self._run, command, self._root / f"{role}-{host}.log", extra)
        self._restarters.append(asyncio.create_task(self._keep(role, host, run)))

    async def stop(self) -> None:
        for restarter in self._restarters:
            restarter.cancel()
        await asyncio.gather(*self._restarters, return_exceptions=True)
        await processes.end([*self._beside.values(), self._api])
        for wire in self.wires:
            await wire.stop()
        self.pair.stop()
