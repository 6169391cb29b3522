"""The two operators as processes: started, killed with SIGKILL, started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from benchmarks.operators.usage import children_of, tree_of
from benchmarks.report import Unfit
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.death_signal import command_dying_with_this_process

ROOT = Path(__file__).parents[2]
STOP_LIMIT_S = 30.0
WORKERS_LIMIT_S = 20.0


class Side:
    """An operator. A context manager that stops it. ``roots``: pids whose trees are it, with what it alone needs."""

    title = ""
    patience_s = 0.0
    """How much longer than others it may do nothing after a kill, and still go on."""

    def start(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        """All of it, with SIGKILL."""
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def roots(self) -> list[int]:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Kopf(Side):
    """One process, as kopf runs: of several, all but one would stand still."""

    def __init__(self, directory: Path, kubeconfig: Path, namespace: str, *, generated: bool = False) -> None:
        self.title = "kopf, generated names" if generated else "kopf"
        self._log = directory / f"kopf{'-generated' * generated}.log"
        self._command = [sys.executable, "-m", "kopf", "run", "--standalone", "-n", namespace, "--quiet"]
        self._command += ["-m", "benchmarks.operators.pair_kopf"]
        self._environment = {"KUBECONFIG": str(kubeconfig), "GENERATED": "1" if generated else ""}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = run(self._command, self._environment, self._log)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        stop(self._process)

    def roots(self) -> list[int]:
        return [self._process.pid] if self._process is not None and self._process.poll() is None else []


class Fleet(Side):
    """`oarlock operator`: an ingestor, and a supervisor with workers; its Redis server is its own and lives on."""

    title = "oarlock"
    patience_s = 15.0  # the leases of the dead last 5 s, and its processes start

    def __init__(self, directory: Path, kubeconfig: Path, file: Path, workers: int, **environment: str) -> None:
        self._workers = workers
        self._redis = EmbeddedRedis(directory / "redis")
        self._redis.start()
        self._log = directory / "oarlock.log"
        self._command = [sys.executable, "-m", "oarlock.cli", "operator", str(file), "--workers", str(workers)]
        self._command += ["--kube-api-qps", "0", "--fleet-id", "bench"]
        self._environment = {
            "OARLOCK_REDIS_URL": self._redis.url("admin"),
            "OARLOCK_KUBECONFIG": str(kubeconfig),
            **environment,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = run(self._command, self._environment, self._log)

    def kill(self) -> None:
        """All of it but Redis, in one go."""
        assert self._process is not None
        for pid in tree_of(self._process.pid):
            kill_one(pid)
        self._process.wait()

    def kill_worker(self, which: int = 0) -> None:
        """One worker; its supervisor starts another."""
        workers = self._parts()[1]
        kill_one(workers[which % len(workers)])

    def kill_ingestor(self) -> None:
        """The only one; its parent starts another."""
        kill_one(self._parts()[0])

    def _parts(self) -> tuple[int, list[int]]:
        """The ingestor and the workers that live now: of the two children of the command, the one that has none, and
        the children of the other. Raises Unfit where that is not so for too long.
        """
        assert self._process is not None
        deadline = time.monotonic() + WORKERS_LIMIT_S
        while time.monotonic() < deadline:
            below = {pid: children_of(pid) for pid in children_of(self._process.pid)}
            ingestors = [pid for pid, its in below.items() if not its]
            if len(below) == 2 and len(ingestors) == 1:
                return ingestors[0], next(filter(None, below.values()))
            time.sleep(0.01)
        raise Unfit(f"`oarlock operator` has not come up; see {self._log}")

    def stop(self) -> None:
        stop(self._process)
        self._redis.stop()

    def roots(self) -> list[int]:
        mine = [self._process.pid] if self._process is not None and self._process.poll() is None else []
        return [*mine, self._redis.pid]


def run(command: Sequence[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command_dying_with_this_process(list(command), signal.SIGTERM),
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=log.open("ab"),
        stderr=subprocess.STDOUT,
    )


def stop(process: subprocess.Popen[bytes] | None) -> None:
    if process is None:
        return
    process.terminate()
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def kill_one(pid: int) -> None:
    """By its id; one that is gone is gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
