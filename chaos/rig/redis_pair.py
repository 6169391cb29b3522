"""A Redis master and its replica and, on demand, three Sentinels that decide which of the two is the master."""

from __future__ import annotations

import asyncio
import secrets
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import redis
from redis.exceptions import RedisError

from oarlock.broker.connection import acl
from oarlock.broker.connection.client import connect
from oarlock.sandbox.host import free_port
from oarlock.sandbox.redis import redis_binary
from oarlock.workers.process.death_signal import command_dying_with_this_process

NAME = "chaos"
DOWN_AFTER_MS = 800
QUICKLY = ("info-period", 500, "publish-period", 250)
"""Sentinels look at their servers every 10 s, and take a former master back 8 s after it has come. As these ms say they
do it sooner. A Sentinel before 7.0 knows no such command; with it a failover takes 20 s.
"""
LIMIT_S = 60.0


class PairFailed(Exception):
    """The servers did not reach the state that was waited for; one line."""


class Server:
    """One server process. After ``kill`` it can be started again: same port, same users, no data."""

    def __init__(self, folder: Path, lines: list[str], *, sentinel: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._log, self._config, self._sentinel = folder / "server.log", folder / "server.conf", sentinel
        usual = [f"port {self.port}", "bind 127.0.0.1", "daemonize no", "protected-mode no", f"dir {folder}"]
        self._config.touch(0o600)
        self._config.write_text("\n".join([*usual, *lines]) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def start(self) -> None:
        """Only the main thread may."""
        command = [redis_binary.find().path, str(self._config), *(["--sentinel"] if self._sentinel else [])]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command_dying_with_this_process(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()


class Pair:
    """``start``, and ``stop`` in any case. ``sentinels``: whether they decide who is the master."""

    def __init__(self, root: Path, *, sentinels: bool) -> None:
        self._passwords = {user: secrets.token_hex(16) for user in (*acl.USERS, *acl.SERVERS)}
        link = [
            'save ""',
            "repl-diskless-sync-delay 0",
            "masteruser replica",
            f"masterauth {self._passwords['replica']}",
        ]
        self.servers = [
            Server(root / name, [*link, f"aclfile {_users(root / name, self._passwords)}"]) for name in ("a", "b")
        ]
        self.master = self.servers[0]
        self._root, self._with_sentinels = root, sentinels
        self.sentinels: list[Server] = []

    async def start(self) -> None:
        """Bring all up, the second server as the first one's replica. Raises PairFailed. Only the main thread may."""
        first, second = self.servers
        for server in self.servers:
            server.start()
            await self._until(partial(self.ask, server, "PING"), "a Redis to answer")
        self.follow(second, first)
        await self.replicated(second)
        if not self._with_sentinels:
            return
        for number in range(3):
            lines = [
                f"sentinel monitor {NAME} 127.0.0.1 {first.port} 2",
                f"sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}",
                f"sentinel failover-timeout {NAME} 3000",
                f"sentinel auth-user {NAME} sentinel",
                f"sentinel auth-pass {NAME} {self._passwords['sentinel']}",
            ]
            self.sentinels.append(Server(self._root / f"sentinel-{number}", lines, sentinel=True))
            self.sentinels[-1].start()
        await self._until(
            lambda: all(self._knows(each) for each in self.sentinels), "the Sentinels to know one another"
        )
        for each in self.sentinels:
            self._told(each, lambda client: client.execute_command("SENTINEL DEBUG", *QUICKLY))

    def stop(self) -> None:
        for server in (*self.sentinels, *self.servers):
            server.signal(signal.SIGCONT)
            server.kill()

    def url(self, user: str, server: Server | None = None) -> str:
        """The URL of a server. Without ``server``: of the master, by way of the Sentinels where there are some."""
        password = self._passwords[user]
        if server is None and self.sentinels:
            hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
            return f"redis+sentinel://{user}:{password}@{hosts}/{NAME}/0"
        return f"redis://{user}:{password}@127.0.0.1:{(server or self.master).port}/0"

    def other(self, server: Server) -> Server:
        return self.servers[server is self.servers[0]]

    def ask(self, server: Server, *words: str | int) -> Any:
        """The answer to a command; None where there is none."""
        client = connect(self.url("admin", server), timeout_s=1.0)
        return _answer(client, lambda client: client.execute_command(*words))

    def follow(self, server: Server, master: Server | None) -> None:
        """Make it a replica of another; None: its own master."""
        where = ("127.0.0.1", master.port) if master else ("NO", "ONE")
        self.ask(server, "REPLICAOF", *where)

    async def replicated(self, server: Server) -> None:
        """Wait until it follows its master. Raises PairFailed."""
        await self._until(lambda: self._follows(server), "a replica")

    async def named(self, server: Server) -> None:
        """Wait until every Sentinel names it as the master, and it is one. Raises PairFailed."""
        await self._until(
            lambda: all(self._named(each) == server.port for each in self.sentinels) and self._is_master(server),
            "the failover",
        )
        self.master = server

    async def rejoined(self) -> None:
        """Wait until one follows the other, and every Sentinel names that one as the master and sees the follower as
        one that could be promoted. It may be the former master: on a host without CPU time the Sentinels take the new
        one for dead as well. Raises PairFailed.
        """
        await self._until(self._is_whole, "the Sentinels to see a replica")

    def _is_whole(self) -> bool:
        for replica in self.servers:
            master = self.other(replica)
            if self._follows(replica) and self._is_master(master):
                self.master = master
                return all(self._named(each) == master.port and self._good(each) for each in self.sentinels)
        return False

    def order_failover(self) -> None:
        """Order a failover, as an operator would."""
        self._told(self.sentinels[0], lambda client: client.execute_command("SENTINEL FAILOVER", NAME))

    # -- what they say

    def _follows(self, server: Server) -> bool:
        told = self.ask(server, "INFO", "replication")
        return bool(told) and told.get("role") == "slave" and told.get("master_link_status") == "up"

    def _is_master(self, server: Server) -> bool:
        told = self.ask(server, "INFO", "replication")
        return bool(told) and told.get("role") == "master"

    def _told(self, sentinel: Server, question: Callable[[Any], Any]) -> Any:
        """What a Sentinel answers; None where it does not."""
        return _answer(redis.Redis(port=sentinel.port, decode_responses=True, protocol=2, socket_timeout=1.0), question)

    def _knows(self, sentinel: Server) -> bool:
        told = self._told(sentinel, lambda client: client.sentinel_master(NAME))
        return bool(told) and int(told["num-other-sentinels"]) == 2 and int(told["num-slaves"]) >= 1

    def _named(self, sentinel: Server) -> int:
        told = self._told(sentinel, lambda client: client.sentinel_get_master_addr_by_name(NAME))
        return int(told[1]) if told else 0

    def _good(self, sentinel: Server) -> bool:
        told = self._told(sentinel, lambda client: client.sentinel_slaves(NAME))
        return any(each["master-link-status"] == "ok" and not each["is_sdown"] for each in told or ())

    async def _until(self, true: Callable[[], Any], what: str) -> None:
        until_s = time.monotonic() + LIMIT_S
        while not await asyncio.to_thread(true):
            if time.monotonic() > until_s:
                raise PairFailed(f"waited {LIMIT_S:g} s for {what}; see {self._root}")
            await asyncio.sleep(0.05)


def _answer(client: Any, question: Callable[[Any], Any]) -> Any:
    try:
        return question(client)
    except (RedisError, OSError):
        return None
    finally:
        client.close()


def _users(folder: Path, passwords: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "users.acl"
    path.touch(0o600)
    path.write_text(acl.acl_file(passwords))
    return path
