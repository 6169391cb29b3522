"""A DaemonSet onto every node of a large cluster, and a rolling update of it; the same on a quarter of the nodes.

On a real `oarlock up`, each size in a fleet of its own. The DaemonSet is timed from the user's request to the moment at
which its status says that every node has an available pod, the simulated start of a pod (0.5 to 1 s) included; the
update, a tenth of the nodes at a time, until it says that all of them are of the new template. What matters is not how
large the figures are but how they grow: a turn reads all pods of its set, so turns that grew with the pods would make
the CPU grow with their square. Beside it the round trips to Redis of turns of a DaemonSet are counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import phase, report, round_trips
from benchmarks.phase import ROLES, Phase
from benchmarks.report import Unfit, median, say
from benchmarks.tree import Tree, daemonset
from benchmarks.watching import until_settled
from oarlock.cluster.resources import DAEMONSETS
from oarlock.controllers.daemonset.wire import daemonset_from_json

NAME, QUEUE = "agent", "daemonset"
PHASES = ("create", "update")
NEW_IMAGE = "example/web:1.28.0"
LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Run:
    """One size, once. ``phases`` by name; Redis bytes a pod are those after the first phase."""

    nodes: int
    phases: Mapping[str, Phase]
    redis_bytes: float

    def per_s(self, name: str) -> float:
        """Pods a second."""
        return self.nodes / self.phases[name].seconds

    def turns(self, name: str) -> int:
        """Of the DaemonSet."""
        return self.phases[name].turns.get(QUEUE, 0)

    def cpu_ms(self, name: str, role: str = "") -> float:
        """A pod; of all processes without ``role``."""
        spent = self.phases[name]
        return (spent.cpu_ms[role] if role else spent.all_cpu_ms) / self.nodes

    def writes(self, name: str, what: str = "") -> float:
        """Requests of the workers to the API a pod; ``what``: only this, such as "create pods"."""
        sent = self.phases[name].writes
        return (sent.get(what, 0) if what else sum(sent.values())) / self.nodes


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    sizes = (options.nodes, options.fewer_nodes)
    runs: dict[int, list[Run]] = {size: [] for size in sizes}
    for number in range(1, options.rounds + 1):
        for size in sizes:
            run = measure(size, options.workers, options.rest_s)
            runs[size].append(run)
            told = "; ".join(
                f"{name} {run.per_s(name):,.0f} pods/s, {run.turns(name)} turns, {run.cpu_ms(name):.2f} ms CPU a pod"
                for name in PHASES
            )
            say(f"round {number}, {size:,} nodes: {told}")
    trips = round_trips.of_daemonset(options.chunks)
    _report(options, runs, trips)


def measure(nodes: int, workers: int, rest_s: float) -> Run:
    """Start a fleet, have it place and update one DaemonSet, end it.

    ``rest_s``: before memory is read, both times, for Redis lets go of what its connections needed in the rush.
    """
    with Tree(workers=workers, nodes=nodes) as tree:
        tree.create(DAEMONSETS, [])
        phase.await_rest(tree, LIMIT_S)
        time.sleep(rest_s)
        memory = tree.used_memory()
        create = phase.measure(tree, lambda: _settle(tree, nodes, 1, [daemonset(NAME)]), LIMIT_S)
        time.sleep(rest_s)
        used = tree.used_memory()
        update = phase.measure(tree, lambda: _settle(tree, nodes, 2, []), LIMIT_S)
        living = tree.count_pods()
    if living != nodes:
        raise Unfit(f"{living} pods live in the end, not {nodes}")
    for name, spent, sent in (("create", create, "create pods"), ("update", update, "delete pods")):
        if spent.writes.get(sent) != nodes:
            raise Unfit(f"{name}: {spent.writes.get(sent, 0)} requests to {sent}, not {nodes}")
    return Run(nodes, {"create": create, "update": update}, (used - memory) / nodes)


def _settle(tree: Tree, nodes: int, generation: int, new: Sequence[Mapping[str, Any]]) -> float:
    """Create what is ``new``, or else give the DaemonSet another image. Seconds until its status says all is done."""

    def settled(raw: bytes) -> tuple[str, bool]:
        _, found = daemonset_from_json(raw)
        status = found.status
        counts = {status.desired, status.current, status.ready, status.updated, status.available}
        return found.name, counts == {nodes} and status.observed_generation == found.generation == generation

    def act() -> None:
        if new:
            tree.create(DAEMONSETS, new)
        else:
            tree.roll(NAME, NEW_IMAGE)

    return until_settled(tree, DAEMONSETS, [NAME], settled, act, LIMIT_S)


def _report(options: argparse.Namespace, runs: Mapping[int, Sequence[Run]], trips: round_trips.Trips) -> None:
    more, fewer = options.nodes, options.fewer_nodes
    rows = []
    for name in PHASES:
        for size in (more, fewer):
            mine = runs[size]
            rows.append(
                (
                    f"{name} on {size:,} nodes",
                    report.spread([run.per_s(name) for run in mine], 0),
                    report.spread([run.turns(name) for run in mine], 0),
                    *(f"{median(run.cpu_ms(name, role) for run in mine):.3f}" for role in ROLES),
                    f"{median(run.cpu_ms(name) for run in mine):.3f}",
                    f"{median(run.writes(name) for run in mine):.2f}",
                    f"{median(run.redis_bytes for run in mine):.0f}" if name == "create" else "",
                )
            )
    headings = ("one DaemonSet", "pods/s", "turns", *ROLES, "all", "writes/pod", "Redis B/pod")
    report.show(f"median of {options.rounds} rounds; CPU in ms a pod, by what the process does", headings, rows)
    growth = _growth(runs, more, fewer)
    rows = [(what.replace("_", " "), *(f"{growth[name][what]:.2f}" for name in PHASES)) for what in growth["create"]]
    asked = f"{more / fewer:g} times the nodes"
    report.show(f"growth with {asked}, ratios of the same round; 1 is as much as was asked for", ("", *PHASES), rows)
    report.show("round trips of the worker's own client to Redis", ("", "calls"), trips.rows())
    facts: dict[str, Any] = {"benchmark": "daemonset"}
    for name in PHASES:
        for size, which in ((more, ""), (fewer, "_fewer")):
            mine = runs[size]
            facts |= {
                f"pods_per_s_{name}{which}": round(median(run.per_s(name) for run in mine), 1),
                f"turns_{name}{which}": round(median(run.turns(name) for run in mine)),
                f"cpu_ms_per_pod_{name}{which}": {
                    role: round(median(run.cpu_ms(name, role) for run in mine), 4) for role in ROLES
                },
                f"cpu_ms_per_pod_{name}{which}_all": round(median(run.cpu_ms(name) for run in mine), 4),
                f"api_writes_per_pod_{name}{which}": round(median(run.writes(name) for run in mine), 3),
            }
        facts[f"growth_{name}"] = growth[name]
    facts |= {
        "redis_bytes_per_pod": round(median(run.redis_bytes for run in runs[more]), 1),
        "redis_bytes_per_pod_fewer": round(median(run.redis_bytes for run in runs[fewer]), 1),
        **trips.facts(),
        "nodes": more,
        "nodes_fewer": fewer,
        "workers": options.workers,
        "rounds": options.rounds,
    }
    report.finish(facts)


def _growth(runs: Mapping[int, Sequence[Run]], more: int, fewer: int) -> dict[str, dict[str, float]]:
    """What the larger size took a pod, over what the smaller one took a pod in the same round; medians."""
    pairs = list(zip(runs[more], runs[fewer], strict=True))

    def ratio(of: Any) -> float:
        return round(median(of(large) / of(small) for large, small in pairs), 3)

    found = {}
    for name in PHASES:
        found[name] = {
            "turns_per_pod": ratio(lambda run, name=name: run.turns(name) / run.nodes),
            "worker_cpu_per_pod": ratio(lambda run, name=name: run.cpu_ms(name, "worker")),
            "redis_cpu_per_pod": ratio(lambda run, name=name: run.cpu_ms(name, "redis")),
            "cpu_per_pod": ratio(lambda run, name=name: run.cpu_ms(name)),
            "api_writes_per_pod": ratio(lambda run, name=name: run.writes(name)),
        }
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.daemonset", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--workers", type=int, default=2)
    add("--nodes", type=int, default=1_000)
    add("--fewer-nodes", type=int, default=250, help="nodes of the run it is compared with")
    add("--rest-s", type=float, default=3.0, help="pause before memory is read")
    add("--chunks", type=int, default=5, help="turns that create a pod, for counting round trips")
    return parser


if __name__ == "__main__":
    report.main(main)
