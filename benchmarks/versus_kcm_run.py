"""One shape on one side: what is asked for, how it is measured, what came of it."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks.processes import CpuMeter
from benchmarks.report import Unfit, say
from benchmarks.tree import daemonset, deployment, replicaset
from benchmarks.versus_kcm_place import Place, Seen, await_true
from benchmarks.versus_kcm_server import NOTHING_AROUND, Around, ServerMeter
from benchmarks.versus_kcm_sides import OPEN, Fleet, Side, Upstream, peak_kb
from oarlock.cluster.resources import DAEMONSETS, DEPLOYMENTS, REPLICASETS, Resource

WORKLOADS = "deployment,replicaset,replicationcontroller,daemonset"
"""All controllers that a fleet runs, as upstream's manager names them."""
REST_S = 0.5


@dataclass(frozen=True, slots=True)
class Shape:
    """``owners`` of ``pods`` each. ``status``: the field in which they count them. Deployments are rolled out, and then
    to another template: only the second is timed.
    """

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
    def controllers(self) -> str:
        """Those that upstream needs."""
        return WORKLOADS if self.kind == DEPLOYMENTS else self.kind.kind.lower()

    def objects(self) -> list[dict[str, Any]]:
        names = [f"web-{number:04d}" for number in range(self.owners)]
        if self.kind == DAEMONSETS:
            return [daemonset(name) for name in names]
        if self.kind == DEPLOYMENTS:
            return [deployment(name, self.pods) for name in names]
        return [replicaset(name, self.pods) for name in names]


@dataclass(frozen=True, slots=True)
class Run:
    """``pods_s``: until the last pod was visible; ``status_s``: until the last status; CPU in ms by role. ``around``:
    of the server and the client, from the first request until the last status. ``inside``: of the fleet, what its
    meter tells; ``redis_bytes``: what its Redis keeps more at the end.
    """

    side: str
    shape: Shape
    pods_s: float
    status_s: float
    cpu_ms: Mapping[str, float]
    peak_mb: float
    load: float
    around: Around = NOTHING_AROUND
    inside: Mapping[str, int] = field(default_factory=dict)
    redis_bytes: int = 0

    @property
    def wall_s(self) -> float:
        """What the user waits for: pods that are there, or a rollout that is done."""
        return self.status_s if self.shape.kind == DEPLOYMENTS else self.pods_s

    @property
    def cpu_ms_per_pod(self) -> float:
        return sum(self.cpu_ms.values()) / self.shape.total


def side_of(place: Place, name: str, shape: Shape, options: argparse.Namespace) -> Side:
    if name == "upstream":
        return Upstream(place, shape.controllers, shape.limit)
    return Fleet(place, shape.limit, workers=options.workers, ingestors=options.ingestors)


def measure(place: Place, side: str, shape: Shape, options: argparse.Namespace, number: int) -> Run:
    """Start one side, have it make a shape, end it. Raises Unfit for another number of pods than was asked for."""
    namespace = place.new_namespace()
    with ExitStack() as ending:
        ending.callback(place.clear, namespace)
        running = ending.enter_context(side_of(place, side, shape, options))
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
    tell(run, number)
    return run


def tell(run: Run, number: int) -> None:
    say(
        f"round {number}, {run.shape.title}, {run.side}: pods {run.pods_s:.2f} s, status {run.status_s:.2f} s, "
        f"{run.cpu_ms_per_pod:.3f} ms CPU a pod {_by_role(run)}, {run.peak_mb:.0f} MB, load {run.load:.1f}"
    )
    say(f"    beside it: {_told_around(run)}")


def _told_around(run: Run) -> str:
    of = run.around
    cpu = ", ".join(f"{program} {ms / run.shape.total:.3f}" for program, ms in sorted(of.cpu_ms.items()))
    asked = ", ".join(f"{count:,} {what}" for what, count in sorted(of.requests.items(), key=lambda each: -each[1])[:9])
    return f"{cpu} ms CPU a pod, cores idle {of.idle:.0%}; requests: {asked}"


def _by_role(run: Run) -> str:
    return "(" + ", ".join(f"{role} {ms / run.shape.total:.3f}" for role, ms in sorted(run.cpu_ms.items())) + ")"


def warm(place: Place, namespace: str, kind: Resource) -> None:
    """Have one owner served, which asks for no pod that a figure would count."""
    first = _WARM[kind]
    field = "observedGeneration" if kind == DAEMONSETS else "replicas"
    with Seen(place, kind, field, 1) as seen:
        place.create(kind, namespace, [first])
        await_true(lambda: "warm" in seen.complete, "the first owner", 90.0)
    time.sleep(REST_S)


_WARM = {
    REPLICASETS: replicaset("warm", 1),
    DAEMONSETS: daemonset("warm", node_label="nowhere"),
    DEPLOYMENTS: deployment("warm", 1),
}
