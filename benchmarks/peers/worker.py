"""A peer's worker under measurement: its processes, what they and Redis spend on a job."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers.counted import COUNT_FILE, REDIS_URL, Count
from benchmarks.processes import cpu_ns
from benchmarks.report import Unfit
from oarlock.workers.process.death_signal import command_dying_with_this_process

POLL_S = 0.004
LIMIT_S = 120.0
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Peer:
    """``command``: its own command line, behind ``python -m``. ``packages``: what it needs, as they are imported."""

    name: str
    title: str
    packages: tuple[str, ...]
    command: tuple[str, ...]

    @property
    def installed(self) -> bool:
        return all(find_spec(package) for package in self.packages)


PEERS = (
    Peer(
        "huey",
        "huey",
        ("huey",),
        ("huey.bin.huey_consumer", "benchmarks.peers.on_huey.huey", *["-w", "1", "-k", "thread", "-n", "-f", "-q"]),
    ),
    Peer(
        "taskiq",
        "taskiq, Redis streams",
        ("taskiq", "taskiq_redis"),
        ("taskiq", "worker", "benchmarks.peers.on_taskiq:broker", *["--workers", "1", "--log-level", "ERROR"]),
    ),
    Peer(
        "dramatiq",
        "Dramatiq",
        ("dramatiq",),
        ("dramatiq", "benchmarks.peers.on_dramatiq", *["--processes", "1", "--threads", "1"]),
    ),
    Peer(
        "celery",
        "Celery, solo pool",
        ("celery",),
        (
            *("celery", "-A", "benchmarks.peers.on_celery", "worker", "--pool", "solo", "--loglevel", "ERROR"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ),
    ),
    Peer("arq", "arq", ("arq",), ("arq", "benchmarks.peers.on_arq.WorkerSettings")),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU in microseconds a job."""

    worker_us: float
    redis_us: float

    @property
    def cpu_us(self) -> float:
        return self.worker_us + self.redis_us


def cost(peer: Peer, url: str, redis_pid: int, jobs: int, folder: Path) -> Cost:
    """Of a backlog of so many jobs, from the first that is done to the last. The database of ``url`` is empty."""
    file = folder / f"count-{peer.name}-{time.monotonic_ns()}"
    count, environment = Count(file), {**os.environ, COUNT_FILE: str(file), REDIS_URL: url}
    filling = f"from benchmarks.peers import on_{peer.name} as peer; peer.fill({jobs})"
    subprocess.run([sys.executable, "-c", filling], cwd=_ROOT, env=environment, check=True, timeout=LIMIT_S)
    log = (folder / f"{peer.name}.log").open("wb")
    worker = subprocess.Popen(
        command_dying_with_this_process([sys.executable, "-m", *peer.command]),
        cwd=_ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        _await(peer, worker, count, 1)
        begun_at, worker_ns, redis_ns = count.value, _tree_ns(worker.pid), cpu_ns(redis_pid)
        _await(peer, worker, count, jobs)
        worker_ns, redis_ns = _tree_ns(worker.pid) - worker_ns, cpu_ns(redis_pid) - redis_ns
    finally:
        _end(worker)
        log.close()
    if count.value != jobs:
        raise Unfit(f"{peer.name} did {count.value} jobs, not {jobs}")
    counted = jobs - begun_at
    if counted < jobs / 2:
        raise Unfit(f"{peer.name} had done {begun_at} of {jobs} jobs before they could be measured: ask for more")
    return Cost(worker_ns / counted / 1e3, redis_ns / counted / 1e3)


def _await(peer: Peer, worker: subprocess.Popen[bytes], count: Count, jobs: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while count.value < jobs:
        if worker.poll() is not None:
            raise Unfit(f"{peer.name} ended with {worker.returncode} after {count.value} jobs")
        if time.monotonic() > deadline:
            raise Unfit(f"{peer.name} did {count.value} jobs in {LIMIT_S:.0f} s, not {jobs}")
        time.sleep(POLL_S)


def _tree_ns(pid: int) -> int:
    """Of a process and all below it: some peers' workers are children of what was started."""
    children = [int(each) for task in Path(f"/proc/{pid}/task").iterdir() for each in _children(task)]
    return cpu_ns(pid) + sum(_tree_ns(child) for child in children)


def _children(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []  # the thread has ended


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.terminate()
    try:
        worker.wait(15)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait(5)
