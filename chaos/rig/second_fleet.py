"""A second fleet on the same cluster: its own Redis, ingestor, supervisor and workers, and a Lease elsewhere.

Fleets find one another by one Lease in one namespace. This one is given another namespace, as by a careless operator,
so neither knows of the other. Each of its requests asks the server for a time limit of one millisecond more, by
which the audit log tells the two apart (``audit_log``).
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from oarlock.chaos.judge.evidence.evidence import Facts
from oarlock.chaos.rig import processes
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis, RedisNotStarted
from oarlock.sandbox.redis.redis_binary import NoRedisBinary
from oarlock.workers.process.settings import Settings

LEASE_NAMESPACE = "default"
WORKERS = 2


class SecondFleet:
    """``start`` it, and ``stop`` it in any case. ``settings``: of the first."""

    def __init__(self, root: Path, kubeconfig: Path, settings: Settings) -> None:
        self._root = root / "second-fleet"
        self._redis = EmbeddedRedis(self._root / "redis", log=self._root / "redis.log")
        self._kubeconfig = kubeconfig
        self.settings = replace(
            settings,
            request_timeout_ms=settings.request_timeout_ms + 1,
            fleet_id="second",
            lease_namespace=LEASE_NAMESPACE,
        )
        self._processes: list[asyncio.subprocess.Process] = []
        self._stopping = False
        self.from_s = 0.0
        self.to_s = 0.0

    async def start(self) -> None:
        """Only the main thread may. Raises OSError where it cannot be started."""
        self._root.mkdir(parents=True, exist_ok=True)
        self.from_s = time.time()
        try:
            self._redis.start()
        except (NoRedisBinary, RedisNotStarted) as error:
            raise OSError(str(error)) from None
        await self._run("ingest", [], self._environment("ingestor"))
        await self._run("worker", ["--workers", str(WORKERS)], self._environment("worker"))

    def _environment(self, user: str) -> Mapping[str, str]:
        return {
            **os.environ,
            **self.settings.to_env(),
            **processes.servers(self._redis.url(user), self._kubeconfig),
            "OARLOCK_EMBEDDED": "1",
        }

    def told(self, facts: Facts) -> Facts:
        """``facts``, with what the checker must know of it."""
        timeout_ms = self.settings.request_timeout_ms
        return facts._replace(second_from_s=self.from_s, second_to_s=self.to_s, second_timeout_ms=timeout_ms)

    async def _run(self, command: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        words = [sys.executable, "-m", "oarlock.cli", command, *arguments]
        process = await processes.start(words, self._root / f"{command}.log", environment=environment)
        self._processes.append(process)

    def ended(self) -> str:
        """Which of its processes has ended by itself; "" while all run."""
        codes = [process.returncode for process in self._processes]
        by_itself = not self._stopping and any(code is not None for code in codes)
        return f"exit codes {codes}; see {self._root}" if by_itself else ""

    async def stop(self) -> None:
        """Kill it. What it has sent may still take effect."""
        self._stopping = True
        for process in self._processes:
            if process.returncode is None:
                process.kill()
        for process in self._processes:
            await process.wait()
        self._processes.clear()
        self._redis.kill()
        self._redis.stop()
        if self.from_s and not self.to_s:
            self.to_s = time.time()
