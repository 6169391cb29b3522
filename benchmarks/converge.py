"""How fast a fleet brings ReplicaSets to what they ask for, what a pod costs each process, and what stays in memory.

On a real `oarlock up`: Redis, embedded API server with simulated nodes, two ingestors, supervisor and workers, all on
this machine. A shape is timed from the first request of the user to the moment at which the last ReplicaSet says in its
status that all its pods are there and available, the simulated start of a pod (0.5 to 1 s) included; the last creation
is timed as well. Each shape gets a fleet of its own.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.audited import await_audited, whole_lines
from benchmarks.processes import CpuMeter, rss_kb
from benchmarks.report import Unfit, median, say
from benchmarks.tree import Tree
from benchmarks.watching import until_settled
from oarlock.cluster.resources import REPLICASETS
from oarlock.controllers.objects import wire

ROLES = ("api", "redis", "ingestor", "worker", "supervisor")
PODS_PER_NODE = 1_000
LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Shape:
    """``sets`` ReplicaSets of ``pods`` pods each."""

    sets: int
    pods: int

    @property
    def total(self) -> int:
        return self.sets * self.pods

    @property
    def title(self) -> str:
        return f"{self.sets:,} of {self.pods:,} pods"

    @property
    def wanted(self) -> dict[str, int]:
        return {f"web-{number:04d}": self.pods for number in range(self.sets)}


@dataclass(frozen=True, slots=True)
class Run:
    """One shape, once. Seconds are from the first request to the last status or creation; CPU is ms a pod by role.

    ``over_creations``: creations the API server answered with 201, beyond the pods asked for.
    """

    shape: Shape
    ready_s: float
    created_s: float
    cpu_ms: dict[str, float]
    redis_bytes: float
    over_creations: int
    worker_rss_kb: list[int]

    @property
    def ready_per_s(self) -> float:
        return self.shape.total / self.ready_s

    @property
    def created_per_s(self) -> float:
        return self.shape.total / self.created_s


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    large, many = Shape(1, options.large), Shape(options.many, 10)
    few, more = Shape(options.rss_few, 10), Shape(options.rss_more, 10)
    runs: dict[Shape, list[Run]] = {}
    for number in range(1, options.rounds + 1):
        for shape in (large, many):
            run = measure(shape, options.workers, options.rest_s)
            runs.setdefault(shape, []).append(run)
            say(f"round {number}, {shape.title}: {run.created_per_s:,.0f} created/s, {run.ready_per_s:,.0f} ready/s")
    for shape in (few, more):
        runs.setdefault(shape, []).append(measure(shape, options.workers, options.rest_s))
        said = ", ".join(f"{each / 1024:.1f}" for each in runs[shape][-1].worker_rss_kb)
        say(f"memory, {shape.title}: workers have {said} MB")
    _report(options, runs, (large, many, few, more))


def measure(shape: Shape, workers: int, rest_s: float) -> Run:
    """Start a fleet, let it converge on the shape, end it.

    ``rest_s``: before memory is read, both times, for Redis lets go of what its connections needed in the rush.
    """
    nodes = max(5, -(-shape.total * 12 // 10 // PODS_PER_NODE))
    with Tree(workers=workers, nodes=nodes) as tree:
        time.sleep(rest_s)
        wanted = shape.wanted
        memory, meter = tree.used_memory(), CpuMeter(tree.roles())
        processes = tree.roles()
        began_s = time.time()
        ready_s = _converge(tree, wanted)
        tree.await_true(tree.quiet, "the queue to be empty")
        spent = meter.spent_ns()
        if tree.roles() != processes:
            raise Unfit("a process ended and was started again meanwhile")
        time.sleep(rest_s)
        used = tree.used_memory()
        rss = [rss_kb(pid) for role, pid in tree.roles() if role == "worker"]
        await_audited(tree, tree.state.audit_log)
        created, last_s = creations(tree.state.audit_log, began_s)
        living = tree.count_pods()
    if living != shape.total:
        raise Unfit(f"{living} pods live in the end, not {shape.total}")
    return Run(
        shape,
        ready_s,
        last_s - began_s,
        {role: spent.get(role, 0) / 1e6 / shape.total for role in ROLES},
        (used - memory) / shape.total,
        created - shape.total,
        rss,
    )


def _converge(tree: Tree, wanted: Mapping[str, int]) -> float:
    """Create the sets and watch them until the last one has settled. Seconds it took."""

    def settled(raw: bytes) -> tuple[str, bool]:
        _, found = wire.replicaset_from_json(raw)
        status = found.status
        counts = {status.replicas, status.ready, status.available}
        return found.name, counts == {wanted.get(found.name)} and status.observed_generation >= found.generation

    return until_settled(tree, REPLICASETS, wanted, settled, lambda: tree.apply(wanted), LIMIT_S)


def creations(audit_log: Path, since_s: float) -> tuple[int, float]:
    """How many pods were created, and when (unix s) the last one was, by the API server's own account."""
    count, last_s = 0, since_s
    for line in whole_lines(audit_log):
        if b'"verb":"create"' not in line or b'"resource":"pods"' not in line:
            continue
        event = json.loads(line)
        if event["responseStatus"]["code"] == 201 and "subresource" not in event["objectRef"]:
            count += 1
            last_s = max(last_s, datetime.fromisoformat(event["stageTimestamp"]).timestamp())
    return count, last_s


def _report(options: argparse.Namespace, runs: Mapping[Shape, list[Run]], shapes: Sequence[Shape]) -> None:
    large, many, few, more = shapes
    rows = []
    for shape in (large, many):
        mine = runs[shape]
        cpu = {role: median(run.cpu_ms[role] for run in mine) for role in ROLES}
        rows.append(
            (
                shape.title,
                report.spread([run.created_per_s for run in mine], 0),
                report.spread([run.ready_per_s for run in mine], 0),
                *(f"{cpu[role]:.3f}" for role in ROLES),
                f"{sum(cpu.values()):.3f}",
                f"{median(run.redis_bytes for run in mine):.0f}",
                str(sum(run.over_creations for run in mine)),
            )
        )
    headings = ("ReplicaSets", "created/s", "ready/s", *ROLES, "all", "Redis B/pod", "too many")
    report.show(f"median of {options.rounds} rounds; CPU in ms a pod, by what the process does", headings, rows)
    rss = {shape: sum(runs[shape][-1].worker_rss_kb) / len(runs[shape][-1].worker_rss_kb) for shape in (few, more)}
    rows = [(shape.title, f"{rss[shape] / 1024:.1f}") for shape in (few, more)]
    report.show("resident memory of a worker, MB", ("ReplicaSets", "MB"), rows)
    facts: dict[str, Any] = {"benchmark": "converge"}
    for name, shape in (("large", large), ("many", many)):
        mine = runs[shape]
        facts |= {
            f"pods_per_s_{name}": round(median(run.created_per_s for run in mine), 1),
            f"ready_pods_per_s_{name}": round(median(run.ready_per_s for run in mine), 1),
            f"cpu_ms_per_pod_{name}": {role: round(median(run.cpu_ms[role] for run in mine), 4) for role in ROLES},
            f"cpu_ms_per_pod_{name}_all": round(median(sum(run.cpu_ms.values()) for run in mine), 4),
            f"redis_bytes_per_pod_{name}": round(median(run.redis_bytes for run in mine), 1),
        }
    facts |= {
        "worker_rss_mb_few": round(rss[few] / 1024, 2),
        "worker_rss_mb_more": round(rss[more] / 1024, 2),
        "worker_rss_growth": round(rss[more] / rss[few] - 1, 4),
        "over_creations": sum(run.over_creations for mine in runs.values() for run in mine),
        "pods_large": large.total,
        "sets_many": many.sets,
        "sets_rss": [few.sets, more.sets],
        "workers": options.workers,
        "rounds": options.rounds,
    }
    report.finish(facts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.converge", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--workers", type=int, default=2)
    add("--large", type=int, default=3_000, help="pods of the one large ReplicaSet")
    add("--many", type=int, default=500, help="number of ReplicaSets of 10")
    add("--rss-few", type=int, default=100, help="ReplicaSets of 10 for the lesser memory figure")
    add("--rss-more", type=int, default=1_000, help="and for the greater one")
    add("--rest-s", type=float, default=3.0, help="pause before memory is read")
    return parser


if __name__ == "__main__":
    report.main(main)
