"""What a turn that finds nothing to do costs by the number of its owner's pods: read as counts, and read one by one.

Both are measured in one process and in the same round, on the same Redis: CPU of the worker's part and of Redis, and
the time of a turn. "One by one" is what signed objects ask for; checking the signatures comes on top.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import planted, report
from benchmarks.processes import cpu_ns
from benchmarks.report import Unfit, percentile, say
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch
from oarlock.controllers.registry import CONTROLLERS
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.clock import SystemClock
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.engine import Engine

QUEUE = "replicaset"
SIZES = (3, 50, 500, 5_000)


@dataclass(slots=True)
class Costs:
    """Of turns of one size: least CPU microseconds of any round, and milliseconds of each turn."""

    worker_us: float = float("inf")
    redis_us: float = float("inf")
    turns_ms: list[float] = field(default_factory=list)


class _NoApi:
    """A turn that finds nothing to do asks the API for nothing."""

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: Any) -> Any:
            raise Unfit(f"a turn asked the API: {name}")

        return refuse


class Reader:
    """Takes turns over owners at rest, as a worker does."""

    def __init__(self, broker: RedisBroker, name: str, *, in_full: bool) -> None:
        self._engine = Engine(broker, _NoApi(), Settings(), SystemClock(), (QUEUE,))  # type: ignore[arg-type]
        if in_full:
            self._engine._order.in_full()
        self._name = name
        self._engine.register(name, "bench")

    def drain(self, costs: Costs) -> int:
        """Every turn that is queued. Returns how many there were."""
        done = 0
        while True:
            began = time.perf_counter()
            batch = self._engine.claim(self._name, 8)
            if not isinstance(batch, Batch):
                return done
            finishes = [self._engine.start(batch, claim).advance() for claim in batch.claims]
            self._engine.finish([each for each in finishes if each is not None])
            done += len(finishes)
            costs.turns_ms += [(time.perf_counter() - began) / len(finishes) * 1e3] * len(finishes)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    groups = {f"of-{size}": (max(1, options.pods // size), size) for size in SIZES if size <= options.pods}
    with (
        tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder,
        EmbeddedRedis(Path(folder) / "redis") as server,
    ):
        admin = connect(server.url("admin"), timeout_s=60.0)
        say(f"filling the cache: {options.pods:,} pods of each size of owner")
        broker = planted.plant(admin, groups)
        planted.open_turns(broker)
        worker = RedisBroker(connect(server.url("worker")), planted.EPOCH)
        readers = {how: Reader(worker, how, in_full=how == "pods") for how in ("counts", "pods")}
        readers["counts"].drain(Costs())
        costs = {(how, group): Costs() for group in groups for how in readers}
        for number in range(1, options.rounds + 1):
            for (how, group), mine in costs.items():
                _round(broker, server.pid, readers[how], planted.keys(group, groups[group][0]), mine, options.passes)
            say(f"round {number} of {options.rounds}")
    _report(options, groups, costs)


def _round(broker: RedisBroker, redis_pid: int, reader: Reader, keys: Sequence[str], costs: Costs, passes: int) -> None:
    turns = 0
    cpu = time.process_time_ns(), cpu_ns(redis_pid)
    for _ in range(passes):
        broker.add(QUEUE, keys)
        turns += reader.drain(costs)
    if turns != passes * len(keys):
        raise Unfit(f"{turns} turns, not {passes * len(keys)}")
    costs.worker_us = min(costs.worker_us, (time.process_time_ns() - cpu[0]) / turns / 1e3)
    costs.redis_us = min(costs.redis_us, (cpu_ns(redis_pid) - cpu[1]) / turns / 1e3)


def _report(
    options: argparse.Namespace, groups: dict[str, tuple[int, int]], costs: dict[tuple[str, str], Costs]
) -> None:
    rows, sizes = [], {}
    for group, (_, size) in groups.items():
        cells = [f"owners of {size:,} pods"]
        for how in ("counts", "pods"):
            mine = costs[how, group]
            p50_ms = percentile(mine.turns_ms, 0.5)
            cells += [f"{mine.worker_us:,.0f}", f"{mine.redis_us:,.0f}", f"{p50_ms:.2f}"]
            sizes[f"{how}_{size}"] = [round(mine.worker_us, 1), round(mine.redis_us, 1), round(p50_ms, 3)]
        rows.append(tuple(cells))
    headings = ("", "counts: worker us", "Redis us", "p50 ms", "pods: worker us", "Redis us", "p50 ms")
    report.show(f"a no-op turn; least CPU of {options.rounds} rounds, median time", headings, rows)
    report.finish({"benchmark": "pods", "turns": sizes, "rounds": options.rounds, "pods": options.pods})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pods", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pods", type=int, default=10_000, help="pods of all owners of a size together")
    parser.add_argument("--passes", type=int, default=3, help="times a round goes over its keys")
    return parser


if __name__ == "__main__":
    assert CONTROLLERS, "the kinds are registered by the package of benchmarks"
    report.main(main)
