"""What a large cluster costs: on the way up a pod, at two sizes; at rest in memory; under churn; when Redis is lost.

On a real `oarlock up`: Redis, embedded API server with simulated nodes, two ingestors, supervisor and workers, all on
this machine. Seven of ten pods are of ReplicaSets of 10, two of Deployments of 10, one of DaemonSets on all nodes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import report
from benchmarks.large.behind import ALL, DAEMONS, OTHERS
from benchmarks.large.run import (
    Grown,
    Memory,
    Size,
    at_rest,
    grow,
    log_slow_calls,
    memory,
    reopened_s,
    replaced_ms,
    slow_calls,
)
from benchmarks.report import Unfit, percentile, say
from benchmarks.tree import Tree
from oarlock.workers.process.settings import Settings

FLEET = ("redis", "ingestor", "worker", "supervisor")
DRAIN_S = Settings().drain_ms / 1e3


@dataclass(frozen=True, slots=True)
class Run:
    """One size, once."""

    size: Size
    grown: Grown
    memory: Memory
    replaced_ms: list[float]
    slow_ms: dict[str, float]
    reopened_s: float

    @property
    def fleet_cpu_ms(self) -> float:
        """A pod, without the API server and its nodes."""
        return sum(self.grown.cpu_ms.get(role, 0.0) for role in FLEET)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    runs = []
    for pods in filter(None, (options.small, options.pods)):
        runs.append(measure(Size(pods), options))
        say(f"{pods:,} pods: {json.dumps(_facts(runs[-1]))}")
    rows = [(title, *(cell(run) for run in runs)) for title, cell in _CELLS]
    report.show("a large cluster", ("", *(f"{run.size.exact:,} pods" for run in runs)), rows)
    for run in runs:
        slow = ", ".join(f"{name} {ms:.0f}" for name, ms in sorted(run.slow_ms.items()))
        say(f"{run.size.exact:,} pods: calls of 10 ms and more, their longest in ms: {slow or 'none'}")
    facts: dict[str, Any] = {"benchmark": "large", "sizes": [_facts(run) for run in runs]}
    facts["cost_growth"] = round(runs[-1].fleet_cpu_ms / runs[0].fleet_cpu_ms, 3)
    report.finish({**facts, "churn_per_s": options.churn, "workers": options.workers})


def measure(size: Size, options: argparse.Namespace) -> Run:
    """Raises Unfit."""
    say(f"{size.exact:,} pods on {size.nodes:,} nodes")
    with Tree(workers=options.workers, nodes=size.nodes) as tree:
        before = tree.used_memory()
        log_slow_calls(tree)
        grown = grow(tree, size)
        say(f"ready after {grown.ready_s:.1f} s")
        tree.await_true(lambda: at_rest(tree), "the queue to be empty", 300.0, 0.1)
        time.sleep(options.rest_s)
        slow_growing = slow_calls(tree)
        log_slow_calls(tree)  # anew: the log is memory of Redis too, and no pod's
        rested = memory(tree, size, before)
        replaced = replaced_ms(tree, options.churn, options.churn_s)
        say(f"{len(replaced):,} pods replaced, p99 {percentile(replaced, 0.99):.0f} ms")
        slow = slow_calls(tree)
        slow |= {name: max(ms, slow.get(name, 0.0)) for name, ms in slow_growing.items()}
        reopened = reopened_s(tree)
        say(f"open again {reopened:.1f} s after Redis was killed")
    if not grown.first_s:
        raise Unfit("no ReplicaSet has told of a pod")
    return Run(size, grown, rested, replaced, slow, reopened)


_CELLS: tuple[tuple[str, Callable[[Run], str]], ...] = (
    ("ready, s", lambda run: f"{run.grown.ready_s:.1f}"),
    ("pods ready/s", lambda run: f"{run.size.exact / run.grown.ready_s:,.0f}"),
    ("CPU of the fleet, ms a pod", lambda run: f"{run.fleet_cpu_ms:.3f}"),
    ("CPU of API server and nodes", lambda run: f"{run.grown.cpu_ms.get('api', 0.0):.3f}"),
    ("first status of an owner, s, p50", lambda run: f"{percentile(run.grown.first_s, 0.5):.1f}"),
    ("p99", lambda run: f"{percentile(run.grown.first_s, 0.99):.1f}"),
    ("statuses behind the cache, s, at most", lambda run: f"{run.grown.behind_s[ALL]:.1f}"),
    ("those of DaemonSets", lambda run: f"{run.grown.behind_s[DAEMONS]:.1f}"),
    ("of ReplicaSets and Deployments", lambda run: f"{run.grown.behind_s[OTHERS]:.1f}"),
    ("Redis, bytes a pod", lambda run: f"{run.memory.redis_bytes:.0f}"),
    ("histories, bytes a pod", lambda run: f"{run.memory.history_bytes:.0f}"),
    ("worker, MB", lambda run: f"{max(run.memory.rss_mb['worker'])}"),
    ("the fleet and Redis, shared pages once, MB", lambda run: f"{run.memory.fleet_mb}"),
    ("API server and nodes, MB", lambda run: f"{max(run.memory.rss_mb['api'])}"),
    ("a lost pod replaced, ms, p50", lambda run: f"{percentile(run.replaced_ms, 0.5):.0f}"),
    ("p99", lambda run: f"{percentile(run.replaced_ms, 0.99):.0f}"),
    ("open after Redis was killed, s beyond D", lambda run: f"{run.reopened_s - DRAIN_S:.1f}"),
)


def _facts(run: Run) -> dict[str, Any]:
    return {
        "pods": run.size.exact,
        "nodes": run.size.nodes,
        "ready_s": round(run.grown.ready_s, 1),
        "cpu_ms_per_pod": {role: round(ms, 4) for role, ms in run.grown.cpu_ms.items()},
        "first_status_p99_s": round(percentile(run.grown.first_s, 0.99), 2),
        "statuses_behind_s": {kind: round(s, 2) for kind, s in run.grown.behind_s.items()},
        "redis_bytes_per_pod": round(run.memory.redis_bytes),
        "history_bytes_per_pod": round(run.memory.history_bytes),
        "rss_mb": run.memory.rss_mb,
        "fleet_mb": run.memory.fleet_mb,
        "replaced_p99_ms": round(percentile(run.replaced_ms, 0.99), 1),
        "reopened_s": round(run.reopened_s, 1),
        "slow_calls_ms": {name: round(ms, 1) for name, ms in run.slow_ms.items()},
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    add = parser.add_argument
    add("--pods", type=int, default=100_000)
    add("--small", type=int, default=10_000, help="the size that it is held against; 0: none")
    add("--workers", type=int, default=2)
    add("--churn", type=float, default=100.0, help="pods deleted a second")
    add("--churn-s", type=float, default=30.0, help="for so long")
    add("--rest-s", type=float, default=5.0, help="pause before memory is read")
    return parser


if __name__ == "__main__":
    report.main(main)
