"""One large cluster, brought up, churned and robbed of its Redis."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.large.behind import Behind
from benchmarks.large.churn import churn
from benchmarks.large.statuses import Statuses
from benchmarks.processes import CpuMeter, pss_kb, rss_kb
from benchmarks.report import Unfit, say
from benchmarks.tree import Tree, daemonset, deployment, replicaset
from oarlock.broker import epoch
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.steps import script_texts
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cluster.resources import DAEMONSETS, DEPLOYMENTS, REPLICASETS, Resource

PODS_PER_OWNER = 10
PODS_PER_NODE = 50
LIMIT_S = 3_600.0
SLOW_US = 10_000
SAMPLE_S = 0.5


@dataclass(frozen=True, slots=True)
class Size:
    """Seven of ten pods are of ReplicaSets, two of Deployments, one of DaemonSets that have a pod on every node."""

    pods: int

    @property
    def nodes(self) -> int:
        return max(5, self.pods // PODS_PER_NODE)

    @property
    def owners(self) -> dict[Resource, list[dict[str, Any]]]:
        sets = [replicaset(f"web-{n:05d}", PODS_PER_OWNER) for n in range(self.pods * 7 // 10 // PODS_PER_OWNER)]
        rollouts = [deployment(f"api-{n:05d}", PODS_PER_OWNER) for n in range(self.pods * 2 // 10 // PODS_PER_OWNER)]
        daemons = [daemonset(f"log-{n:02d}") for n in range(max(1, round(self.pods / 10 / self.nodes)))]
        return {REPLICASETS: sets, DEPLOYMENTS: rollouts, DAEMONSETS: daemons}

    @property
    def exact(self) -> int:
        """Pods that these owners ask for."""
        owners = self.owners
        of_sets = PODS_PER_OWNER * (len(owners[REPLICASETS]) + len(owners[DEPLOYMENTS]))
        return of_sets + self.nodes * len(owners[DAEMONSETS])


@dataclass(frozen=True, slots=True)
class Grown:
    """The way up. Seconds from the first request to the last status; CPU in ms a pod, by role.

    ``first_s``: of each ReplicaSet, from its first event to the first status that tells of a pod. ``behind_s``: see
    Behind.longest_s.
    """

    ready_s: float
    cpu_ms: dict[str, float]
    first_s: list[float]
    behind_s: dict[str, float]


def grow(tree: Tree, size: Size) -> Grown:
    """Create the owners and wait until each says that all of its pods are available."""
    owners = size.owners
    seen = {kind: Statuses(tree, kind, [each["metadata"]["name"] for each in made]) for kind, made in owners.items()}
    processes, meter, begun_s = tree.roles(), CpuMeter(tree.roles()), time.monotonic()
    for kind, made in owners.items():
        tree.create(kind, made)
        say(f"{len(made):,} {kind.plural} are asked for after {time.monotonic() - begun_s:.0f} s")
    behind, said_s = Behind(tree, seen), begun_s
    while left := sum(each.unsettled for each in seen.values()):
        now_s = time.monotonic()
        if now_s - begun_s > LIMIT_S:
            raise Unfit(f"{left} owners had not settled after {LIMIT_S:.0f} s")
        cached, told = behind.sample()
        if now_s - said_s > 10:
            said_s = now_s
            say(f"{now_s - begun_s:.0f} s: {cached:,} pods cached, {told:,} told, {left:,} owners wait")
        time.sleep(SAMPLE_S)
    ready_s = time.monotonic() - begun_s
    behind.sample()
    spent = meter.spent_ns()
    for each in seen.values():
        each.stop()
    if tree.roles() != processes:
        raise Unfit("a process ended and was started again meanwhile")
    first = [told.first_s - told.seen_s for told in seen[REPLICASETS].owners.values() if told.first_s is not None]
    cpu_ms = {role: ns / 1e6 / size.exact for role, ns in spent.items()}
    return Grown(ready_s, cpu_ms, first, behind.longest_s)


def at_rest(tree: Tree) -> bool:
    """Whether no key is queued or in work. The deadlines of Deployments stay delayed."""
    seen = Inspector(tree.redis, tree.keys_epoch)
    return not any(view.queued or view.in_work for view in map(seen.queue, seen.queues()))


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident MB of each process by role, at rest. Redis: bytes a pod by its own count, histories of keys apart.

    ``fleet_mb``: all of it but API server and nodes, pages that processes share counted once.
    """

    rss_mb: dict[str, list[int]]
    fleet_mb: int
    redis_bytes: float
    history_bytes: float


def memory(tree: Tree, size: Size, before_bytes: int) -> Memory:
    """``before_bytes``: of Redis, before there was anything."""
    histories = int(tree.redis.get(tree.keys.of("history_bytes")) or 0)
    used = tree.used_memory() - before_bytes
    rss: dict[str, list[int]] = {}
    for role, pid in tree.roles():
        rss.setdefault(role, []).append(rss_kb(pid) // 1024)
    fleet_mb = sum(pss_kb(pid) for role, pid in tree.roles() if role != "api") // 1024
    return Memory(rss, fleet_mb, (used - histories) / size.exact, histories / size.exact)


def replaced_ms(tree: Tree, per_s: float, seconds: float) -> list[float]:
    """See churn."""
    took: list[float] = tree.io.run(churn(tree, per_s, seconds), seconds + 600)
    return took


def reopened_s(tree: Tree) -> float:
    """Kill Redis. Seconds until turns begin again, in a later epoch."""
    (pid,) = (pid for role, pid in tree.roles() if role == "redis")
    os.kill(pid, signal.SIGKILL)
    begun_s = time.monotonic()

    def opened() -> bool:
        try:
            seen = epoch.current(tree.redis)
        except BrokerUnreachable:
            return False
        return seen.epoch > tree.keys_epoch and seen.phase == "OPEN"

    tree.await_true(opened, "a later epoch", LIMIT_S, 0.05)
    return time.monotonic() - begun_s


def slow_calls(tree: Tree) -> dict[str, float]:
    """The longest call of each script or command that took 10 ms or more, in ms."""
    names = {script_texts.sha(name, tree.keys_epoch): name for name in script_texts.NAMES}
    longest: dict[str, float] = {}
    for entry in tree.redis.slowlog_get(1_000):
        words = entry["command"].decode(errors="replace").split()
        name = names.get(words[1], words[1]) if words[0] == "EVALSHA" else words[0]
        longest[name] = max(longest.get(name, 0.0), entry["duration"] / 1e3)
    return longest


def log_slow_calls(tree: Tree) -> None:
    tree.redis.config_set("slowlog-log-slower-than", SLOW_US)
    tree.redis.config_set("slowlog-max-len", 1_000)
    tree.redis.slowlog_reset()
