"""A fleet beside upstream's kube-controller-manager, in turns on the same real kube-apiserver and etcd.

Each scenario gets a fresh namespace and each side fresh processes, which are warm (one owner has been served) before
anything is timed. No pod runs: what is timed is the controllers' part, from the first request of the user to the event
with which the last pod is visible to another client. CPU is that of the controllers' processes alone, until the status
of the last owner counts all its pods: the manager here, workers with supervisor, ingestors and Redis there.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import report
from benchmarks.processes import CpuMeter
from benchmarks.report import Unfit, median, percentile, say
from benchmarks.tree import daemonset, replicaset
from benchmarks.versus_kcm_failover import of_fleet, of_upstream
from benchmarks.versus_kcm_goals import GOALS, cost, speed
from benchmarks.versus_kcm_place import Place, Seen, await_true
from benchmarks.versus_kcm_server import NOTHING_AROUND, Around, ServerMeter
from benchmarks.versus_kcm_sides import DEFAULTS, OPEN, Fleet, Side, Upstream, peak_kb
from oarlock.cluster.resources import DAEMONSETS, REPLICASETS, Resource

SCENARIOS = ("large", "many", "daemonset", "idle", "limited", "failover")
REST_S = 0.5
SIDES = ("upstream", "fleet")


@dataclass(frozen=True, slots=True)
class Shape:
    """``owners`` of ``pods`` each. ``status``: the field in which they count them."""

    title: str
    kind: Resource
    owners: int
    pods: int
    status: str = "replicas"
    limit: tuple[int, int] = OPEN

    @property
    def total(self) -> int:
        return self.owners * self.pods

    @property
    def controller(self) -> str:
        return self.kind.kind.lower()

    def objects(self) -> list[dict[str, Any]]:
        names = [f"web-{number:04d}" for number in range(self.owners)]
        if self.kind == DAEMONSETS:
            return [daemonset(name) for name in names]
        return [replicaset(name, self.pods) for name in names]


@dataclass(frozen=True, slots=True)
class Run:
    """``pods_s``: until the last pod was visible; ``status_s``: until the last status; CPU in ms by role. ``around``:
    of the server and the client, from the first request until the last status.
    """

    side: str
    shape: Shape
    pods_s: float
    status_s: float
    cpu_ms: Mapping[str, float]
    peak_mb: float
    load: float
    around: Around = NOTHING_AROUND

    @property
    def cpu_ms_per_pod(self) -> float:
        return sum(self.cpu_ms.values()) / self.shape.total


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
            if name not in chosen:
                continue
            for number in range(1, options.rounds + 1):
                for side in SIDES if number % 2 else reversed(SIDES):
                    run = measure(place, side, shape, options, number)
                    runs.setdefault(name, {}).setdefault(side, []).append(run)
        if "idle" in chosen:
            facts |= _idle(place, options)
        if "failover" in chosen:
            facts |= _failover(place, options)
    _report(runs, facts)


def _shapes(options: argparse.Namespace) -> dict[str, Shape]:
    large, many = _scaled(options.large, options.scale), _scaled(options.many, options.scale)
    nodes = _scaled(options.nodes, options.scale)
    return {
        "large": Shape(f"one ReplicaSet of {large:,}", REPLICASETS, 1, large),
        "many": Shape(f"{many:,} ReplicaSets of 10", REPLICASETS, many, 10),
        "daemonset": Shape(f"a DaemonSet on {nodes:,} nodes", DAEMONSETS, 1, nodes, "currentNumberScheduled"),
        "limited": Shape(f"one of {options.limited:,}, 20/s", REPLICASETS, 1, options.limited, limit=DEFAULTS),
    }


def _scaled(size: int, scale: float) -> int:
    return max(1, round(size * scale))


def _side(place: Place, name: str, shape: Shape, options: argparse.Namespace) -> Side:
    if name == "upstream":
        return Upstream(place, shape.controller, shape.limit)
    return Fleet(place, shape.limit, workers=options.workers, ingestors=options.ingestors)


def measure(place: Place, side: str, shape: Shape, options: argparse.Namespace, number: int) -> Run:
    """Start one side, have it make a shape, end it. Raises Unfit for another number of pods than was asked for."""
    namespace = place.new_namespace()
    with ExitStack() as ending:
        ending.callback(place.clear, namespace)
        running = ending.enter_context(_side(place, side, shape, options))
        warm(place, namespace, shape.kind)
        roles = running.roles()
        seen = ending.enter_context(Seen(place, shape.kind, shape.status, shape.pods))
        server = ServerMeter(place.pids(), place.metrics)
        meter, began_s = CpuMeter(roles), time.monotonic()
        place.create(shape.kind, namespace, shape.objects())

        def complete() -> bool:
            seen.check()
            return len(seen.complete) >= shape.owners and len(seen.pods) >= shape.total

        await_true(complete, f"{side}: {shape.title}", options.limit_s)
        around = server.spent()
        time.sleep(REST_S)
        spent = meter.spent_ns()
        peak = sum(peak_kb(pid) for _, pid in roles) / 1024
        if len(seen.pods) != shape.total:
            raise Unfit(f"{side}: {len(seen.pods)} pods were created, not {shape.total}")
        run = Run(
            side,
            shape,
            max(at for at, _ in seen.pods) - began_s,
            max(seen.complete.values()) - began_s,
            {role: spent_ns / 1e6 for role, spent_ns in spent.items()},
            peak,
            os.getloadavg()[0],
            around,
        )
    say(
        f"round {number}, {shape.title}, {side}: pods {run.pods_s:.2f} s, status {run.status_s:.2f} s, "
        f"{run.cpu_ms_per_pod:.3f} ms CPU a pod {_by_role(run)}, {peak:.0f} MB, load {run.load:.1f}"
    )
    say(f"    beside it: {_told_around(run)}")
    return run


def _told_around(run: Run) -> str:
    of = run.around
    cpu = ", ".join(f"{program} {ms / run.shape.total:.3f}" for program, ms in sorted(of.cpu_ms.items()))
    asked = ", ".join(f"{count:,} {what}" for what, count in sorted(of.requests.items(), key=lambda each: -each[1])[:6])
    return f"{cpu} ms CPU a pod, cores idle {of.idle:.0%}; requests: {asked}"


def _by_role(run: Run) -> str:
    return "(" + ", ".join(f"{role} {ms / run.shape.total:.3f}" for role, ms in sorted(run.cpu_ms.items())) + ")"


def warm(place: Place, namespace: str, kind: Resource) -> None:
    """Have one owner served, which asks for no pod that a figure would count."""
    first = daemonset("warm", node_label="nowhere") if kind == DAEMONSETS else replicaset("warm", 1)
    field = "observedGeneration" if kind == DAEMONSETS else "replicas"
    with Seen(place, kind, field, 1) as seen:
        place.create(kind, namespace, [first])
        await_true(lambda: "warm" in seen.complete, "the first owner", 90.0)
    time.sleep(REST_S)


def _idle(place: Place, options: argparse.Namespace) -> dict[str, float]:
    """One owner of one pod at a time: ms from sending the POST, and from its answer, until the pod is visible."""
    facts: dict[str, float] = {}
    rows = []
    for side in SIDES:
        namespace = place.new_namespace()
        shape = Shape("idle", REPLICASETS, options.idle, 1)
        sent_ms: list[float] = []
        answered_ms: list[float] = []
        with ExitStack() as ending:
            ending.callback(place.clear, namespace)
            ending.enter_context(_side(place, side, shape, options))
            warm(place, namespace, REPLICASETS)
            seen = ending.enter_context(Seen(place, REPLICASETS, "replicas", 1))
            for number, owner in enumerate(shape.objects(), 1):
                began_s = time.monotonic()
                place.create(REPLICASETS, namespace, [owner])
                answered_s = time.monotonic()
                await_true(partial(_all_there, seen, number), f"pod {number}", 30.0, 0.002)
                at_s, _ = seen.pods[-1]
                sent_ms.append((at_s - began_s) * 1000)
                answered_ms.append((at_s - answered_s) * 1000)
                time.sleep(0.03)
        prefix = "idle" if side == "fleet" else "idle_upstream"
        for share, name in ((0.5, "p50"), (0.99, "p99")):
            facts[f"{prefix}_{name}_ms"] = round(percentile(sent_ms, share), 2)
            facts[f"{prefix}_answered_{name}_ms"] = round(percentile(answered_ms, share), 2)
        rows.append((side, *(f"{facts[f'{prefix}_{each}_ms']:.1f}" for each in _IDLE), f"{os.getloadavg()[0]:.1f}"))
    headings = ("", "p50 since sent", "p99 since sent", "p50 since answered", "p99 since answered", "load")
    report.show(f"idle, ms until the pod is visible, {options.idle} owners", headings, rows)
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
        pairs = list(zip(upstream, fleet, strict=True))
        facts[f"speed_{name}"] = round(median(speed(theirs.pods_s, ours.pods_s) for theirs, ours in pairs), 3)
        facts[f"cpu_{name}"] = round(
            median(cost(theirs.cpu_ms_per_pod, ours.cpu_ms_per_pod) for theirs, ours in pairs), 3
        )
    if rows:
        headings = ("", "pods, s", "status, s", "pods/s", "CPU ms a pod", "peak MB", "load")
        report.show("median [least-most] of the rounds", headings, rows)
    report.show("goals", ("", "goal", "reached", ""), [goal.row(facts) for goal in GOALS])
    report.finish(facts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versus_kcm", description=__doc__)
    add = parser.add_argument
    add("--only", default="", help=f"some of {','.join(SCENARIOS)}, separated by commas")
    add("--rounds", type=int, default=1, help="of each shape; the sides change places each round")
    add("--scale", type=float, default=1.0, help="of the three sizes below, such as 0.1")
    add("--large", type=int, default=3_000, help="pods of the one large ReplicaSet")
    add("--many", type=int, default=1_000, help="number of ReplicaSets of 10")
    add("--nodes", type=int, default=500, help="simulated nodes for the DaemonSet")
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
