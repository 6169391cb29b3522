"""One fleet of so many hosts, and one pile of owners that it works off."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from benchmarks.audited import await_audited, whole_lines
from benchmarks.phase import await_rest
from benchmarks.processes import CpuMeter
from benchmarks.report import Unfit, median
from benchmarks.scale_out.hosts import GATEWAY, Bridge, Host
from benchmarks.tree import NAMESPACE, Tree
from benchmarks.versus_kcm_server import idle_ticks
from oarlock.broker.redis_broker import RedisBroker
from oarlock.cluster.resources import REPLICASETS

PODS_PER_NODE = 500
LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Setting:
    """``owners``: of so many ``pods`` each, for each worker. ``latency_ms``: of the API server, there and back."""

    owners: int
    pods: int
    latency_ms: float
    writes_in_flight: int


@dataclass(frozen=True, slots=True)
class Run:
    """``seconds``: from the first pod to the last. ``cpu_ms``: a pod, by role, until all statuses say it is available.

    ``idle``: share of the time of the machine's cores. ``latency_ms``: as the relays measured it.
    """

    pods_per_s: float
    turns_per_s: float
    seconds: float
    cpu_ms: Mapping[str, float]
    idle: float
    latency_ms: float

    @property
    def cores(self) -> float:
        """That the processes of the run kept busy at most: a part of the CPU is spent after the last create."""
        return self.pods_per_s * sum(self.cpu_ms.values()) / 1e3


def once(setting: Setting, workers: int) -> Run:
    """Each worker has the same share of work, so that a run takes the same time if they do not hinder one another.

    The fleet is paused until every owner is queued. Raises Unfit and NoNamespaces.
    """
    sets = {f"web-{number:05d}": setting.pods for number in range(setting.owners * workers)}
    pods = sum(sets.values())
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="oarlock-bench-")))
        bridge = ends.enter_context(Bridge())
        tree = ends.enter_context(Tree(workers=0, nodes=max(5, pods // PODS_PER_NODE), ingestors=1))
        tree.redis.config_set("bind", f"127.0.0.1 {GATEWAY}")
        broker = RedisBroker(tree.redis, tree.keys_epoch)
        broker.pause("a benchmark creates its owners first")
        hosts = [_host(ends, bridge, tree, folder, setting, number) for number in range(workers)]
        processes = [*tree.roles(), *(process for host in hosts for process in host.await_worker())]
        queued = tree.queued()["replicaset"]
        tree.apply(sets)
        tree.await_true(lambda: tree.redis.hlen(tree.keys.state("replicaset")) == len(sets), "all to be queued")
        meter, ticks, begun_s = CpuMeter(processes), idle_ticks(), time.time()
        broker.pause("")
        tree.await_true(lambda: _available(tree) == sets, "every status to say that all pods are there", LIMIT_S, 0.5)
        await_rest(tree, LIMIT_S)
        spent_ns, ticks_after = meter.spent_ns(), idle_ticks()
        turns = tree.queued()["replicaset"] - queued
        delays_ms = [host.stop() for host in hosts]
        created_s, written_s = _exact(tree, sets)
    if written_s[0] < begun_s:
        raise Unfit("a worker wrote before the fleet was to begin")
    seconds = created_s[-1] - created_s[0]
    idle, every = (after - before for after, before in zip(ticks_after, ticks, strict=True))
    return Run(
        pods / seconds,
        turns / (written_s[-1] - written_s[0]),
        seconds,
        {role: ns / 1e6 / pods for role, ns in spent_ns.items()},
        idle / every,
        2 * median(delays_ms),
    )


def _host(ends: ExitStack, bridge: Bridge, tree: Tree, folder: Path, setting: Setting, number: int) -> Host:
    settings = {"OARLOCK_WRITES_IN_FLIGHT": str(setting.writes_in_flight)}
    host = Host(bridge.plug(number), tree, folder / f"host-{number}", settings, setting.latency_ms / 2)
    ends.callback(host.kill)
    return host


def _exact(tree: Tree, sets: Mapping[str, int]) -> tuple[list[float], list[float]]:
    """When the API server got each create of a pod, and each write of a worker of a pod or a status; both sorted.

    Raises Unfit where the pods created, by its audit log, are not just those that were asked for, each once.
    """
    created: Counter[str] = Counter()
    created_s, written_s = [], []
    await_audited(tree, tree.state.audit_log)
    for line in whole_lines(tree.state.audit_log):
        event = json.loads(line)
        meant, code = event["objectRef"], event["responseStatus"]["code"]
        if meant["resource"] == "pods" and event["verb"] == "delete":
            raise Unfit(f"pod {meant['name']} was deleted")
        if "(worker" not in event["userAgent"] or meant["resource"] not in ("pods", "replicasets"):
            continue
        written_s.append(datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp())
        if event["verb"] == "create" and code == 201:
            created[event["responseObject"]["metadata"]["name"]] += 1
            created_s.append(written_s[-1])
    by_owner = Counter(name.rpartition("-")[0] for name in created)
    if created.total() != len(created) or by_owner != Counter(sets):
        raise Unfit(f"{created.total()} pods were created, {len(created)} names, of {sum(sets.values())} asked for")
    return sorted(created_s), sorted(written_s)


def _available(tree: Tree) -> dict[str, int]:
    """Name of an owner -> how many pods its status says are available."""

    async def read() -> dict[str, int]:
        found = {}
        async with aclosing(tree.client.list_pages(REPLICASETS, namespace=NAMESPACE)) as pages:
            async for page in pages:
                owners = map(orjson.loads, page.items)
                found |= {each["metadata"]["name"]: each["status"].get("availableReplicas", 0) for each in owners}
        return found

    told: dict[str, int] = tree.io.run(read(), 60.0)
    return told
