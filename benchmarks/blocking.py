"""What more worker processes bring to controllers of one's own that wait for an API, 20 ms a run.

A real `oarlock operator` with 1 worker process and one with 4, over the same embedded API server, a fresh Redis each. A
backlog of keys is added to workers that wait; the time is from the first add until every key is idle. Ratios are taken
between runs of the same round. A run in which another number of turns ended well is refused.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from benchmarks import report
from benchmarks.processes import CpuMeter
from benchmarks.report import Unfit, median, say, spread
from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.testing import Cluster
from oarlock.workers.process.death_signal import command_dying_with_this_process

FILE = Path(__file__).with_name("blocking_controllers.py")
FLEET = "blocking-controllers"
KINDS = {"blocking": "Blocking", "awaiting": "Awaiting", "alone": "Alone"}
"""Queue -> kind of its objects."""
FEW, MANY = 1, 4
POLL_S, LIMIT_S = 0.004, 120.0
ADDED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Run:
    """``worker_us``: CPU of all workers a turn."""

    per_s: float
    worker_us: float


class Operator:
    """The processes of one run, and how far they are."""

    def __init__(self, cluster: Cluster, server: EmbeddedRedis, workers: int, folder: Path) -> None:
        self._redis: redis.Redis = connect(server.url("admin"), timeout_s=30.0)
        self._log = folder / f"operator-{workers}.log"
        command = [sys.executable, "-m", "oarlock.cli", "operator", str(FILE), "--workers", str(workers)]
        command += ["--install-crds", "--embedded", "--redis", server.url("admin")]
        command += ["--kubeconfig", str(cluster.kubeconfig)]
        self._process = subprocess.Popen(
            command_dying_with_this_process(command),
            env={**os.environ, "OARLOCK_CONCURRENT_ALONE_SYNCS": str(workers)},
            stdin=subprocess.DEVNULL,
            stdout=self._log.open("wb"),
            stderr=subprocess.STDOUT,
        )
        self._until(lambda: len(self.workers()) == workers, "the workers")
        self._broker = RedisBroker(self._redis, epoch.current(self._redis, FLEET).epoch, shard=FLEET)

    def workers(self) -> list[int]:
        """Their process ids."""
        return [int(self._redis.hget(key, "pid") or 0) for key in self._redis.smembers("rq:workers")]

    def run(self, queue: str, keys: Sequence[str], passes: int) -> Run:
        """Have each key looked at ``passes`` times."""
        before, meter, took_s = self._ended(), CpuMeter(("worker", pid) for pid in self.workers()), 0.0
        for _ in range(passes):
            began = time.monotonic()
            for at in range(0, len(keys), ADDED_AT_ONCE):
                self._broker.add(queue, keys[at : at + ADDED_AT_ONCE])
            self._until(lambda: self._idle(queue), "the last key")
            took_s += time.monotonic() - began
        wanted, spent_ns = len(keys) * passes, meter.spent_ns()["worker"]
        self._until(lambda: sum(self._ended()) >= sum(before) + wanted, "the counts")
        well, failed = (now - then for now, then in zip(self._ended(), before, strict=True))
        if (well, failed) != (wanted, 0):
            raise Unfit(f"{well} turns ended well and {failed} failed, not {wanted} and 0")
        return Run(wanted / took_s, spent_ns / wanted / 1e3)

    def await_rest(self, queues: Sequence[str]) -> None:
        """Until the first look at every object is over."""
        self._until(lambda: all(map(self._idle, queues)) and sum(self._ended()) > 0, "the first look")
        before = -1
        while before != sum(self._ended()):
            before = sum(self._ended())
            time.sleep(1.5)  # workers say once a second how many turns they have ended

    def _idle(self, queue: str) -> bool:
        names = self._broker.keys
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.hlen(names.state(queue))
            pipe.xlen(names.stream(queue))
            return not any(pipe.execute())

    def _ended(self) -> tuple[int, int]:
        counts = [
            self._redis.hmget(key, "successful_job_count", "failed_job_count")
            for key in self._redis.smembers("rq:workers")
        ]
        return sum(int(well or 0) for well, _ in counts), sum(int(failed or 0) for _, failed in counts)

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not reached():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Unfit(f"gave up waiting for {what}; the operator said: {self._log.read_text()[-1_000:]}")
            time.sleep(POLL_S)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._redis.close()


@contextmanager
def operator(cluster: Cluster, workers: int, folder: Path) -> Iterator[Operator]:
    """With a Redis of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as at, EmbeddedRedis(Path(at) / "redis") as server:
        running = Operator(cluster, server, workers, folder)
        try:
            yield running
        finally:
            running.close()


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    keys = [f"default/o{number:04d}" for number in range(options.objects)]
    runs: dict[tuple[str, int], list[Run]] = {}
    with tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder, Cluster(controllers="") as cluster:
        with operator(cluster, 1, Path(folder)):
            pass  # it defines the kinds
        for kind in KINDS.values():
            for key in keys:
                meta = {"name": key.rpartition("/")[2]}
                cluster.create({"apiVersion": "bench.example.com/v1", "kind": kind, "metadata": meta})
        for number in range(1, options.rounds + 1):
            for workers in (FEW, MANY):
                with operator(cluster, workers, Path(folder)) as running:
                    running.await_rest(list(KINDS))
                    for queue in KINDS:
                        passes = options.passes if queue != "alone" else 1
                        runs.setdefault((queue, workers), []).append(running.run(queue, keys, passes))
            said = (
                f"{queue} {runs[queue, FEW][-1].per_s:,.0f} -> {runs[queue, MANY][-1].per_s:,.0f}/s" for queue in KINDS
            )
            say(f"round {number}: " + ", ".join(said))
    _report(options, runs)


def _report(options: argparse.Namespace, runs: dict[tuple[str, int], list[Run]]) -> None:
    titles = {
        "blocking": "sync, up to 8 at once a worker",
        "awaiting": "async, up to 8 at once a worker",
        "alone": "sync, one at once a worker",
    }
    rows, facts = [], dict[str, Any](benchmark="blocking")
    for queue, title in titles.items():
        few, many = runs[queue, FEW], runs[queue, MANY]
        ratios = [more.per_s / one.per_s for one, more in zip(few, many, strict=True)]
        rows.append(
            (
                title,
                spread([run.per_s for run in few], 0),
                spread([run.per_s for run in many], 0),
                spread(ratios, 2),
                spread([run.worker_us for run in few], 0),
                spread([run.worker_us for run in many], 0),
            )
        )
        facts |= {
            f"ratio_{queue}": round(median(ratios), 2),
            f"turns_per_s_{queue}_1": round(median(run.per_s for run in few)),
            f"turns_per_s_{queue}_4": round(median(run.per_s for run in many)),
            f"worker_cpu_us_per_turn_{queue}": round(median(run.worker_us for run in few)),
        }
    headings = ("functions that wait 20 ms", "turns/s, 1 worker", "4 workers", "x, same round", "CPU us, 1", "4")
    report.show(f"median [least-most] of {options.rounds} rounds", headings, rows)
    report.finish({**facts, "objects": options.objects, "passes": options.passes, "rounds": options.rounds})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blocking", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--objects", type=int, default=500, help="of each kind")
    add("--passes", type=int, default=4, help="times a run goes over them")
    return parser


if __name__ == "__main__":
    report.main(main)
