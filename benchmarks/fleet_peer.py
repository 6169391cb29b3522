"""One oarlock worker process, as `oarlock worker --workers 1` starts it: supervisor, leases, RQ's shell and all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import redis

from oarlock.broker.redis_broker import RedisBroker
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.process.death_signal import command_dying_with_this_process

QUEUE = "replicaset"
assert QUEUE in CONTROLLERS
START_LIMIT_S = 30.0
_NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "nowhere",
    "clusters": [{"name": "nowhere", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "nobody", "user": {}}],
    "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "nobody"}}],
}


class FleetPeer:
    """The processes, and how far they are. A context manager.

    The kubeconfig leads nowhere: a turn that finds nothing to do asks the API nothing, and one that asked would fail
    and be counted as failed.
    """

    def __init__(self, client: redis.Redis, broker: RedisBroker, url: str, directory: Path) -> None:
        self._client, self._broker, self._url, self._directory = client, broker, url, directory
        self._process: subprocess.Popen[bytes] | None = None
        self.worker_pid = self.supervisor_pid = 0
        self._rq_key = ""

    def __enter__(self) -> FleetPeer:
        kubeconfig = self._directory / "kubeconfig"
        kubeconfig.write_text(json.dumps(_NOWHERE))
        command = [sys.executable, "-m", "oarlock.cli", "worker", "--workers", "1"]
        self._process = subprocess.Popen(
            command_dying_with_this_process([*command, "--state-dir", str(self._directory)]),
            env={**os.environ, "OARLOCK_REDIS_URL": self._url, "OARLOCK_KUBECONFIG": str(kubeconfig)},
            stdin=subprocess.DEVNULL,
            stdout=(self._directory / "worker.log").open("wb"),
            stderr=subprocess.STDOUT,
        )
        self.supervisor_pid = self._process.pid
        listed = self._directory / "workers.json"
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            told = json.loads(listed.read_text()) if listed.exists() else []
            workers = [each for each in told if each["role"] == "worker"]
            if workers and self._client.exists(f"rq:worker:{workers[0]['name']}"):
                self.worker_pid, self._rq_key = workers[0]["pid"], f"rq:worker:{workers[0]['name']}"
                return self
            time.sleep(0.02)
        raise RuntimeError(f"no worker came up; see {self._directory / 'worker.log'}")

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(30)

    def left(self) -> int:
        """Keys not yet claimed."""
        names = self._broker.keys
        return int(self._client.xlen(names.stream(QUEUE)) + self._client.zcard(names.backlog(QUEUE)))

    def at_rest(self) -> bool:
        """Whether every key is idle: none queued, none locked, none delayed."""
        names = self._broker.keys
        with self._client.pipeline(transaction=True) as pipe:
            for name in (names.state(QUEUE), names.locks(QUEUE)):
                pipe.hlen(name)
            pipe.xlen(names.stream(QUEUE))
            pipe.zcard(names.delayed(QUEUE))
            return not any(pipe.execute())

    def counted(self) -> tuple[int, int]:
        """Turns that ended well and that failed, as RQ's worker hash shows them; up to half a second old."""
        well, failed = self._client.hmget(self._rq_key, "successful_job_count", "failed_job_count")
        return int(well or 0), int(failed or 0)

    def await_counted(self, well: int, limit_s: float = 5.0) -> tuple[int, int]:
        """The counts once so many ended well, or what they are after ``limit_s``."""
        deadline = time.monotonic() + limit_s
        while (counts := self.counted())[0] < well and time.monotonic() < deadline:
            time.sleep(0.02)
        return counts

    def hold(self) -> None:
        """Let no turn begin from here on: the phase of the epoch goes back to DRAIN. The counters are true then."""
        self._client.set(self._broker.keys.of("phase"), "DRAIN")
        time.sleep(1.3)  # an idle worker waits in Redis for up to a second before it asks again

    def let_go(self) -> None:
        """Let turns begin."""
        self._broker.open(())
