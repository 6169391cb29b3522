"""A fleet beside upstream's kube-controller-manager, in turns on the same real kube-apiserver and etcd.

Each scenario gets a fresh namespace and each side fresh processes, which are warm (one owner has been served) before
anything is timed. No pod runs, but the client makes those of rollouts ready: what is timed is the controllers' part,
from the first request of the user to the event with which the last pod is visible to another client, or the rollout is
complete. CPU is that of the controllers' processes alone, until the status of the last owner counts all its pods: the
manager here, workers with supervisor, ingestors and Redis there.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from benchmarks import report
from benchmarks.report import Unfit, median, percentile, say
from benchmarks.versus_kcm_failover import of_fleet, of_upstream
from benchmarks.versus_kcm_goals import GOALS, cost, speed
from benchmarks.versus_kcm_place import Place, Seen, await_true
from benchmarks.versus_kcm_rollout import measure_rollout
from benchmarks.versus_kcm_run import Run, Shape, measure, side_of, warm
from benchmarks.versus_kcm_sides import DEFAULTS
from oarlock.cluster.resources import DAEMONSETS, DEPLOYMENTS, REPLICASETS, Resource

SCENARIOS = ("large", "many", "daemonset", "idle", "limited", "failover", "deployments")
ROLLOUTS = ("rolled_many", "rolled_large")
SIDES = ("upstream", "fleet")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    chosen = options.only.split(",") if options.only else list(SCENARIOS)
    if unknown := set(chosen) - set(SCENARIOS):
        raise Unfit(f"{', '.join(sorted(unknown))}: none of {', '.join(SCENARIOS)}")
    runs: dict[str, dict[str, list[Run]]] = {}
    facts: dict[str, Any] = {"benchmark": "versus_kcm", "scenarios": chosen, "scale": options.scale}
    with Place() as place:
        facts["versions"] = place.versions
        if "daemonset" in chosen:
            place.run_nodes(_scaled(options.nodes, options.scale))
        for name, shape in _shapes(options).items():
            if name not in chosen and not ("deployments" in chosen and name in ROLLOUTS):
                continue
            measured = measure_rollout if shape.kind == DEPLOYMENTS else measure
            for number in range(1, options.rounds + 1):
                for side in SIDES if number % 2 else reversed(SIDES):
                    run = measured(place, side, shape, options, number)
                    runs.setdefault(name, {}).setdefault(side, []).append(run)
        if "idle" in chosen:
            facts |= _idle(place, options, REPLICASETS, "idle")
        if "deployments" in chosen:
            facts |= _idle(place, options, DEPLOYMENTS, "idle_deployment")
        if "failover" in chosen:
            facts |= _failover(place, options)
    _report(runs, facts)


def _shapes(options: argparse.Namespace) -> dict[str, Shape]:
    large, many = _scaled(options.large, options.scale), _scaled(options.many, options.scale)
    nodes = _scaled(options.nodes, options.scale)
    deployments, rolled = _scaled(options.deployments, options.scale), _scaled(options.rolled, options.scale)
    return {
        "large": Shape(f"one ReplicaSet of {large:,}", REPLICASETS, 1, large),
        "many": Shape(f"{many:,} ReplicaSets of 10", REPLICASETS, many, 10),
        "daemonset": Shape(f"a DaemonSet on {nodes:,} nodes", DAEMONSETS, 1, nodes, "currentNumberScheduled"),
        "limited": Shape(f"one of {options.limited:,}, 20/s", REPLICASETS, 1, options.limited, limit=DEFAULTS),
        "rolled_many": Shape(f"{deployments:,} Deployments of 10, rolled", DEPLOYMENTS, deployments, 10),
        "rolled_large": Shape(f"one Deployment of {rolled:,}, rolled", DEPLOYMENTS, 1, rolled),
    }


def _scaled(size: int, scale: float) -> int:
    return max(1, round(size * scale))


def _idle(place: Place, options: argparse.Namespace, kind: Resource, figure: str) -> dict[str, float]:
    """One owner of one pod at a time: ms from sending the POST, and from its answer, until the pod is visible."""
    facts: dict[str, float] = {}
    rows = []
    for side in SIDES:
        namespace = place.new_namespace()
        shape = Shape("idle", kind, options.idle, 1)
        sent_ms: list[float] = []
        answered_ms: list[float] = []
        with ExitStack() as ending:
            ending.callback(place.clear, namespace)
            ending.enter_context(side_of(place, side, shape, options))
            warm(place, namespace, kind)
            seen = ending.enter_context(Seen(place, kind, "replicas", 1))
            for number, owner in enumerate(shape.objects(), 1):
                began_s = time.monotonic()
                place.create(kind, namespace, [owner])
                answered_s = time.monotonic()
                await_true(partial(_all_there, seen, number), f"pod {number}", 30.0, 0.002)
                at_s, _ = seen.pods[-1]
                sent_ms.append((at_s - began_s) * 1000)
                answered_ms.append((at_s - answered_s) * 1000)
                time.sleep(0.03)
        prefix = figure if side == "fleet" else f"{figure}_upstream"
        for share, name in ((0.5, "p50"), (0.99, "p99")):
            facts[f"{prefix}_{name}_ms"] = round(percentile(sent_ms, share), 2)
            facts[f"{prefix}_answered_{name}_ms"] = round(percentile(answered_ms, share), 2)
        rows.append((side, *(f"{facts[f'{prefix}_{each}_ms']:.1f}" for each in _IDLE), f"{os.getloadavg()[0]:.1f}"))
    headings = ("", "p50 since sent", "p99 since sent", "p50 since answered", "p99 since answered", "load")
    report.show(f"idle, ms until the pod is visible, {options.idle} {kind.plural}", headings, rows)
    return facts


_IDLE = ("p50", "p99", "answered_p50", "answered_p99")


def _all_there(seen: Seen, count: int) -> bool:
    return len(seen.pods) == len(seen.complete) == count


def _failover(place: Place, options: argparse.Namespace) -> dict[str, float]:
    upstream = [of_upstream(place) for _ in range(options.upstream_kills)]
    claims = of_fleet(place, options.kills, options.workers, options.ingestors)
    facts = {
        "failover_upstream_s": round(median(upstream), 2),
        "failover_p50_ms": percentile(claims, 0.5),
        "failover_p99_ms": percentile(claims, 0.99),
        "failover_kills": len(claims),
        "failover_upstream_kills": len(upstream),
    }
    say(
        f"failover: upstream {report.spread(upstream)} s to the next pod; fleet p50 {facts['failover_p50_ms']:.1f} ms, "
        f"p99 {facts['failover_p99_ms']:.1f} ms to the next claim, {len(claims)} keys; load {os.getloadavg()[0]:.1f}"
    )
    return facts


def _report(runs: Mapping[str, Mapping[str, Sequence[Run]]], facts: dict[str, Any]) -> None:
    rows = []
    for name, sides in runs.items():
        upstream, fleet = sides["upstream"], sides["fleet"]
        for side, mine in sides.items():
            rows.append(
                (
                    f"{mine[0].shape.title}, {side}",
                    report.spread([run.pods_s for run in mine], 2),
                    report.spread([run.status_s for run in mine], 2),
                    f"{mine[0].shape.total / median(run.pods_s for run in mine):,.0f}",
                    report.spread([run.cpu_ms_per_pod for run in mine], 3),
                    f"{median(run.peak_mb for run in mine):.0f}",
                    report.spread([run.load for run in mine]),
                )
            )
            facts[f"{name}_{side}"] = {
                "pods": mine[0].shape.total,
                "pods_s": round(median(run.pods_s for run in mine), 3),
                "status_s": round(median(run.status_s for run in mine), 3),
                "cpu_ms_per_pod": round(median(run.cpu_ms_per_pod for run in mine), 4),
                "cpu_ms_per_pod_by_role": {
                    role: round(median(run.cpu_ms[role] / run.shape.total for run in mine), 4)
                    for role in mine[0].cpu_ms
                },
                "peak_mb": round(median(run.peak_mb for run in mine), 1),
                "load_1m": round(median(run.load for run in mine), 2),
                "server_cpu_ms_per_pod": round(
                    median(sum(run.around.cpu_ms.values()) / run.shape.total for run in mine), 4
                ),
                "cores_idle": round(median(run.around.idle for run in mine), 3),
                "requests": round(median(sum(run.around.requests.values()) for run in mine)),
            }
            if mine[0].inside:
                facts[f"{name}_{side}"] |= {
                    "turns": round(median(sum(_turns(run).values()) for run in mine)),
                    "scripts": round(median(run.inside["scripts called"] for run in mine)),
                    "redis_bytes_per_pod": round(median(run.redis_bytes / run.shape.total for run in mine)),
                }
        pairs = list(zip(upstream, fleet, strict=True))
        facts[f"speed_{name}"] = round(median(speed(theirs.wall_s, ours.wall_s) for theirs, ours in pairs), 3)
        facts[f"cpu_{name}"] = round(
            median(cost(theirs.cpu_ms_per_pod, ours.cpu_ms_per_pod) for theirs, ours in pairs), 3
        )
    if rows:
        headings = ("", "pods, s", "status, s", "pods/s", "CPU ms a pod", "peak MB", "load")
        report.show("median [least-most] of the rounds", headings, rows)
    report.show("goals", ("", "goal", "reached", ""), [goal.row(facts) for goal in GOALS])
    report.finish(facts)


def _turns(run: Run) -> dict[str, int]:
    return {what: count for what, count in run.inside.items() if what.endswith(" turns")}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versus_kcm", description=__doc__)
    add = parser.add_argument
    add("--only", default="", help=f"some of {','.join(SCENARIOS)}, separated by commas")
    add("--rounds", type=int, default=1, help="of each shape; sides change places each round: an even number is fair")
    add("--scale", type=float, default=1.0, help="of the five sizes below, such as 0.1")
    add("--large", type=int, default=3_000, help="pods of the one large ReplicaSet")
    add("--many", type=int, default=1_000, help="number of ReplicaSets of 10")
    add("--nodes", type=int, default=500, help="simulated nodes for the DaemonSet")
    add("--deployments", type=int, default=200, help="number of Deployments of 10, rolled all at once")
    add("--rolled", type=int, default=1_000, help="pods of the one Deployment that is rolled")
    add("--limited", type=int, default=300, help="pods of a ReplicaSet under upstream's default limit of requests")
    add("--idle", type=int, default=100, help="owners made one by one while idle")
    add("--kills", type=int, default=100, help="of workers with a key in hand")
    add(
        "--upstream-kills",
        type=int,
        default=2,
        choices=range(1, 21),
        metavar="N",
        help="of leading managers, some 17 s each",
    )
    add("--workers", type=int, default=2)
    add("--ingestors", type=int, default=2)
    add("--limit-s", type=float, default=300.0, help="given up after so long, a shape each")
    return parser


if __name__ == "__main__":
    report.main(main)
