"""How many events of pods an ingestor takes from a watch into Redis, and what an event costs.

A server streams the lives of pods as fast as they are read: each comes, gets a node, runs and becomes ready; half of
them go again. The ingestor's own parts (client, framing, projection, batches, the script) run in this process as they
do in an ingestor, on two threads; Redis and the server are processes of their own.
"""

from __future__ import annotations

import argparse
import json
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
from benchmarks.pods import Costs, Reader
from benchmarks.processes import cpu_ns
from benchmarks.report import Unfit, median, percentile, say, spread
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
    waits_ms: list[float] = []
    for number in range(1, options.rounds + 1):
        for name, figure in _at_once(options).items():
            rows[name].append(figure)
        last = {name: figures[-1] for name, figures in rows.items()}
        waits_ms += (waited := _at_a_pace(options))
        say(
            f"round {number}: {last['events_per_s']:,.0f} events/s, {last['ingestor_us']:.1f} us of the ingestor,"
            f" {last['redis_us']:.1f} us of Redis; p99 to the claim {percentile(waited, 0.99):.1f} ms"
        )
    titles = (("events/s", "events_per_s", 0), ("ingestor, us", "ingestor_us", 1), ("Redis, us", "redis_us", 1))
    shown = [(title, spread(rows[name], digits)) for title, name, digits in titles]
    report.show(f"an event of a pod; median [least-most] of {options.rounds} rounds", ("", ""), shown)
    shares = {"p50": 0.5, "p99": 0.99, "most": 1.0}
    shown = [(title, f"{percentile(waits_ms, share):.1f}") for title, share in shares.items()]
    report.show(f"from the event to the claim of its owner, at {options.per_s:,} events/s, ms", ("", ""), shown)
    figures = {name: round(median(found), 1) for name, found in rows.items()}
    figures |= {f"claim_{title}_ms": round(percentile(waits_ms, share), 2) for title, share in shares.items()}
    facts = {"pods": options.pods, "per_s": options.per_s, "rounds": options.rounds}
    report.finish({"benchmark": "ingest", **figures, **facts})


def _at_once(options: argparse.Namespace) -> dict[str, float]:
    with _Rig(list(_lives(options.pods, options.per_owner)), options.pods // options.per_owner) as rig:
        return rig.ingest()


def _at_a_pace(options: argparse.Namespace) -> list[float]:
    """Ms from each event to the claim of its owner."""
    count = options.per_s * options.seconds
    keys = planted.keys("web", count)
    with _Rig(list(_lives(count, 1))[:count], count, options.per_s) as rig:
        claimer = rig.start("benchmarks.ingest_claimer", rig.redis.url("worker"), str(count))
        _line_of(claimer)
        rig.ingest()
        went_out = dict(zip(keys, map(int, _line_of(rig.server).split()), strict=True))
        claimed: dict[str, int] = json.loads(_line_of(claimer))
    if len(claimed) != count:
        raise Unfit(f"{len(claimed):,} of {count:,} owners were claimed")
    return [(claimed[key] - went_out[key]) / 1e6 for key in keys]


def _line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


class _Rig:
    """A Redis with these many ReplicaSets in its cache and nothing queued, and a server with these lines."""

    def __init__(self, lines: Sequence[bytes], owners: int, per_s: int = 0) -> None:
        self._lines, self._owners, self._per_s = lines, owners, per_s
        self._ended = ExitStack()

    def __enter__(self) -> _Rig:
        with ExitStack() as ended:
            folder = Path(ended.enter_context(tempfile.TemporaryDirectory(prefix="oarlock-bench-")))
            self.redis = ended.enter_context(EmbeddedRedis(folder / "redis"))
            admin = connect(self.redis.url("admin"))
            planted.open_turns(planted.plant(admin, {"web": (self._owners, 0)}))
            Reader(RedisBroker(admin, planted.EPOCH), "w-first", in_full=False).drain(Costs())  # what planting queued
            (folder / "events").write_bytes(b"\n".join(self._lines) + b"\n")
            self._ended = ended.pop_all()
        self.server = self.start("benchmarks.ingest_server", str(folder / "events"), str(self._per_s))
        self._address = f"http://127.0.0.1:{_line_of(self.server)}"
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.close()

    def start(self, *command: str) -> subprocess.Popen[str]:
        """A module as a process, until the rig ends."""
        process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True)
        self._ended.callback(process.wait)
        self._ended.callback(process.kill)
        return process

    def ingest(self) -> dict[str, float]:
        """Take in every line. Raises Unfit."""
        broker = RedisBroker(connect(self.redis.url("ingestor")), planted.EPOCH)
        owners, count = KnownOwners(), len(self._lines)
        applier = Applier(Projector(PODS, owners), owners)
        io, arrived = IoLoop(), threading.Event()

        async def opened() -> Client:
            return Client(ClusterConfig(self._address))

        client = io.run(opened())
        with ExitStack() as ended:
            ended.callback(io.close)
            ended.callback(lambda: io.run(client.close()))
            applier.start(str(FIRST_RV))
            cpu, begun_s = (time.process_time_ns(), cpu_ns(self.redis.pid)), time.monotonic()
            stream = ApiListerWatcher(client, PODS, io, arrived.set, SystemClock()).watch(str(FIRST_RV))
            ended.callback(stream.close)
            while applier.counts.applied < count:
                result = applier.step(broker, stream)
                if result is Applied.NOTHING:
                    if stream.end() is not None or not arrived.wait(LIMIT_S):
                        raise Unfit(f"the watch ended after {applier.counts.applied:,} of {count:,} events")
                    arrived.clear()
                elif result is not Applied.DONE:
                    raise Unfit(f"a batch was not applied: {result}")
            took_s = time.monotonic() - begun_s
            spent = time.process_time_ns() - cpu[0], cpu_ns(self.redis.pid) - cpu[1]
        us = [each / count / 1e3 for each in spent]
        return {"events_per_s": count / took_s, "ingestor_us": us[0], "redis_us": us[1]}


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
    add("--per-s", type=int, default=2_000, help="events a second, of the second part")
    add("--seconds", type=int, default=5, help="for so long")
    return parser


if __name__ == "__main__":
    report.main(main)
