"""A master, its replica, and three Sentinels that watch them."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import redis

from tests.redis.real_servers import PASSWORDS, RealServer, started, until

DOWN_AFTER_MS = 4_000
"""Longer than a process of a busy machine stands still: else Sentinels fail over without being asked to."""
NAME = "mymaster"


class SentinelRig:
    """``servers``: who is the master changes. ``min_replicas``: 1 stops a master that is cut off from taking writes."""

    def __init__(self, folder: Path, *, min_replicas: int = 0, **options: object) -> None:
        link = {
            "masteruser": "replica",
            "masterauth": PASSWORDS["replica"],
            "repl_diskless_sync_delay": 0,
            "min_replicas_to_write": min_replicas,
            "min_replicas_max_lag": 2 if min_replicas else 10,
            **options,
        }
        first = RealServer(folder / "first", **link)
        second = RealServer(folder / "second", replicaof=f"127.0.0.1 {first.port}", **link)
        self.servers = [first, second]
        started(first, second)
        until(lambda: second.client().info("replication")["master_link_status"] == "up", what="the replica")
        self.sentinels = [
            RealServer(
                folder / f"sentinel-{number}",
                users=False,
                as_sentinel=True,
                sentinel=[
                    f"monitor {NAME} 127.0.0.1 {first.port} 2",
                    f"down-after-milliseconds {NAME} {DOWN_AFTER_MS}",
                    f"failover-timeout {NAME} 3000",
                    f"auth-user {NAME} sentinel",
                    f"auth-pass {NAME} {PASSWORDS['sentinel']}",
                ],
            )
            for number in range(3)
        ]
        started(*self.sentinels)
        for each in self.sentinels:
            until(lambda each=each: self._knows_all(each), what="the Sentinels to know one another")

    def _knows_all(self, sentinel: RealServer) -> bool:
        told: dict[str, Any] = sentinel.client().sentinel_master(NAME)
        return int(told["num-other-sentinels"]) == 2 and int(told["num-slaves"]) >= 1

    def url(self, user: str) -> str:
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://{user}:{PASSWORDS[user]}@{hosts}/{NAME}/0"

    @property
    def master(self) -> RealServer:
        """Whom the Sentinels name."""
        _, port = self.sentinels[0].client().sentinel_get_master_addr_by_name(NAME)
        return next(each for each in self.servers if each.port == int(port))

    @property
    def replica(self) -> RealServer:
        """The other one."""
        return next(each for each in self.servers if each is not self.master)

    def await_master(self, server: RealServer, limit_s: float = 60.0) -> float:
        """Seconds until every Sentinel names it and it says so itself."""
        began_s = time.monotonic()

        def agreed() -> bool:
            with contextlib.suppress(redis.RedisError):
                named = {int(each.client().sentinel_get_master_addr_by_name(NAME)[1]) for each in self.sentinels}
                return named == {server.port} and server.client().info("replication")["role"] == "master"
            return False

        until(agreed, limit_s, "the failover")
        return time.monotonic() - began_s

    def order_failover(self) -> None:
        """Told to one of them, as a person would, and again where it came to nothing. Until it names the other."""
        other = self.replica
        due_s = 0.0

        def ordered() -> bool:
            nonlocal due_s
            if self.master is other:
                return True
            if time.monotonic() >= due_s:
                with contextlib.suppress(redis.ResponseError):  # INPROG, NOGOODSLAVE: not yet
                    self.sentinels[0].client().execute_command("SENTINEL FAILOVER", NAME)
                    due_s = time.monotonic() + 10.0
            return False

        until(ordered, what="the failover")

    def await_replica(self) -> None:
        """Until the other server follows the master, and every Sentinel knows."""
        until(self._follows, what="a replica")
        for each in self.sentinels:
            until(lambda each=each: self._good_replica(each), what="the Sentinels to see it")

    def _follows(self) -> bool:
        try:
            told = self.replica.client().info("replication")
        except redis.RedisError:
            return False
        return told["role"] == "slave" and told["master_link_status"] == "up"

    def _good_replica(self, sentinel: RealServer) -> bool:
        told: list[dict[str, Any]] = sentinel.client().sentinel_slaves(NAME)
        return any(each["master-link-status"] == "ok" and not each["is_sdown"] for each in told)

    def close(self) -> None:
        for each in (*self.sentinels, *self.servers):
            each.kill()
