"""etcd and kube-apiserver on free ports of this machine, and the rest of the control plane on request."""

from __future__ import annotations

import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.realserver.processes import Running, free_ports
from tests.realserver.programs import obtain, version_of
from tests.realserver.versions import controllers, known

START_LIMIT_S = 240.0
_LOOK_S = 0.1
_TRIES = 3  # each with fresh ports: another program may take one before ours does


class NotStarted(Exception):
    """The server did not come up; the text ends with what the program at fault said."""


@dataclass(frozen=True, slots=True)
class User:
    """Whom a bearer token stands for."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        return f"token-of-{self.name}".replace(":", "-").replace("/", "-")


ADMIN = User("admin", ("system:masters",))


class RealServer:
    """A server in a folder of its own, ready when `start` returns. May be used as a context manager.

    `users` may speak besides ADMIN; with `rbac` each of them needs rights, ADMIN has all. `flags`: more of the API
    server's. `stop` ends everything; so does the end of this process. Only the main thread may start it. The programs
    are obtained where they are missing, which takes minutes. Raises CannotObtain, NotStarted.
    """

    def __init__(
        self, folder: Path, *, users: Sequence[User] = (), rbac: bool = False, flags: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self.url = ""
        self._users = (ADMIN, *users)
        self._rbac, self._flags = rbac, tuple(flags)
        self._running: list[Running] = []
        self._serving: list[str | Path] = []  # command line of the API server

    def __enter__(self) -> RealServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def kubeconfig(self) -> Path:
        """Of ADMIN."""
        return self.kubeconfig_of(ADMIN)

    def kubeconfig_of(self, user: User) -> Path:
        """Of one of the users, with the server's authority and the user's token."""
        path = self.folder / f"kubeconfig-{user.token}"
        if not path.exists():
            cluster = {"server": self.url, "certificate-authority": str(self._authority)}
            named = {
                "clusters": [{"name": "real", "cluster": cluster}],
                "users": [{"name": user.name, "user": {"token": user.token}}],
                "contexts": [{"name": "real", "context": {"cluster": "real", "user": user.name}}],
            }
            path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **named, "current-context": "real"}))
            path.chmod(0o600)
        return path

    def start(self) -> RealServer:
        programs = obtain("etcd", "kube-apiserver")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_secrets()
        for attempt in range(1, _TRIES + 1):
            try:
                self._launch(programs["etcd"], programs["kube-apiserver"])
                return self
            except NotStarted as error:
                self.stop()
                if attempt == _TRIES or "address already in use" not in str(error):
                    raise
            except BaseException:
                self.stop()
                raise
        raise AssertionError("unreachable")

    def pids(self) -> dict[str, int]:
        """Of what runs, by program."""
        return {each.name: each.process.pid for each in self._running}

    def run_controllers(self, *names: str) -> Running:
        """Upstream's kube-controller-manager with these controllers only (names as of 1.20: `garbagecollector`)."""
        name = "kube-controller-manager"
        return self._beside(
            name,
            f"--controllers={controllers(version_of(name), names)}",
            "--leader-elect=false",
            "--port=0",
            "--secure-port=0",
            f"--service-account-private-key-file={self._key}",
            f"--root-ca-file={self._authority}",
            "--concurrent-gc-syncs=5",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        )

    def run_scheduler(self) -> Running:
        """Upstream's kube-scheduler."""
        return self._beside("kube-scheduler", "--leader-elect=false", "--port=0", "--secure-port=0")

    def restart(self, *, down_s: float = 0.0) -> None:
        """Kill the API server and start it again at the same address, with all it has stored. Raises NotStarted."""
        program, *flags = self._serving
        for each in self._running:
            if each.name == Path(program).name:
                each.kill()
                self._running.remove(each)
                break
        time.sleep(down_s)
        self._run(Path(program), *map(str, flags))
        self._wait_until_ready()

    def stop(self) -> None:
        """Kill all of it; the folder stays, with the logs."""
        while self._running:
            self._running.pop().kill()

    # -- inside ----------------------------------------------------------------------------------

    @property
    def _authority(self) -> Path:
        return self.folder / "certs" / "apiserver.crt"  # made by the server itself, with its authority's behind it

    @property
    def _key(self) -> Path:
        return self.folder / "service-accounts.key"

    def _write_secrets(self) -> None:
        if not self._key.exists():
            command = ["openssl", "genrsa", "-out", str(self._key), "2048"]
            subprocess.run(command, check=True, capture_output=True)
        rows = [f'{user.token},{user.name},{user.name},"{",".join(user.groups)}"\n' for user in self._users]
        (self.folder / "tokens.csv").write_text("".join(rows))
        (self.folder / "tokens.csv").chmod(0o600)

    def _launch(self, etcd: Path, apiserver: Path) -> None:
        for old in self.folder.glob("kubeconfig-*"):
            old.unlink()
        client, peer, secure = free_ports(3)
        store, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
        self._run(
            etcd,
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={store}",
            f"--advertise-client-urls={store}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        )
        self.url = f"https://127.0.0.1:{secure}"
        self._serving = [
            apiserver,
            f"--etcd-servers={store}",
            f"--secure-port={secure}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder / 'certs'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://localhost",
            f"--service-account-key-file={self._key}",
            f"--service-account-signing-key-file={self._key}",
            f"--authorization-mode={'RBAC' if self._rbac else 'AlwaysAllow'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged=true",
            *self._flags,
        ]
        self._run(apiserver, *map(str, self._serving[1:]))
        self._wait_until_ready()

    def _beside(self, name: str, *flags: str) -> Running:
        """A program that talks to this server, with those of the flags that its version knows."""
        program = obtain(name)[name]
        return self._run(program, f"--kubeconfig={self.kubeconfig}", *known(version_of(name), *flags))

    def _run(self, program: Path, *flags: str) -> Running:
        started = Running([program, *flags], self.folder / f"{program.name}.log")
        self._running.append(started)
        return started

    def _wait_until_ready(self) -> None:
        ends_s = time.monotonic() + START_LIMIT_S
        heard = ""
        while time.monotonic() < ends_s:
            for each in self._running:
                if not each.alive:
                    raise NotStarted(f"{each.name} ended with code {each.process.returncode}:\n{each.told()}")
            heard = self._readiness()
            if heard == "ok":
                return
            time.sleep(_LOOK_S)
        raise NotStarted(f"not ready within {START_LIMIT_S:g} s ({heard}):\n{self._running[-1].told()}")

    def _readiness(self) -> str:
        """What /readyz says. Asked with a token: without one it is 401 for ever where anonymous access is off."""
        try:
            context = ssl.create_default_context(cafile=str(self._authority))
            ask = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {ADMIN.token}"})
            with urllib.request.urlopen(ask, timeout=5, context=context) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, OSError) as error:
            return str(error)
