"""What a turn that finds nothing to do costs beside a job that does nothing in other task queues, in CPU.

One Redis serves them all, one after the other in each round, each with one worker and a backlog that was filled before.
Ours is a whole turn with its guarantees, as in ``benchmarks.queue``; the jobs of the others return at once. A peer that
is not installed is named: ``pip install 'oarlock[bench-peers]'`` brings them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import planted, queue, report
from benchmarks.fleet_peer import FleetPeer
from benchmarks.peers.worker import PEERS, Cost, cost
from benchmarks.report import Unfit, median, say, spread
from oarlock.broker.connection.client import connect
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis

PEERS_DATABASE = 1
OURS, RQ = "oarlock", "rq"
TITLES = {OURS: "oarlock, owners of 3 pods", RQ: "RQ SimpleWorker", **{peer.name: peer.title for peer in PEERS}}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    absent = [peer.name for peer in PEERS if not peer.installed]
    if absent:
        say(f"not installed, so not measured: {', '.join(absent)} (pip install 'oarlock[bench-peers]')")
    costs: dict[str, list[Cost]] = {name: [] for name in TITLES}
    with (
        tempfile.TemporaryDirectory(prefix="oarlock-bench-") as directory,
        EmbeddedRedis(Path(directory) / "redis") as server,
    ):
        folder = Path(directory)
        for number in range(1, options.rounds + 1):
            costs[OURS].append(_ours(server, folder / f"ours-{number}", options.owners))
            costs[RQ].append(_rq(server, options.jobs))
            for peer in PEERS:
                if peer.installed:
                    connect(_url(server)).flushdb()
                    costs[peer.name].append(cost(peer, _url(server), server.pid, options.jobs, folder))
            told = ", ".join(f"{name} {each[-1].cpu_us:,.0f}" for name, each in costs.items() if each)
            say(f"round {number}, us a job: {told}")
    _report(options, costs, absent)


def _ours(server: EmbeddedRedis, folder: Path, owners: int) -> Cost:
    folder.mkdir()
    client = connect(server.url("admin"), timeout_s=60.0)
    client.flushdb()
    broker = planted.plant(client, {"three": (owners, 3)})
    with FleetPeer(client, broker, server.url("worker"), folder) as fleet:
        fleet.let_go()
        queue.await_that(fleet.at_rest, "the first look at every owner")
        run = queue.of_oarlock(client, server.pid, broker, fleet, planted.keys("three", owners), 2)
    return Cost(run.worker_us, run.redis_us)


def _rq(server: EmbeddedRedis, jobs: int) -> Cost:
    run = queue.of_rq(connect(server.url("admin")), server, jobs)
    return Cost(run.worker_us, run.redis_us)


def _url(server: EmbeddedRedis) -> str:
    """Of a database that is the peers' own: ours is in the first."""
    return server.url("admin").removesuffix("/0") + f"/{PEERS_DATABASE}"


def _report(options: argparse.Namespace, costs: dict[str, list[Cost]], absent: Sequence[str]) -> None:
    ours = costs[OURS]
    ratios = {
        name: [theirs.cpu_us / own.cpu_us for theirs, own in zip(each, ours, strict=True)]
        for name, each in costs.items()
        if each and name != OURS
    }
    if not ratios:
        raise Unfit("there is nobody to compare with")
    rows = []
    for name, each in costs.items():
        if not each:
            rows.append((TITLES[name], "not installed", "", "", ""))
            continue
        figures = [spread([getattr(one, fact) for one in each], 0) for fact in ("cpu_us", "worker_us", "redis_us")]
        rows.append((TITLES[name], *figures, spread(ratios[name]) if name in ratios else "1"))
    title = f"CPU a job that does nothing, us; median [least-most] of {options.rounds} rounds"
    report.show(title, ("", "in all", "worker", "Redis", "x ours, same round"), rows)
    best = min(ratios, key=lambda name: median(ratios[name]))
    facts: dict[str, Any] = {"benchmark": "peers", "best_peer": best}
    facts["ratio_vs_best_peer"] = round(median(ratios[best]), 2)
    for name, each in costs.items():
        facts[f"cpu_us_{name}"] = round(median(one.cpu_us for one in each), 1) if each else None
        facts[f"redis_us_{name}"] = round(median(one.redis_us for one in each), 1) if each else None
    report.finish({**facts, "absent": absent, "rounds": options.rounds, "owners": options.owners, "jobs": options.jobs})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=5)
    add("--owners", type=int, default=4_000, help="keys of a run of ours, which goes over them twice")
    add("--jobs", type=int, default=1_500, help="jobs of a run of each other queue")
    return parser


if __name__ == "__main__":
    report.main(main)
