"""Real servers on free ports of the loopback: alone, with a replica, of a cluster, Sentinels; all die with the test."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import redis

from oarlock.broker.connection import acl
from oarlock.sandbox.host import PORTS, is_free
from oarlock.sandbox.redis import redis_binary
from oarlock.workers.process.death_signal import command_dying_with_this_process

PASSWORDS = {user: f"{user}-word" for user in ("ingestor", "worker", "metrics", "admin", "replica", "sentinel")}


def until(condition: Callable[[], Any], limit_s: float = 60.0, what: str = "") -> Any:
    """Wait for a true value and return it."""
    end_s = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end_s, f"waited {limit_s} s for {what or condition}"
        time.sleep(0.02)


@cache
def binary() -> redis_binary.ServerBinary:
    """The newest server of this machine, from 7.0. Skips the test where there is none; fails where CI is set."""
    found = [each for each in redis_binary.installed() if each.version >= (7, 0)]
    if not found:
        assert not os.environ.get("CI"), "CI is set, and there is no Redis server from 7.0"
        pytest.skip("no Redis server from 7.0 on this machine (Debian: apt-get install redis-server)")
    return found[0]


def free_port(offset: int = 0) -> int:
    """A free one; with ``offset`` also the one so much above it, which a cluster's nodes talk over. Both are of PORTS:
    servers are killed here and started again at their ports.
    """
    while True:
        port = secrets.choice(PORTS[: len(PORTS) - offset])
        if is_free(port) and is_free(port + offset):
            return port


class RealServer:
    """One process. ``options`` go into its configuration file; ``as_sentinel``: it is started as one."""

    def __init__(
        self, folder: Path, *, port: int = 0, users: bool = True, as_sentinel: bool = False, **options: object
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.sentinel = folder, as_sentinel
        self.port = port or free_port()
        lines = ["daemonize no", "bind 127.0.0.1", 'save ""', "appendonly no", f"dir {folder}", "protected-mode no"]
        lines.append("port 0" if "tls_port" in options else f"port {self.port}")
        if users:
            (folder / "users.acl").write_text(acl.acl_file(PASSWORDS))
            lines.append(f"aclfile {folder / 'users.acl'}")
        for name, value in options.items():
            values = value if isinstance(value, list) else [value]
            lines += [f"{name.replace('_', '-')} {each}" for each in values]
        self.config = folder / "server.conf"
        self.config.write_text("\n".join(lines) + "\n")
        self.log = folder / "server.log"
        self._encrypted = "tls_port" in options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> RealServer:
        """Start; whether it answers is for the caller to find out."""
        command = [binary().path, str(self.config), *(["--sentinel"] if self.sentinel else [])]
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                command_dying_with_this_process(command), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        return self

    def has_ended(self) -> bool:
        """Whether it was started and runs no more."""
        return self._process is not None and self._process.poll() is not None

    def takes_another_port(self) -> bool:
        """Whether it ended because somebody took its port since it was found free: then it has another now, and can
        be started again. Only before others know its port."""
        if "already in use" not in self.log.read_text():
            return False
        mine, self.port = self.port, free_port(10_000)
        self.config.write_text(self.config.read_text().replace(f"port {mine}", f"port {self.port}"))
        self.log.unlink()
        return True

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def signal(self, signum: signal.Signals) -> None:
        os.kill(self.pid, signum)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)

    def url(self, user: str = "admin", scheme: str = "redis", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{user}:{PASSWORDS[user]}@{host}:{self.port}/0"

    def client(self, user: str = "admin") -> Any:
        """A plain client with redis-py's own ways: for looking and for steering, never for the fleet."""
        if self.sentinel:
            return redis.Redis(port=self.port, decode_responses=True, protocol=2)
        return redis.Redis(port=self.port, username=user, password=PASSWORDS[user], decode_responses=True, protocol=2)

    def answers(self) -> bool:
        """Whether it takes commands, or connections where it speaks TLS."""
        try:
            if self._encrypted:
                with socket.create_connection(("127.0.0.1", self.port), 1.0):
                    return True
            return bool(self.client().ping())
        except (OSError, redis.RedisError):
            return False

    def answers_now(self) -> bool:
        """Whether it is there and takes commands, without ado where it is not."""
        return self._process is not None and not self.has_ended() and self.answers()


def started(*servers: RealServer) -> None:
    """Start them all and wait until each answers."""
    for server in servers:
        server.start()
    for server in servers:
        until(lambda server=server: _up(server), what=f"{server.folder.name} to answer")


def _up(server: RealServer) -> bool:
    if server.answers_now():
        return True
    if server.has_ended():  # asked after it did not answer: it may end at any time before
        assert server.takes_another_port(), server.log.read_text()
        server.start()
    return False
