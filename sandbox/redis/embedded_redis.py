"""The private Redis of the embedded default: no persistence, own users, ended with its parent.

On purpose it keeps nothing across its death: an empty Redis is recognised at once, and one that was rolled back is
dangerous. It uses the same users and rights as production (``broker.connection.acl``).
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import redis
from redis.exceptions import RedisError, ResponseError

from oarlock.broker.connection import acl
from oarlock.broker.connection.client import connect
from oarlock.sandbox.host import free_port, is_free
from oarlock.sandbox.redis import redis_binary
from oarlock.workers.process.death_signal import command_dying_with_this_process

START_LIMIT_S = 15.0
STOP_LIMIT_S = 3.0
_SOCKET_PATH_MAX = 100  # the kernel's limit is 107 bytes
_OURS = ("users.acl", "redis.sock", "redis.log")


class RedisNotStarted(Exception):
    """The server did not come up; the text is one line with the reason."""


class EmbeddedRedis:
    """A server in ``directory``, which becomes private (0700) and is removed again if it was made here.

    ``port`` 0 takes a free one. ``log``: a file that is appended to and kept; without it one in ``directory``.
    ``stop`` ends it; so does the death of this process, however it comes. May be used as a context manager. Only the
    main thread may start it: the kernel ends it with the thread that forked. ``before_others``: how much less nice than
    this process it is, where that is allowed.
    """

    def __init__(
        self,
        directory: Path | str,
        port: int = 0,
        *,
        binary: redis_binary.ServerBinary | None = None,
        log: Path | None = None,
        before_others: int = 0,
    ) -> None:
        self.directory = Path(directory)
        self._log, self._before_others = log, before_others
        self.goes_before = False
        """Whether it is less nice than this process by so much."""
        self.port = port
        self._binary = binary
        self._passwords: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._made_directory = False

    def __enter__(self) -> EmbeddedRedis:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def binary(self) -> redis_binary.ServerBinary:
        """The program that runs, or would. Raises NoRedisBinary."""
        if self._binary is None:
            self._binary = redis_binary.find()
        return self._binary

    @property
    def pid(self) -> int:
        """The pid of the server that runs now; it changes with ``restart``."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the server runs. Reaps it when it does not."""
        return self._process is not None and self._process.poll() is None

    @property
    def socket_path(self) -> Path | None:
        """Unix socket; None where the directory's name is too long for one."""
        path = self.directory.absolute() / "redis.sock"
        return path if len(os.fsencode(path)) <= _SOCKET_PATH_MAX else None

    def url(self, user: str) -> str:
        """redis://... with the user's password. ``user`` is one of ``broker.connection.acl.USERS``."""
        return f"redis://{user}:{self._passwords[user]}@127.0.0.1:{self.port}/0"

    def socket_url(self, user: str) -> str:
        """unix://... ; only where ``socket_path`` is not None."""
        assert self.socket_path is not None, "the directory's name is too long for a Unix socket"
        return f"unix://{user}:{self._passwords[user]}@{quote(str(self.socket_path))}?db=0"

    def start(self) -> EmbeddedRedis:
        """Start and wait until it answers. Raises NoRedisBinary or RedisNotStarted (the port is taken, ...)."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("start it on the main thread: the kernel ends the server with the thread that forked")
        assert not self.alive, "the server runs already"
        program = self.binary
        self._private_directory()
        if not self._passwords:
            self._passwords = {user: secrets.token_hex(24) for user in acl.USERS}
        self._write_users()
        if self.port:
            if not is_free(self.port):
                raise RedisNotStarted(f"port {self.port} on 127.0.0.1 is in use: choose another, or 0 for a free one")
            self._launch(program, self.port)
            return self
        for attempt in range(5):
            port = free_port()
            try:
                self._launch(program, port)
            except RedisNotStarted:
                if attempt == 4 or is_free(port):  # somebody took the port in between: that alone is worth another try
                    raise
            else:
                self.port = port
                break
        return self

    def stop(self) -> None:
        """End the server and remove what it left. Does nothing where it does not run."""
        self._end(signal.SIGTERM)
        for name in _OURS:
            (self.directory / name).unlink(missing_ok=True)
        if self._made_directory:
            try:
                self.directory.rmdir()
            except OSError:  # somebody else put a file there: it is theirs to remove
                return
            self._made_directory = False

    def kill(self) -> None:
        """SIGKILL, and wait for the end: what a crash of Redis looks like."""
        self._end(signal.SIGKILL)

    def restart(self, *, keep_users: bool = True) -> None:
        """End it if it runs and start it again, empty, on the same port. ``keep_users``: the URLs stay true."""
        self._end(signal.SIGTERM)
        if not keep_users:
            self._passwords = {}
        self.start()

    def _end(self, signum: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signum)
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _private_directory(self) -> None:
        if not self.directory.exists():
            self.directory.mkdir(mode=0o700, parents=True)
            self._made_directory = True
        self.directory.chmod(0o700)

    def _write_users(self) -> None:
        path = self.directory / "users.acl"
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(acl.acl_file(self._passwords))

    def _launch(self, program: redis_binary.ServerBinary, port: int) -> None:
        log = self._log or self.directory / "redis.log"
        if self._log is None:
            log.unlink(missing_ok=True)
        options = {
            "port": str(port),
            "bind": "127.0.0.1",
            "dir": str(self.directory.absolute()),
            "aclfile": str(self.directory.absolute() / "users.acl"),
            "logfile": str(log.absolute()),
            "save": "",
            "appendonly": "no",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
        }
        if self.socket_path is not None:
            options |= {"unixsocket": str(self.socket_path), "unixsocketperm": "700"}
        command = [program.path, *(word for name, value in options.items() for word in (f"--{name}", value))]
        self._process = subprocess.Popen(
            command_dying_with_this_process(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent: it ends the server last
        )
        if self._before_others:
            with suppress(PermissionError):
                own = os.getpriority(os.PRIO_PROCESS, 0)
                os.setpriority(os.PRIO_PROCESS, self._process.pid, own - self._before_others)
                self.goes_before = True
        try:
            self._await_answer(program, port, log)
        except BaseException:
            self._end(signal.SIGKILL)
            raise

    def _await_answer(self, program: redis_binary.ServerBinary, port: int, log: Path) -> None:
        url = f"redis://admin:{self._passwords['admin']}@127.0.0.1:{port}/0"
        deadline = time.monotonic() + START_LIMIT_S
        last: Exception | None = None
        while time.monotonic() < deadline:
            if not self.alive:
                raise RedisNotStarted(f"{program} ended while starting: {_reason(log)}")
            client = connect(url, timeout_s=1.0)
            try:
                if client.info("server")["process_id"] == self.pid:
                    _keep_no_histograms(client)
                    return
                raise RedisNotStarted(f"another server answers on port {port}")
            except RedisError as error:
                last = error
            finally:
                client.close()
            time.sleep(0.005)
        raise RedisNotStarted(f"{program} did not answer within {START_LIMIT_S:.0f} s: {last}")


def _keep_no_histograms(client: redis.Redis) -> None:
    """A latency histogram takes 24 KB a command, as much as forty cached pods, and nobody reads it here."""
    try:
        client.config_set("latency-tracking", "no")
    except ResponseError:  # servers before 7.0 have none
        pass


def _reason(log: Path) -> str:
    try:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    telling = [line for line in lines if " # " in line and "Redis is starting" not in line]
    return (telling or lines or ["it said nothing"])[-1].rpartition(" # ")[2]
