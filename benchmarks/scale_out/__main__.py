"""How a fleet scales out: 1, 2, 4 and 8 workers, each a host of its own, 5 ms away from the API server.

Each worker with its supervisor has a network namespace of its own. Redis, API server, nodes and ingestor are on the
main host. A worker sends one write at a time, so it waits for answers nearly always, and the cores of one machine are
enough for several. Owners of 10 pods, and owners of one pod. Every run counts its pods, by the API server's audit log.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import report
from benchmarks.report import median, say, spread
from benchmarks.scale_out.hosts import NoNamespaces
from benchmarks.scale_out.run import Run, Setting, once

Runs = Mapping[int, list[Run]]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    facts: dict[str, Any] = {
        "benchmark": "scale_out",
        "writes_in_flight": options.writes_in_flight,
        "rounds": options.rounds,
    }
    latencies_ms: list[float] = []
    for pods, owners in ((10, options.owners), (1, options.small_owners)):
        setting = Setting(owners, pods, options.latency_ms, options.writes_in_flight)
        runs = _rounds(setting, options)
        _show(setting, runs)
        facts |= _facts(pods, runs)
        latencies_ms += [run.latency_ms for each in runs.values() for run in each]
    report.finish(facts | {"latency_ms": round(median(latencies_ms), 2)})


def _rounds(setting: Setting, options: argparse.Namespace) -> Runs:
    runs: dict[int, list[Run]] = {count: [] for count in options.workers}
    for number in range(1, options.rounds + 1):
        for count in options.workers:
            run = once(setting, count)
            runs[count].append(run)
            say(
                f"round {number}, owners of {setting.pods}, {count} workers: {run.pods_per_s:,.0f} pods/s"
                f" for {run.seconds:.1f} s, {run.idle:.0%} of the cores idle"
            )
    return runs


def shares(runs: Runs, count: int) -> list[float]:
    """Pods a second of so many workers, over as many times those of the smallest fleet, of each round."""
    least = min(runs)
    pairs = zip(runs[count], runs[least], strict=True)
    return [many.pods_per_s / count / (few.pods_per_s / least) for many, few in pairs]


def _show(setting: Setting, runs: Runs) -> None:
    rows = [
        (
            f"{count} workers",
            spread([run.pods_per_s for run in each]),
            spread([run.turns_per_s for run in each]),
            spread(shares(runs, count), 2),
            f"{median(run.idle for run in each):.0%}",
            f"{median(run.cores for run in each):.2f}",
            f"{median(sum(run.cpu_ms.values()) for run in each):.2f}",
            f"{median(run.cpu_ms['worker'] for run in each):.2f}",
        )
        for count, each in runs.items()
    ]
    title = (
        f"owners of {setting.pods}, {setting.owners} for each worker, {setting.latency_ms:g} ms to the API server,"
        f" {setting.writes_in_flight} writes in flight"
    )
    headings = ("", "pods/s", "turns/s", "share of linear", "cores idle", "cores used", "CPU, ms a pod", "its worker")
    report.show(title, headings, rows)


def _facts(pods: int, runs: Runs) -> dict[str, Any]:
    def by_workers(figure: Any) -> dict[str, Any]:
        return {str(count): figure(count) for count in runs}

    roles = {role for each in runs.values() for run in each for role in run.cpu_ms}
    return {
        f"pods_per_s_{pods}": by_workers(lambda n: round(median(run.pods_per_s for run in runs[n]), 1)),
        f"turns_per_s_{pods}": by_workers(lambda n: round(median(run.turns_per_s for run in runs[n]), 1)),
        f"share_{pods}": by_workers(lambda n: round(median(shares(runs, n)), 3)),
        f"idle_{pods}": by_workers(lambda n: round(median(run.idle for run in runs[n]), 3)),
        f"cores_{pods}": by_workers(lambda n: round(median(run.cores for run in runs[n]), 2)),
        f"cpu_ms_per_pod_{pods}": by_workers(
            lambda n: {role: round(median(run.cpu_ms[role] for run in runs[n]), 3) for role in sorted(roles)}
        ),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale_out", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    add("--owners", type=int, default=150, help="of 10 pods, for each worker")
    add("--small-owners", type=int, default=800, help="of one pod, for each worker")
    add("--latency-ms", type=float, default=5.0, help="of the API server, there and back")
    add("--writes-in-flight", type=int, default=1, help="of each worker; the product's default is 64")
    return parser


def _run() -> None:
    try:
        main()
    except NoNamespaces as error:
        print(f"benchmark: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    report.main(_run)
