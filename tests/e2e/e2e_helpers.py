"""A whole `oarlock up` in processes of its own, and what tests ask of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import redis
import yaml

from oarlock.broker.connection.client import connect
from oarlock.sandbox.up.state_dir import Process, StateDir, is_alive
from tests import ROOT

MANIFESTS = ROOT.parent / "shared" / "manifests"
QUICK = {"OARLOCK_LEASE_MS": "1500", "OARLOCK_RENEW_EVERY_MS": "400", "OARLOCK_REQUEST_TIMEOUT_MS": "1000"}
"""After a loss of Redis the fleet pauses for lease + two requests + 1 s: 4.5 s with these."""

SET = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: c, image: nginx}}]}}
---
"""
"""A ReplicaSet without pods: ``name`` and ``namespace`` are to be filled in."""


def environment(**more: str) -> dict[str, str]:
    """Ours, without what would lead the command elsewhere."""
    ours = {key: value for key, value in os.environ.items() if not key.startswith("OARLOCK_") and key != "KUBECONFIG"}
    return {**ours, **QUICK, **more}


def oarlock(*arguments: str, timeout_s: float = 60, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = [sys.executable, "-m", "oarlock.cli", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment(**more), timeout=timeout_s, check=False
    )


def until(happened: Callable[[], Any], limit_s: float, what: str, *, pause_s: float = 0.02) -> Any:
    """The first true answer. Fails the test after ``limit_s``."""
    deadline = time.monotonic() + limit_s
    while not (answer := happened()):
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}"
        time.sleep(pause_s)
    return answer


def stopped(process: subprocess.Popen[Any], number: int, limit_s: float) -> int:
    """The exit code of a process that is asked to end. Raises TimeoutExpired if it takes longer; then it is killed."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


class RunningUp:
    """`oarlock up` with a state directory; ready once made."""

    def __init__(self, root: Path, *arguments: str, **more: str) -> None:
        self.state = StateDir(root)
        self.out, self.err = root.with_suffix(".out"), root.with_suffix(".err")
        with self.out.open("wb") as out, self.err.open("wb") as err:
            command = [sys.executable, "-m", "oarlock.cli", "up", "--state-dir", str(root), *arguments]
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=ROOT, env=environment(**more)
            )
        try:
            until(self._ready, 90, "oarlock up is ready")
        except BaseException:
            print(self.err.read_text())
            self.process.kill()
            self.process.wait()
            raise

    def _ready(self) -> bool:
        assert self.process.poll() is None, f"it ended: {self.err.read_text()}"
        return self.state.owner_pid() == self.process.pid and self.state.read_up().get("state") == "ready"

    def processes(self, role: str = "") -> list[Process]:
        return [each for each in self.state.read_processes() if role in ("", each.role)]

    def token(self) -> str:
        """What the API server asks for; "" where it asks for none."""
        (user,) = yaml.safe_load(self.state.kubeconfig.read_text())["users"]
        return str(user["user"].get("token", ""))

    def redis(self) -> redis.Redis:
        return connect(self.state.read_redis_url())

    def ask(self, *arguments: str) -> Any:
        """The JSON of an oarlock command about this one."""
        done = oarlock(*arguments, "--state-dir", str(self.state.root), "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def ready_sets(self) -> dict[str, tuple[int, int]]:
        """ "namespace/name" -> (desired, available), from the cache."""
        return {
            f"{each['namespace']}/{each['name']}": (each["replicas"], each["status"]["available"])
            for each in self.ask("get", "replicasets")
        }

    def stop(self, number: int = signal.SIGTERM, limit_s: float = 20) -> int:
        """Its exit code. Fails the test if it takes longer."""
        return stopped(self.process, number, limit_s)


def all_gone(processes: Sequence[Process], limit_s: float = 20) -> None:
    """Fails the test if one of them still runs after ``limit_s``."""
    assert processes
    until(lambda: not any(is_alive(each) for each in processes), limit_s, f"the end of {processes}")
