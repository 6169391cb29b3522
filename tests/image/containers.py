"""What `docker run` would do, done with namespaces: enough to follow the steps of an image and run a compose file.

A container has a pid and mount namespace, a read-only root that is this machine's, folders laid over it, and, in a
`Network`, an address and the names of the others. Linux, root, and util-linux, iproute2 and tini are needed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

SCRIPT = Path(__file__).with_name("container.sh")
USER = 65532
_PROGRAMS = ("unshare", "nsenter", "setpriv", "ip", "tini")


def why_not() -> str:
    """Why there can be no containers on this machine; "" where there can."""
    if os.geteuid():
        return "containers without an engine need root"
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    tried = subprocess.run(["unshare", "-m", "-p", "-n", "--fork", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this machine lets nobody make namespaces"


class Network:
    """A bridge on which containers have names. ``close`` ends it."""

    def __init__(self, folder: Path) -> None:
        self.hosts = folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        self._holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        self._count = 0
        _until(lambda: _namespace(self._holder.pid) != _namespace(os.getpid()))
        self.run("sh", "-c", "ip link set lo up; ip link add br0 type bridge; ip link set br0 up")
        self.run("ip", "addr", "add", "10.231.0.1/24", "dev", "br0")

    def run(self, *command: str) -> str:
        """What a command prints that is run on the bridge. Raises CalledProcessError."""
        inside = ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net", *command]
        return subprocess.run(inside, capture_output=True, text=True, check=True).stdout

    def join(self, pid: int, *names: str) -> None:
        """Give the network namespace of a process an address and names."""
        self._count += 1
        address, end = f"10.231.0.{10 + self._count}", f"v{self._count}"
        self.run("ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        self.run("ip", "link", "set", end, "master", "br0", "up")
        inside = f"ip link set lo up; ip addr add {address}/24 dev eth0; ip link set eth0 up"
        subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "sh", "-c", inside], check=True)
        with self.hosts.open("a") as file:
            file.write(f"{address} {' '.join(names)}\n")

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()


class Container:
    """A running one. ``root_pid``: its process 1, as seen from outside."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        mounts: Sequence[str] = (),
        user: int = USER,
        read_only: bool = True,
        network: Network | None = None,
        names: Sequence[str] = (),
        log: Path | None = None,
    ) -> None:
        self.names = tuple(names)
        self._space = Path(tempfile.mkdtemp(prefix="oarlock-container-"))
        self._gate = self._space.with_suffix(".gate")
        hosts = str(network.hosts) if network else "-"
        plain = [f"{name}={value}" for name, value in environment.items()]
        inside = [str(self._space), "ro" if read_only else "rw", str(user), hosts, *mounts, "--", "env", "-i", *plain]
        # The gate opens once the container has its address: what it starts would miss the network otherwise.
        wait = f'until [ -e "{self._gate}" ]; do sleep 0.02; done; exec bash "{SCRIPT}" "$@"'
        net = ["--net"] if network else []
        self._log = (log or self._space.with_suffix(".log")).open("w+b")
        self.process = subprocess.Popen(
            ["unshare", "-m", "-p", *net, "--fork", "--kill-child", "bash", "-c", wait, "-", *inside, *command],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        _until(lambda: children.read_text().strip() != "")
        self.root_pid = int(children.read_text().split()[0])
        if network is not None:
            network.join(self.root_pid, *names)
        self._gate.touch()

    def said(self) -> str:
        """All it printed."""
        self._log.flush()
        return Path(self._log.name).read_text()

    def run(self, *command: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """As `docker exec`: in the container's namespaces and root."""
        plain = [f"{name}={value}" for name, value in environment.items()]
        inside = ["nsenter", "-t", str(self.root_pid), "-m", "-p", "-n", "-r", "-w", "env", "-i", *plain, *command]
        return subprocess.run(inside, capture_output=True, text=True, check=False, timeout=60)

    def processes(self) -> list[str]:
        """One a line, as `ps` has them: state and command."""
        told = self.run("ps", "-eo", "pid,stat,args", environment={"PATH": "/usr/bin:/bin"}).stdout
        return [line for line in told.splitlines()[1:] if " ps -eo" not in line]

    def stop(self, timeout_s: float = 30.0) -> int:
        """SIGTERM to process 1, as `docker stop`; SIGKILL when it takes too long. The exit code."""
        if self.process.poll() is None:
            os.kill(self.root_pid, signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        finally:
            self.kill()

    def kill(self) -> None:
        """End all of it, and leave nothing behind."""
        if self.process.poll() is None:
            os.kill(self.root_pid, signal.SIGKILL)
            self.process.wait()
        self._log.close()
        self._gate.unlink(missing_ok=True)
        if self._space.exists():
            self._space.rmdir()


def _namespace(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/net")


def _until(holds: object, limit_s: float = 20.0) -> None:
    assert callable(holds)
    end_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end_s, "the namespaces did not come up"
        time.sleep(0.01)
