"""Turns a second of one worker process when there is nothing to do, beside RQ's own SimpleWorker on the same Redis.

Each round runs every configuration once, and a ratio is taken between runs of the same round: absolute rates of a
shared machine drift, ratios much less. Backlogs are filled beforehand; the time is taken from outside, from the first
key that leaves the backlog to the last one done. A run in which anything but exactly its keys was processed is refused.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from benchmarks import planted, report, round_trips, rq_peer
from benchmarks.fleet_peer import QUEUE, FleetPeer
from benchmarks.processes import cpu_ns
from benchmarks.report import Unfit, median, say, spread
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis

POLL_S = 0.004
LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Run:
    """One configuration in one round. CPU in microseconds a turn."""

    per_s: float
    worker_us: float
    redis_us: float

    @property
    def cpu_us(self) -> float:
        """What worker and Redis take together."""
        return self.worker_us + self.redis_us


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder,
        EmbeddedRedis(Path(folder) / "redis") as server,
    ):
        client = connect(server.url("admin"), timeout_s=60.0)
        groups = {"three": (options.owners_3, 3), "fifty": (options.owners_50, 50)}
        say(f"Redis {client.info('server')['redis_version']}; filling the cache: " + _describe(groups))
        broker = planted.plant(client, groups)
        with FleetPeer(client, broker, server.url("worker"), Path(folder)) as fleet:
            fleet.let_go()
            await_that(fleet.at_rest, "the first look at every owner")
            runs = _rounds(options, server, client, broker, fleet, groups)
    trips = round_trips.of_replicaset(options.chunks)
    _report(options, runs, trips)


def _rounds(
    options: argparse.Namespace,
    server: EmbeddedRedis,
    client: redis.Redis,
    broker: RedisBroker,
    fleet: FleetPeer,
    groups: dict[str, tuple[int, int]],
) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {"three": [], "fifty": [], "rq": []}
    for number in range(1, options.rounds + 1):
        for group, (count, _) in groups.items():
            runs[group].append(
                of_oarlock(client, server.pid, broker, fleet, planted.keys(group, count), options.passes)
            )
        runs["rq"].append(of_rq(client, server, options.jobs))
        three, fifty, stock = (runs[name][-1].per_s for name in ("three", "fifty", "rq"))
        say(
            f"round {number}: 3 pods {three:,.0f}/s = {three / stock:.1f} x RQ; "
            f"50 pods {fifty:,.0f}/s = {fifty / stock:.1f} x RQ; RQ {stock:,.0f}/s"
        )
    return runs


def of_oarlock(
    client: redis.Redis, redis_pid: int, broker: RedisBroker, fleet: FleetPeer, keys: Sequence[str], passes: int
) -> Run:
    """``passes`` times over a backlog of all the keys."""
    took_s = worker_ns = redis_ns = 0.0
    fleet.hold()
    before, failed_before = fleet.counted()
    for number in range(passes):
        if number:
            fleet.hold()
        for at in range(0, len(keys), 500):
            broker.add(QUEUE, keys[at : at + 500])
        cpu = cpu_ns(fleet.worker_pid), cpu_ns(redis_pid)
        fleet.let_go()
        took_s += _time(fleet.left, lambda: fleet.left() == 0 and fleet.at_rest(), len(keys))
        worker_ns += cpu_ns(fleet.worker_pid) - cpu[0]
        redis_ns += cpu_ns(redis_pid) - cpu[1]
    wanted = len(keys) * passes
    well, failed = fleet.await_counted(before + wanted)
    if (well - before, failed - failed_before) != (wanted, 0):
        raise Unfit(f"{well - before} turns were done and {failed - failed_before} failed, not {wanted} and 0")
    return Run(wanted / took_s, worker_ns / wanted / 1e3, redis_ns / wanted / 1e3)


def of_rq(client: redis.Redis, server: EmbeddedRedis, jobs: int) -> Run:
    """A backlog of jobs in RQ's own worker."""
    rq_peer.fill(client, jobs)
    backlog = rq_peer.Backlog(client)
    worker = rq_peer.start_worker(server.url("admin"))
    try:
        await_that(lambda: backlog.left() < jobs, "RQ's worker")
        cpu, begun_at = (cpu_ns(worker.pid), cpu_ns(server.pid)), backlog.done()
        took_s = _time(backlog.left, lambda: backlog.done() == jobs, jobs)
        spent = cpu_ns(worker.pid) - cpu[0], cpu_ns(server.pid) - cpu[1]
    finally:
        worker.wait(LIMIT_S)
    if backlog.done() != jobs:
        raise Unfit(f"RQ finished {backlog.done()} jobs, not {jobs}")
    counted = jobs - begun_at
    return Run(jobs / took_s, spent[0] / counted / 1e3, spent[1] / counted / 1e3)


def _time(left: Callable[[], int], done: Callable[[], bool], count: int) -> float:
    """Seconds from the first departure from the backlog to the end."""
    await_that(lambda: left() < count, "the first key")
    began = time.monotonic()
    await_that(done, "the last key")
    return time.monotonic() - began


def await_that(reached: Callable[[], bool], what: str) -> None:
    """Raises Unfit if it takes too long."""
    deadline = time.monotonic() + LIMIT_S
    while not reached():
        if time.monotonic() > deadline:
            raise Unfit(f"gave up waiting for {what} after {LIMIT_S:.0f} s")
        time.sleep(POLL_S)


def _report(options: argparse.Namespace, runs: dict[str, list[Run]], trips: round_trips.Trips) -> None:
    ratios = {
        group: [ours.per_s / stock.per_s for ours, stock in zip(runs[group], runs["rq"], strict=True)]
        for group in ("three", "fifty")
    }
    cpu_ratios = {
        group: [stock.cpu_us / ours.cpu_us for ours, stock in zip(runs[group], runs["rq"], strict=True)]
        for group in ("three", "fifty")
    }
    titles = {"three": "oarlock, owners of 3 pods", "fifty": "oarlock, owners of 50 pods", "rq": "RQ SimpleWorker"}
    rows = []
    for name, title in titles.items():
        mine = runs[name]
        rows.append(
            (
                title,
                spread([run.per_s for run in mine], 0),
                spread(ratios[name]) if name in ratios else "1.0",
                spread(cpu_ratios[name]) if name in ratios else "1.0",
                spread([run.worker_us for run in mine], 0),
                spread([run.redis_us for run in mine], 0),
            )
        )
    headings = ("", "turns or jobs/s", "x RQ, same round", "x by CPU", "worker CPU us", "Redis CPU us")
    report.show(f"no-op turns of one worker process; median [least-most] of {options.rounds} rounds", headings, rows)
    report.show("round trips of the worker's own client to Redis", ("", "calls"), trips.rows())
    facts: dict[str, Any] = {
        "benchmark": "queue",
        "ratio_vs_rq_simple": round(median(ratios["three"]), 2),
        "ratio_vs_rq_simple_50": round(median(ratios["fifty"]), 2),
        "cpu_ratio_vs_rq_simple": round(median(cpu_ratios["three"]), 2),
        "cpu_ratio_vs_rq_simple_50": round(median(cpu_ratios["fifty"]), 2),
        "turns_per_s": round(median(run.per_s for run in runs["three"])),
        "turns_per_s_50": round(median(run.per_s for run in runs["fifty"])),
        "rq_jobs_per_s": round(median(run.per_s for run in runs["rq"])),
        "worker_cpu_us_per_turn": round(median(run.worker_us for run in runs["three"]), 1),
        "worker_cpu_us_per_turn_50": round(median(run.worker_us for run in runs["fifty"]), 1),
        "worker_cpu_us_per_rq_job": round(median(run.worker_us for run in runs["rq"]), 1),
        "redis_us_per_turn": round(median(run.redis_us for run in runs["three"]), 1),
        "redis_us_per_turn_50": round(median(run.redis_us for run in runs["fifty"]), 1),
        "redis_us_per_rq_job": round(median(run.redis_us for run in runs["rq"]), 1),
        **trips.facts(),
        "rounds": options.rounds,
        "turns_a_round": options.owners_3 * options.passes,
        "turns_a_round_50": options.owners_50 * options.passes,
        "rq_jobs_a_round": options.jobs,
    }
    report.finish(facts)


def _describe(groups: dict[str, tuple[int, int]]) -> str:
    return ", ".join(f"{count:,} ReplicaSets of {pods} pods" for count, pods in groups.values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queue", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=5)
    add("--owners-3", type=int, default=8_000, help="keys of a run over owners of 3 pods")
    add("--owners-50", type=int, default=1_500, help="keys of a run over owners of 50 pods")
    add("--passes", type=int, default=3, help="times a run goes over its keys")
    add("--jobs", type=int, default=1_000, help="jobs of an RQ run")
    add("--chunks", type=int, default=5, help="turns that create a pod, for counting round trips")
    return parser


if __name__ == "__main__":
    report.main(main)
