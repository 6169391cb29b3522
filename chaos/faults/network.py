"""The network between host 2 and the rest: two proxies, each a process of its own (``proxy``)."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

from oarlock.chaos.rig import processes

REDIS, API = "redis", "api"
ANSWER_S = 10.0


class Wire:
    """One proxy towards ``host:port``. ``start``, ``turn`` to a mode, ``stop`` in any case."""

    def __init__(self, name: str, log: Path, seed: int) -> None:
        self.name, self._log, self._seed = name, log, seed
        self._process: asyncio.subprocess.Process | None = None
        self.port = 0

    async def start(self, target: str) -> None:
        """Only the main thread may. Raises OSError where it does not come up."""
        command = [sys.executable, "-m", "oarlock.chaos.faults.proxy", target, str(self._seed)]
        self._process = await processes.start(command, self._log, talks=True)
        self.port = int((await self._line())["port"])

    async def turn(self, mode: str) -> int:
        """Begin a mode. How often the last one struck. Raises OSError once the proxy has ended."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{mode}\n".encode())
        return int((await self._line())["struck"])

    def leading_to(self, url: str) -> str:
        """The URL of the same server by way of this proxy."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}127.0.0.1:{self.port}").geturl()

    async def _line(self) -> dict[str, int]:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), ANSWER_S)
        except TimeoutError:
            line = b""
        if not line:
            raise OSError(f"the proxy towards the {self.name} has ended or says nothing; see {self._log}")
        told: dict[str, int] = json.loads(line)
        return told

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


class Network:
    """Both wires of host 2. That host is given ``kubeconfig`` and the Redis URL by way of its wire."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self.wires = {name: Wire(name, root / f"proxy-{name}.log", seed) for name in (REDIS, API)}
        self.kubeconfig = root / "kubeconfig-2"

    async def start(self, redis_url: str, api_url: str, kubeconfig: Path) -> None:
        """Raises OSError."""
        for name, url in ((REDIS, redis_url), (API, api_url)):
            await self.wires[name].start(urlsplit(url).netloc.rpartition("@")[2])
        here = urlsplit(api_url).netloc
        self.kubeconfig.touch(0o600)
        self.kubeconfig.write_text(kubeconfig.read_text().replace(here, f"127.0.0.1:{self.wires[API].port}"))

    async def stop(self) -> None:
        for wire in self.wires.values():
            await wire.stop()
