"""Runs a second of one consumer of ``oarlock.queue``, beside RQ's SimpleWorker with a lock a key, on the same Redis.

Each round runs both with keys that are added once, and with keys that are added ten times while nobody works: there
the queue has one run a key to do, and RQ ten. Producers add one key a call. A ratio is taken between runs of the same
round. A run in which another number of runs ended than was to be measured is refused.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import keyed_queue_peer as peer
from benchmarks import report
from benchmarks.report import Unfit, median, say, spread
from oarlock.broker.connection.client import connect
from oarlock.queue import KeyedQueue
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis

POLL_S = 0.004
LIMIT_S = 120.0
ADDS = 10


@dataclass(frozen=True, slots=True)
class Run:
    """``keys_per_s``: keys brought up to date a second; ``adds_per_s``: of one producer."""

    keys_per_s: float
    adds_per_s: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.keyed_queue", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", type=int, default=8_000, help="keys a round of ours (default 8000)")
    parser.add_argument("--rq-keys", type=int, default=800, help="keys a round of RQ's (default 800)")
    options = parser.parse_args(arguments)
    runs: dict[str, list[Run]] = {name: [] for name in ("ours", "rq", "ours_tenfold", "rq_tenfold")}
    with (
        tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder,
        EmbeddedRedis(Path(folder) / "redis") as server,
    ):
        for number in range(1, options.rounds + 1):
            runs["ours"].append(ours(server, options.keys, 1))
            runs["rq"].append(rq(server, options.rq_keys, 1))
            runs["ours_tenfold"].append(ours(server, options.keys, ADDS))
            runs["rq_tenfold"].append(rq(server, max(1, options.rq_keys // ADDS), ADDS))
            say(f"round {number}: " + ", ".join(f"{name} {each[-1].keys_per_s:,.0f}" for name, each in runs.items()))
    tell(options, runs)


def ours(server: EmbeddedRedis, count: int, adds: int) -> Run:
    """One consumer with one thread."""
    connect(server.url("admin")).flushall()
    queue = KeyedQueue(peer.NAME, server.url("admin"))
    adds_per_s = _fill(queue.add, count, adds)
    if queue.stats().queued != count:
        raise Unfit(f"{queue.stats().queued} keys are queued, not {count}")

    def left() -> int:
        return queue.stats().queued

    def done() -> bool:
        stats = queue.stats()
        return stats.queued + stats.running == 0

    took_s = _time(peer.start_ours(server.url("admin")), left, done, count)
    stats = queue.stats()
    if stats.failing or stats.delayed:
        raise Unfit(f"a run failed: {stats}")
    return Run(count / took_s, adds_per_s)


def rq(server: EmbeddedRedis, count: int, adds: int) -> Run:
    """RQ's SimpleWorker with a lock a key."""
    client = connect(server.url("admin"))
    client.flushall()
    side = peer.RqSide(client)
    adds_per_s = _fill(side.add, count, adds)
    took_s = _time(peer.start_rq(server.url("admin")), side.left, lambda: side.done() == count * adds, count * adds)
    return Run(count / took_s, adds_per_s)


def _fill(add: Callable[[str], object], count: int, adds: int) -> float:
    """Adds a second. The first makes the connection."""
    add("customer-0")
    began = time.monotonic()
    for n in range(1, count * adds):
        add(f"customer-{n % count}")
    return (count * adds - 1) / (time.monotonic() - began)


def _time(worker: subprocess.Popen[bytes], left: Callable[[], int], done: Callable[[], bool], count: int) -> float:
    """Seconds from the first departure to the end."""
    deadline = time.monotonic() + LIMIT_S
    began = 0.0
    try:
        while not done():
            if not began and left() < count:
                began = time.monotonic()
            if time.monotonic() > deadline:
                raise Unfit(f"gave up after {LIMIT_S:.0f} s")
            time.sleep(POLL_S)
        took_s = time.monotonic() - began
        if worker.wait(LIMIT_S) != 0:
            raise Unfit(f"the worker ended with {worker.returncode}")
    finally:
        worker.kill()
    if not began:
        raise Unfit("it was over before it was seen to begin: ask for more keys")
    return took_s


def tell(options: argparse.Namespace, runs: dict[str, list[Run]]) -> None:
    def ratios(suffix: str, of: Callable[[Run], float]) -> list[float]:
        pairs = zip(runs["ours" + suffix], runs["rq" + suffix], strict=True)
        return [of(mine) / of(theirs) for mine, theirs in pairs]

    once, tenfold = ratios("", lambda run: run.keys_per_s), ratios("_tenfold", lambda run: run.keys_per_s)
    adds = ratios("", lambda run: run.adds_per_s)
    rows = [
        (
            title,
            spread([run.keys_per_s for run in runs["ours" + suffix]], 0),
            spread([run.keys_per_s for run in runs["rq" + suffix]], 0),
            spread(ratio),
        )
        for title, suffix, ratio in (("keys added once", "", once), (f"added {ADDS} times", "_tenfold", tenfold))
    ]
    rows.append(
        (
            "adds of one producer",
            spread([run.adds_per_s for run in runs["ours"]], 0),
            spread([run.adds_per_s for run in runs["rq"]], 0),
            spread(adds),
        )
    )
    headings = ("a second", "oarlock.queue", "RQ with a lock a key", "x, same round")
    report.show(f"one worker process, no-op; median [least-most] of {options.rounds} rounds", headings, rows)
    report.finish(
        {
            "benchmark": "keyed_queue",
            "ratio_vs_rq_lock": round(median(once), 2),
            "ratio_vs_rq_lock_tenfold": round(median(tenfold), 2),
            "add_ratio_vs_rq": round(median(adds), 2),
            "keys_per_s": round(median(run.keys_per_s for run in runs["ours"])),
            "rq_keys_per_s": round(median(run.keys_per_s for run in runs["rq"])),
            "adds_per_s": round(median(run.adds_per_s for run in runs["ours"])),
            "rounds": options.rounds,
            "keys_a_round": options.keys,
            "rq_keys_a_round": options.rq_keys,
        }
    )


if __name__ == "__main__":
    report.main(main)
