"""Hosts: each a network namespace on a bridge, with one worker in it and a slow link to the API server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from benchmarks.report import Unfit
from benchmarks.tree import Tree
from oarlock.workers.process.death_signal import command_dying_with_this_process

SUBNET = "10.231.77."
GATEWAY = SUBNET + "1"
MAC = "02:00:00:00:00:01"
"""Without one of its own a bridge takes the least of its ports'. With the next host that is another one, and what hosts
send to the one they know is dropped, for half a minute.
"""
START_LIMIT_S = 60.0


class NoNamespaces(Exception):
    """This machine, or this user, may not make network namespaces. One line with the mend."""


class Bridge:
    """What the hosts are plugged into; the main host is its gateway. A context manager that takes all away again."""

    def __init__(self) -> None:
        self._mark = f"{os.getpid():x}"
        self._name = f"oar{self._mark}"
        self._ends = ExitStack()

    def __enter__(self) -> Bridge:
        try:
            _ip("link", "add", self._name, "address", MAC, "type", "bridge")
            self._take_away("link", "del", self._name)
            _ip("addr", "add", f"{GATEWAY}/24", "dev", self._name)
            _ip("link", "set", self._name, "up")
        except NoNamespaces:
            self._ends.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def plug(self, number: int) -> str:
        """The name of a new namespace, which has the address ``SUBNET`` + 10 + ``number``."""
        name, outer = f"{self._name}-{number}", f"v{self._mark}-{number}"
        _ip("netns", "add", name)
        self._take_away("netns", "del", name)
        _ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", outer, "master", self._name, "up")
        _ip("-n", name, "addr", "add", f"{SUBNET}{10 + number}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", name, "link", "set", device, "up")
        return name

    def _take_away(self, *words: str) -> None:
        """At the end."""
        self._ends.callback(subprocess.run, ["ip", *words], capture_output=True, check=False)


def _ip(*words: str) -> None:
    """Raises NoNamespaces."""
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NoNamespaces("there is no program ip; install iproute2") from None
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0]
        raise NoNamespaces(f"`ip {' '.join(words)}`: {said}; run it as root, where network namespaces may be made")


class Host:
    """One worker with its supervisor, as `oarlock worker --workers 1` starts it, in a namespace of its own."""

    def __init__(self, namespace: str, tree: Tree, folder: Path, settings: Mapping[str, str], delay_ms: float) -> None:
        self._folder, self._tree = folder, tree
        folder.mkdir()
        api = str(tree.state.read_up()["api_url"]).removeprefix("http://")
        relay = [sys.executable, "-m", "benchmarks.scale_out.relay", namespace, api, str(delay_ms)]
        self._relay = subprocess.Popen(
            command_dying_with_this_process(relay), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        port = self._told_by_relay("port")
        kubeconfig = folder / "kubeconfig"
        kubeconfig.touch(0o600)
        # The server answers to names of the loopback only: the near end of the link has one.
        kubeconfig.write_text(tree.state.kubeconfig.read_text().replace(api, f"127.0.0.1:{port:.0f}"))
        inside = [shutil.which("ip") or "ip", "netns", "exec", namespace]
        worker = [sys.executable, "-m", "oarlock.cli", "worker", "--workers", "1", "--state-dir", str(folder)]
        environment = {
            "OARLOCK_REDIS_URL": tree.state.read_redis_url().replace("127.0.0.1", GATEWAY),
            "OARLOCK_KUBECONFIG": str(kubeconfig),
            "OARLOCK_KUBE_API_QPS": "0",
            **settings,
        }
        with (folder / "worker.log").open("wb") as log:
            self._supervisor = subprocess.Popen(
                command_dying_with_this_process([*inside, *worker]),
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def await_worker(self) -> list[tuple[str, int]]:
        """(role, pid) of its processes, once its worker is there. Raises Unfit."""
        deadline = time.monotonic() + START_LIMIT_S
        while self._supervisor.poll() is None and time.monotonic() < deadline:
            for name, pid in self._workers():
                if self._tree.redis.exists(f"rq:worker:{name}"):
                    return [("worker", pid), ("supervisor", self._supervisor.pid), ("relay", self._relay.pid)]
            time.sleep(0.02)
        raise Unfit(f"no worker came up on a host: {(self._folder / 'worker.log').read_text().strip()[-300:]}")

    def _workers(self) -> list[tuple[str, int]]:
        listed = self._folder / "workers.json"
        told = json.loads(listed.read_text()) if listed.exists() else []
        return [(each["name"], each["pid"]) for each in told if each["role"] == "worker"]

    def stop(self) -> float:
        """End it in order. The delay each way, in ms, as its relay measured it."""
        self._supervisor.terminate()
        self._supervisor.wait(30)
        assert self._relay.stdin is not None
        self._relay.stdin.close()
        delay_ms = self._told_by_relay("delay_ms")
        self._relay.wait(10)
        return delay_ms

    def kill(self) -> None:
        """Whatever of it still runs."""
        for process in (self._supervisor, self._relay):
            process.kill()
            process.wait()

    def _told_by_relay(self, word: str) -> float:
        assert self._relay.stdout is not None
        line = self._relay.stdout.readline()
        if not line:
            raise Unfit("the link to the API server did not come up; see above")
        return float(json.loads(line)[word])
