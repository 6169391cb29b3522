"""The two that are compared, upstream's kube-controller-manager and a fleet: started, counted and ended."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import redis

from benchmarks.versus_kcm_place import Place, await_true, descendants
from oarlock.broker.connection.client import connect
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis

OPEN = (5_000, 10_000)
"""Requests a second and burst that limit nobody here."""
DEFAULTS = (20, 30)
"""Of upstream's manager, and of the fleet's processes."""


class Side(Protocol):
    """``roles``: (what it does, pid) of every process that belongs to it."""

    name: str

    def __enter__(self) -> Side: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def roles(self) -> list[tuple[str, int]]: ...


class Upstream:
    """kube-controller-manager with some controllers, separated by commas. With ``standby`` a second one, and leader
    election in both.
    """

    name = "upstream"

    def __init__(self, place: Place, chosen: str, limit: tuple[int, int], *, standby: bool = False) -> None:
        self._place, self._chosen, self._limit, self.standby = place, chosen, limit, standby
        self.running: list[Any] = []

    def __enter__(self) -> Upstream:
        self.start_one()
        return self

    def start_one(self) -> None:
        from tests.realserver.programs import obtain, version_of
        from tests.realserver.versions import controllers, known

        name, (qps, burst) = "kube-controller-manager", self._limit
        version = version_of(name)
        flags = known(
            version,
            f"--controllers={controllers(version, self._chosen.split(','))}",
            f"--leader-elect={str(self.standby).lower()}",
            "--port=0",
            "--secure-port=0",
            f"--kube-api-qps={qps}",
            f"--kube-api-burst={burst}",
        )
        self.running.append(self._place.run_beside([str(obtain(name)[name]), *flags], "upstream", {}))

    def __exit__(self, *_: object) -> None:
        for each in self.running:
            each.kill()

    def roles(self) -> list[tuple[str, int]]:
        return [("manager", each.process.pid) for each in self.running]


class Fleet:
    """Redis, ingestors and workers, as `oarlock up` runs them."""

    name = "fleet"

    def __init__(self, place: Place, limit: tuple[int, int], *, workers: int, ingestors: int) -> None:
        self._place, self._limit, self._workers, self._ingestors = place, limit, workers, ingestors
        self.state = place.folder / "fleet"
        self._redis = EmbeddedRedis(place.folder / "redis")
        self._running: list[tuple[str, Any]] = []

    def __enter__(self) -> Fleet:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        self._redis.start()
        self.state.mkdir(exist_ok=True)
        qps, burst = self._limit
        env = {"OARLOCK_KUBE_API_QPS": "0" if self._limit == OPEN else str(qps), "OARLOCK_KUBE_API_BURST": str(burst)}
        oarlock = [sys.executable, "-m", "oarlock.cli"]
        for _ in range(self._ingestors):
            ingest = [*oarlock, "ingest", "--embedded", "--redis", self._redis.url("ingestor")]
            self._running.append(("ingestor", self._place.run_beside(ingest, "ingestor", env)))
        work = [*oarlock, "worker", "--workers", str(self._workers), "--redis", self._redis.url("worker")]
        work += ["--state-dir", str(self.state)]
        self._running.append(("worker", self._place.run_beside(work, "workers", env)))
        listed = self.state / "workers.json"
        await_true(lambda: self._all_alive() and listed.exists(), "the fleet", 60.0)

    def _all_alive(self) -> bool:
        for name, each in self._running:
            assert each.alive, f"{name} ended: {each.told()}"
        return True

    def __exit__(self, *_: object) -> None:
        for _, each in self._running:
            each.end()
        self._redis.stop()
        for each in self.state.glob("*"):
            each.unlink()

    def roles(self) -> list[tuple[str, int]]:
        """A supervisor counts as a worker."""
        started = [(role, pid) for role, each in self._running for pid in descendants(each.process.pid)]
        return [("redis", self._redis.pid), *started]

    def admin(self) -> redis.Redis:
        return connect(self._redis.url("admin"), timeout_s=30.0)


def peak_kb(pid: int) -> int:
    """The most memory that was resident at once, pages shared with others included."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise ValueError(f"no VmHWM of {pid}")
