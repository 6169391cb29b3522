"""What simulated nodes cost: start-up, standing still, and a burst of pods each pinned to a node. Not a test:

    python -m tests.sandbox.nodes.node_cost --nodes 1000 --pods 1000

The server is a process of its own; CPU is its user and system time. The burst is done twice, once with pods that
no scheduler takes: the difference is what binding and running a pod costs. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson
import uvloop

from oarlock.cluster.access import config
from oarlock.cluster.client import Client
from oarlock.cluster.listing import list_all
from oarlock.cluster.resources import NODES, PODS
from tests import ROOT
from tests.cluster.client_helpers import one_by_one

IN_FLIGHT = 64
WAIT_S = 120.0
_EVERY = {"operator": "Exists"}


def cpu_ms(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000.0 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pod(name: str, node: str, scheduler: str) -> bytes:
    """A pod as the DaemonSet controller makes them: it may go to one node only."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "image": "i"}],
        "affinity": {"nodeAffinity": affinity},
        "tolerations": [_EVERY],
        "schedulerName": scheduler,
    }
    metadata = {"name": name, "namespace": "default", "labels": {"app": "agent"}}
    return orjson.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


async def burst(client: Client, pid: int, prefix: str, nodes: list[str], pods: int, scheduler: str) -> dict[str, float]:
    """Create the pods and, where they are scheduled, wait until all are ready."""
    gate = asyncio.Semaphore(IN_FLIGHT)
    bodies = [(pod(f"{prefix}-{at}", nodes[at % len(nodes)], scheduler)) for at in range(pods)]

    async def create(body: bytes) -> None:
        async with gate:
            answer = await client.create(PODS, "default", body)
            if not answer.ok:
                raise RuntimeError(answer.message)

    ready = asyncio.Event()
    rv, _ = await list_all(client.list_pages(PODS))
    watching = asyncio.create_task(count_ready(client, prefix, rv, pods, ready))
    began_s, began_cpu_ms = time.monotonic(), cpu_ms(pid)
    await asyncio.gather(*(create(body) for body in bodies))
    created_s = time.monotonic() - began_s
    if scheduler == "default-scheduler":
        await asyncio.wait_for(ready.wait(), WAIT_S)
    took_s = time.monotonic() - began_s
    watching.cancel()
    used_ms = cpu_ms(pid) - began_cpu_ms
    return {
        "created_s": round(created_s, 3),
        "done_s": round(took_s, 3),
        "pods_per_s": round(pods / took_s, 1),
        "cpu_ms_per_pod": round(used_ms / pods, 3),
    }


async def count_ready(client: Client, prefix: str, rv: str, pods: int, ready: asyncio.Event) -> None:
    """Watch until so many pods of the burst are ready."""
    seen: set[str] = set()
    async for event in one_by_one(client.watch_batches(PODS, rv)):
        obj = orjson.loads(event.object)
        name = obj["metadata"].get("name", "")
        conditions = (obj.get("status") or {}).get("conditions") or ()
        if name.startswith(prefix) and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
            seen.add(name)
            if len(seen) == pods:
                ready.set()
                return


async def measure(args: argparse.Namespace, folder: str) -> dict[str, Any]:
    began_s = time.monotonic()
    command = [sys.executable, "-m", "oarlock.sandbox.apiserver", "--state-dir", folder, "--nodes", str(args.nodes)]
    server = subprocess.Popen([*command, *args.server], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stdout is not None
        ready = json.loads(server.stdout.readline())
        found: dict[str, Any] = {"nodes": args.nodes, "pods": args.pods}
        found["ready_line_s"] = round(time.monotonic() - began_s, 3)
        async with Client(config.load(ready["kubeconfig"])) as client:
            names: list[str] = []
            while len(names) < args.nodes:
                _, items = await list_all(client.list_pages(NODES))
                names = [orjson.loads(item)["metadata"]["name"] for item in items]
            found["all_nodes_s"] = round(time.monotonic() - began_s, 3)
            found["startup_cpu_ms"] = cpu_ms(server.pid)
            await asyncio.sleep(0.5)
            before_ms = cpu_ms(server.pid)
            await asyncio.sleep(args.idle_s)
            found["idle_cpu_percent"] = round((cpu_ms(server.pid) - before_ms) / args.idle_s / 10, 2)
            for at in range(args.rounds):
                found["created_only"] = await burst(client, server.pid, f"b{at}", names, args.pods, "none")
                found["pinned"] = await burst(client, server.pid, f"c{at}", names, args.pods, "default-scheduler")
        return found
    finally:
        server.terminate()
        server.wait(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--idle-s", type=float, default=10.0)
    parser.add_argument("server", nargs="*", help="more arguments for the server")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(uvloop.run(measure(args, folder))))


if __name__ == "__main__":
    main()
