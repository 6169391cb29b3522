"""A real Redis with an open epoch, and real worker processes on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
from click.testing import CliRunner
from rq.cli import main as rq_cli

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.settings import Settings
from tests import ROOT
from tests.workers.fleet_puppet import BEGUN, ENDED, QUEUE

PUPPETS = "tests.workers.fleet_puppet"
PUPPET_WORKER = f"{PUPPETS}.PuppetWorker"
RQ = Path(sys.executable).with_name("rq")


def until(condition: Callable[[], Any], limit_s: float = 20.0, what: str = "") -> Any:
    """Wait for a true value and return it."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"waited {limit_s} s for {what or condition}"
        time.sleep(0.003)


class Rig:
    """One Redis, one epoch, and everything started on them; ``close`` ends all of it."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = directory
        self.redis = EmbeddedRedis(directory / "redis").start()
        self.admin: redis.Redis = connect(self.redis.url("admin"))
        self.url = self.redis.url("worker")
        self.settings = Settings(redis_url=self.url, **settings)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.number = 0
        self.bootstrap()

    def bootstrap(self) -> RedisBroker:
        """A new epoch, open."""
        self.number += 1
        epoch.bootstrap(self.admin, self.number)
        self.broker = RedisBroker(self.admin, self.number)
        self.broker.open([])
        return self.broker

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
        self.admin.close()
        self.redis.kill()  # at once: its orderly end takes a tenth of a second
        self.redis.stop()

    def start(self, *command: str | Path, **env: str) -> subprocess.Popen[bytes]:
        """A process of its own group, its output in ``out-<n>.log``; its environment carries the settings."""
        number = len(self.processes)
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])  # the package of this tree, and its tests
        environment = os.environ | self.settings.to_env() | {"PYTHONPATH": path} | env
        with (self.directory / f"out-{number}.log").open("wb") as out:
            process = subprocess.Popen(
                [str(word) for word in command],
                env=environment,
                cwd=self.directory,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def fleet(self, count: int = 1, grace_ms: int = 5_000) -> subprocess.Popen[bytes]:
        """A supervisor with ``count`` workers, all of them registered and in its list: it writes that after the fork,
        which may be later than RQ hears of the worker.
        """
        before = self.workers()
        process = self.start(sys.executable, "-m", PUPPETS, str(count), self.directory, str(grace_ms))
        until(self.list_of_processes.exists, what="the list of processes")
        until(lambda: len((self.workers() - before) & set(self.pids())) >= count, what="the fleet")
        return process

    def rq_worker(self, *options: str, worker: str = PUPPET_WORKER) -> subprocess.Popen[bytes]:
        """`rq worker`, as a user starts it."""
        before = self.workers()
        process = self.start(RQ, "worker", "-u", self.url, "-w", worker, *options, QUEUE)
        until(lambda: len(self.workers() - before) >= 1 or process.poll() is not None, what="the worker")
        return process

    def rq(self, *words: str, check: bool = True) -> str:
        """The output of an `rq` command, run in this process."""
        done = CliRunner().invoke(rq_cli, [words[0], "-u", self.url, *words[1:]], env=self.settings.to_env())
        assert not check or done.exit_code == 0, done.output
        return str(done.output)

    def log(self, number: int = -1) -> str:
        """What a process said."""
        return sorted(self.directory.glob("out-*.log"), key=lambda p: int(p.stem[4:]))[number].read_text()

    def workers(self) -> set[str]:
        """Names of the workers RQ knows and that are alive."""
        names = {key.decode().removeprefix("rq:worker:") for key in self.admin.smembers("rq:workers")}
        return {name for name in names if self.admin.hexists(f"rq:worker:{name}", "state")}

    @property
    def list_of_processes(self) -> Path:
        """The supervisor writes it."""
        return self.directory / "workers.json"

    def pids(self) -> dict[str, int]:
        """Worker name -> pid, as the supervisor says."""
        listed = json.loads(self.list_of_processes.read_text())
        return {each["name"]: each["pid"] for each in listed if each["role"] == "worker"}

    def pid_of(self, name: str) -> int:
        return int(self.admin.hget(f"rq:worker:{name}", "pid") or 0)

    def begun(self, key: str) -> int:
        """How many turns over the key have begun."""
        return self.admin.lrange(BEGUN, 0, -1).count(key.encode())

    def ended(self, key: str) -> int:
        """How many turns over the key came to their end."""
        return self.admin.lrange(ENDED, 0, -1).count(key.encode())

    def locks(self) -> dict[str, str]:
        """Key -> lock."""
        held = self.admin.hgetall(self.broker.keys.locks(QUEUE))
        return {key.decode(): lock.decode() for key, lock in held.items()}

    def state(self, key: str) -> str | None:
        value = self.admin.hget(self.broker.keys.state(QUEUE), key)
        return value.decode().partition(" ")[0] if value else None

    def failures(self, key: str) -> int:
        return self.broker.num_requeues(QUEUE, key)

    def add(self, *keys: str) -> None:
        self.broker.add(QUEUE, keys)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may go while it is being read
        return False
