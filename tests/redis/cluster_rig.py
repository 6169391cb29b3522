"""Three masters of a cluster, each with a replica."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import redis

from oarlock.broker.connection.finders import slot_of
from tests.redis.real_servers import PASSWORDS, RealServer, free_port, started, until

BUS = 10_000
NODE_TIMEOUT_MS = 4_000
"""Longer than a node of a busy machine stands still: else the others fail over without being asked to."""
SLOTS = 16_384


class ClusterRig:
    """``nodes``: the first three begin as masters. ``replicas``: one each, or none."""

    def __init__(self, folder: Path, *, replicas: bool = True) -> None:
        self.nodes = [
            RealServer(
                folder / f"node-{number}",
                port=free_port(BUS),
                cluster_enabled="yes",
                cluster_config_file="nodes.conf",
                cluster_node_timeout=NODE_TIMEOUT_MS,
                repl_diskless_sync_delay=0,
                masteruser="replica",
                masterauth=PASSWORDS["replica"],
            )
            for number in range(6 if replicas else 3)
        ]
        started(*self.nodes)
        first = self.nodes[0]
        bounds = [SLOTS * number // 3 for number in range(4)]
        for number, node in enumerate(self.nodes):
            client = node.client()
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
            if number < 3:
                client.execute_command("CLUSTER ADDSLOTSRANGE", bounds[number], bounds[number + 1] - 1)
        for node in self.nodes[1:]:  # once they know of one another, they choose their config epochs themselves
            node.client().execute_command("CLUSTER MEET", "127.0.0.1", first.port)
        for node in self.nodes:
            until(lambda node=node: len(self._known(node)) == len(self.nodes), what="the nodes to meet")
        ids = [node.client().execute_command("CLUSTER MYID") for node in self.nodes]
        for number, node in enumerate(self.nodes[3:]):
            until(lambda node=node, number=number: self._follows(node, ids[number]), what="the replicas")
        for node in self.nodes:
            until(lambda node=node: self.state(node) == "ok", what="the cluster to be well")
        for node in self.nodes[3:]:
            until(lambda node=node: node.client().info("replication")["master_link_status"] == "up", what="a link")

    def _known(self, node: RealServer) -> list[str]:
        return [
            line
            for line in str(node.client().execute_command(b"CLUSTER", "NODES")).splitlines()
            if "handshake" not in line
        ]

    def _follows(self, node: RealServer, master_id: str) -> bool:
        try:
            node.client().execute_command("CLUSTER REPLICATE", master_id)
        except redis.RedisError:  # it has not heard of it yet
            return False
        return True

    def state(self, node: RealServer) -> str:
        """ok or fail, as this node sees it."""
        told: dict[str, str] = node.client().execute_command("CLUSTER INFO")
        return told["cluster_state"]

    def url(self, user: str, nodes: int = 3) -> str:
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.nodes[:nodes])
        return f"redis+cluster://{user}:{PASSWORDS[user]}@{hosts}/"

    def seen_by(self, node: RealServer) -> list[tuple[int, int, list[int]]]:
        """(first slot, last slot, [port of the master, ports of replicas]) as this node tells."""
        told: list[Any] = node.client().execute_command(b"CLUSTER", "SLOTS")
        return [(first, last, [each[1] for each in servers]) for first, last, *servers in told]

    def master_of(self, shard: str = "0", asked: RealServer | None = None) -> RealServer:
        """The master of the shard's slot."""
        slot = slot_of(shard)
        for first, last, ports in self.seen_by(asked or self._living()[0]):
            if first <= slot <= last:
                return self._by_port(ports[0])
        raise AssertionError(f"nobody has slot {slot}")

    def masters(self) -> list[RealServer]:
        """Those that have slots and live."""
        found = dict.fromkeys(ports[0] for _, _, ports in self.seen_by(self._living()[0]))
        return [node for node in map(self._by_port, found) if node.answers_now()]

    def _living(self) -> list[RealServer]:
        return [node for node in self.nodes if node.answers_now()]

    def replica_of(self, master: RealServer) -> RealServer:
        """A replica of it that has data to show."""
        return until(lambda: next(iter(self._replicas(master)), None), what="its replica")

    def _replicas(self, master: RealServer) -> list[RealServer]:
        seen = [ports for _, _, ports in self.seen_by(self._living()[0]) if ports[0] == master.port]
        return [self._by_port(port) for ports in seen for port in ports[1:]]

    def _by_port(self, port: int) -> RealServer:
        return next(each for each in self.nodes if each.port == port)

    def id_of(self, node: RealServer) -> str:
        return str(node.client().execute_command("CLUSTER MYID"))

    # -- moving a slot ---------------------------------------------------------------------------------------------

    def begin_move(self, source: RealServer, target: RealServer, shard: str = "0") -> None:
        """The slot is open at both ends; every key is still at the source."""
        slot = slot_of(shard)
        target.client().execute_command("CLUSTER SETSLOT", slot, "IMPORTING", self.id_of(source))
        source.client().execute_command("CLUSTER SETSLOT", slot, "MIGRATING", self.id_of(target))

    def move_keys(self, source: RealServer, target: RealServer, shard: str = "0", limit: int = 1 << 30) -> int:
        """As redis-cli does: keys by tens. Returns how many went."""
        slot, client, moved = slot_of(shard), source.client(), 0
        while moved < limit:
            names = client.execute_command("CLUSTER GETKEYSINSLOT", slot, min(10, limit - moved))
            if not names:
                break
            credentials = ("AUTH2", "admin", PASSWORDS["admin"])
            client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5_000, *credentials, "KEYS", *names)
            moved += len(names)
        return moved

    def end_move(self, target: RealServer, shard: str = "0") -> None:
        """The slot is the target's, and everybody is told."""
        slot, owner = slot_of(shard), self.id_of(target)
        masters = {ports[0] for _, _, ports in self.seen_by(target)} | {target.port}
        for port in (target.port, *(masters - {target.port})):
            self._by_port(port).client().execute_command("CLUSTER SETSLOT", slot, "NODE", owner)
        for node in self.nodes:
            if node.answers_now():
                until(lambda node=node: self.master_of(shard, node) is target, what="all to hear of the move")

    def cancel_move(self, source: RealServer, target: RealServer, shard: str = "0") -> None:
        """As it was, less the keys that have gone."""
        for node in (source, target):
            node.client().execute_command("CLUSTER SETSLOT", slot_of(shard), "STABLE")

    def order_failover(self, replica: RealServer) -> None:
        """Until it is the master by its own account: on a busy machine an order runs out, and is given again."""
        due_s = 0.0

        def ordered() -> bool:
            nonlocal due_s
            if replica.client().info("replication")["role"] == "master":
                return True
            if time.monotonic() >= due_s:
                due_s = time.monotonic() + 6.0  # upstream gives up after five
                replica.client().execute_command("CLUSTER FAILOVER")
            return False

        until(ordered, what="the failover")

    def await_master(self, node: RealServer, shard: str = "0", limit_s: float = 60.0) -> float:
        """Seconds until all nodes that live say that ``node`` is the master of the shard."""
        began_s = time.monotonic()
        living = self._living()
        until(lambda: all(self.master_of(shard, each) is node for each in living), limit_s, "the failover")
        until(lambda: all(self.state(each) == "ok" for each in living), limit_s, "the cluster to be well")
        return time.monotonic() - began_s

    def close(self) -> None:
        for node in self.nodes:
            node.kill()
