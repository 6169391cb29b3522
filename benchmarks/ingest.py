"""How many events of pods an ingestor takes from a watch into Redis, and what an event costs.

A server streams the lives of pods as fast as they are read: each comes, gets a node, runs and becomes ready; half of
them go again. The ingestor's own parts (client, framing, projection, batches, the script) run in this process as they
do in an ingestor, on two threads; Redis and the server are processes of their own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson

from benchmarks import planted, report
from benchmarks.processes import cpu_ns
from benchmarks.report import Unfit, median, say, spread
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client
from oarlock.controllers.builtin import PODS
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.ingest.api_lister_watcher import ApiListerWatcher
from oarlock.workers.ingest.applier import Applied, Applier
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.projection import Projector
from oarlock.workers.process.clock import SystemClock
from oarlock.workers.process.io_loop import IoLoop

FIRST_RV = 1_000
"""What is planted was listed at it."""
LIMIT_S = 300.0


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    rows: dict[str, list[float]] = {"events_per_s": [], "ingestor_us": [], "redis_us": []}
    for number in range(1, options.rounds + 1):
        for name, figure in _round(options).items():
            rows[name].append(figure)
        last = {name: figures[-1] for name, figures in rows.items()}
        say(
            f"round {number}: {last['events_per_s']:,.0f} events/s, {last['ingestor_us']:.1f} us of the ingestor,"
            f" {last['redis_us']:.1f} us of Redis"
        )
    titles = (("events/s", "events_per_s", 0), ("ingestor, us", "ingestor_us", 1), ("Redis, us", "redis_us", 1))
    shown = [(title, spread(rows[name], digits)) for title, name, digits in titles]
    report.show(f"an event of a pod; median [least-most] of {options.rounds} rounds", ("", ""), shown)
    figures = {name: round(median(found), 1) for name, found in rows.items()}
    report.finish({"benchmark": "ingest", **figures, "pods": options.pods, "rounds": options.rounds})


def _round(options: argparse.Namespace) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder, EmbeddedRedis(Path(folder) / "redis") as redis:
        broker = planted.plant(connect(redis.url("admin")), {"web": (options.pods // options.per_owner, 0)})
        planted.open_turns(broker)
        lines = Path(folder) / "events"
        lines.write_bytes(b"\n".join(_lives(options.pods, options.per_owner)) + b"\n")
        count = options.pods * 4 + options.pods // 2
        server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.ingest_server", str(lines)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
            return _ingest(RedisBroker(connect(redis.url("ingestor")), planted.EPOCH), address, count, redis.pid)
        finally:
            server.kill()
            server.wait()


def _ingest(broker: RedisBroker, address: str, count: int, redis_pid: int) -> dict[str, float]:
    owners = KnownOwners()
    applier = Applier(Projector(PODS, owners), owners)
    io, arrived = IoLoop(), threading.Event()

    async def opened() -> Client:
        return Client(ClusterConfig(address))

    client = io.run(opened())
    with ExitStack() as ended:
        ended.callback(io.close)
        ended.callback(lambda: io.run(client.close()))
        applier.start(str(FIRST_RV))
        cpu, begun_s = (time.process_time_ns(), cpu_ns(redis_pid)), time.monotonic()
        stream = ApiListerWatcher(client, PODS, io, arrived.set, SystemClock()).watch(str(FIRST_RV))
        ended.callback(stream.close)
        while applier.counts.applied < count:
            result = applier.step(broker, stream)
            if result is Applied.NOTHING:
                if stream.end() is not None or not arrived.wait(LIMIT_S):
                    raise Unfit(f"the watch ended after {applier.counts.applied:,} of {count:,} events: {stream.end()}")
                arrived.clear()
            elif result is not Applied.DONE:
                raise Unfit(f"a batch was not applied: {result}")
        took_s = time.monotonic() - begun_s
        spent = time.process_time_ns() - cpu[0], cpu_ns(redis_pid) - cpu[1]
    return {"events_per_s": count / took_s, "ingestor_us": spent[0] / count / 1e3, "redis_us": spent[1] / count / 1e3}


def _lives(pods: int, per_owner: int) -> Iterator[bytes]:
    """Watch lines. Pods of many owners are at each step together, as under a rollout."""
    made = [pod for number in range(pods // per_owner) for pod in planted.pods_of(f"web-{number:05d}", per_owner)]
    waiting: dict[str, Any] = {"status": {"phase": "Pending"}}
    running = {"status": {**made[0]["status"], "conditions": [{"type": "Ready", "status": "False"}]}}
    steps: tuple[tuple[str, dict[str, Any]], ...] = (
        ("ADDED", {**waiting, "spec": {}}),
        ("MODIFIED", waiting),
        ("MODIFIED", running),
        ("MODIFIED", {}),
    )
    events = [(kind, {**pod, **change}) for kind, change in steps for pod in made]
    events += [("DELETED", pod) for pod in made[::2]]
    for rv, (kind, pod) in enumerate(events, FIRST_RV + 1):
        metadata = {**pod["metadata"], "resourceVersion": str(rv)}
        yield orjson.dumps({"type": kind, "object": {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": metadata}})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=5)
    add("--pods", type=int, default=10_000)
    add("--per-owner", type=int, default=10)
    return parser


if __name__ == "__main__":
    report.main(main)
