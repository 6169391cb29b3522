"""A label changed on every node of a cluster with many DaemonSets, half of which belong where the label is set.

On a real `oarlock up`. The label is set on every node, so that the pods of half of the DaemonSets come, and taken away
again, so that they go; the other half has its pods everywhere and is not concerned. The same with a quarter of the
DaemonSets and on a quarter of the nodes: what was asked for are the pods that come or go, and neither turns nor CPU may
grow faster than those. Before, every node changes in ways that concern nobody (annotation, heartbeat, capacity,
another label): what that queues is counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import phase, report
from benchmarks.phase import ROLES, Phase
from benchmarks.report import Unfit, median, say
from benchmarks.tree import Tree, daemonset
from benchmarks.watching import until_settled
from oarlock.cluster.resources import DAEMONSETS, NODES
from oarlock.controllers.daemonset.wire import daemonset_from_json

LABEL = "bench.oarlock.io/agents"
SETS, NODE_UPDATES = "daemonset", "daemonset-node-updates"
CHANGES = ("set", "unset")
LIMIT_S = 600.0
HEARTBEAT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {"metadata": {"annotations": {"bench.oarlock.io/note": "seen"}}}),
    ("status", {"status": {"capacity": {"bench.oarlock.io/slots": "3"}}}),
    ("status", {"status": {"allocatable": {"bench.oarlock.io/slots": "2"}}}),
)
"""(subresource, change): what a node says of itself all the time."""
OTHER_LABEL: dict[str, Any] = {"metadata": {"labels": {"bench.oarlock.io/other": "yes"}}}


@dataclass(frozen=True, slots=True)
class Size:
    """``sets`` DaemonSets on ``nodes`` nodes."""

    nodes: int
    sets: int

    @property
    def concerned(self) -> int:
        """DaemonSets that belong where the label is set."""
        return self.sets // 2

    @property
    def pods(self) -> int:
        """That come, or go."""
        return self.nodes * self.concerned

    @property
    def title(self) -> str:
        return f"{self.nodes:,} nodes, {self.sets} DaemonSets"


@dataclass(frozen=True, slots=True)
class Run:
    """One size, once: what nodes say all the time, a label that concerns nobody, and changes that do, by name."""

    size: Size
    heartbeats: Phase
    other_label: Phase
    changes: Mapping[str, Phase]

    def node_turn_us(self, role: str) -> float:
        """CPU of a turn of a node that concerns nobody."""
        return self.other_label.cpu_ms[role] * 1e3 / self.other_label.turns[NODE_UPDATES]

    def turns(self, name: str, queue: str) -> int:
        return self.changes[name].turns.get(queue, 0)

    def cpu_ms(self, name: str, role: str = "") -> float:
        """A pod that comes or goes; of all processes without ``role``."""
        spent = self.changes[name]
        return (spent.cpu_ms[role] if role else spent.all_cpu_ms) / self.size.pods


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    full = Size(options.nodes, options.sets)
    sizes = {
        "full": full,
        "fewer_sets": Size(options.nodes, options.fewer_sets),
        "fewer_nodes": Size(options.fewer_nodes, options.sets),
    }
    runs: dict[str, list[Run]] = {which: [] for which in sizes}
    for number in range(1, options.rounds + 1):
        for which, size in sizes.items():
            run = measure(size, options.workers)
            runs[which].append(run)
            told = "; ".join(
                f"{name} {run.changes[name].seconds:.1f} s, {run.turns(name, NODE_UPDATES)} turns of nodes and "
                f"{run.turns(name, SETS)} of DaemonSets, {run.cpu_ms(name):.2f} ms CPU a pod"
                for name in CHANGES
            )
            say(f"round {number}, {size.title}: {told}")
    _report(options, sizes, runs)


def measure(size: Size, workers: int) -> Run:
    """Start a fleet, place the DaemonSets, change all nodes, end it."""
    with Tree(workers=workers, nodes=size.nodes) as tree:
        nodes = tree.names(NODES)
        there = {f"everywhere-{number:02d}": size.nodes for number in range(size.sets - size.concerned)}
        chosen = [f"chosen-{number:02d}" for number in range(size.concerned)]
        objects = [daemonset(name) for name in there] + [daemonset(name, node_label=LABEL) for name in chosen]
        wanted = there | dict.fromkeys(chosen, 0)
        _settle(tree, wanted, lambda: tree.create(DAEMONSETS, objects))
        heartbeats = phase.measure(tree, lambda: _unheeded(tree, nodes, HEARTBEAT), LIMIT_S)
        other_label = phase.measure(tree, lambda: _unheeded(tree, nodes, [("", OTHER_LABEL)]), LIMIT_S)
        changes = {}
        for name, value, count in zip(CHANGES, ("yes", None), (size.nodes, 0), strict=True):
            change = {"metadata": {"labels": {LABEL: value}}}
            wanted = dict.fromkeys(chosen, count)
            changes[name] = phase.measure(tree, partial(_relabel, tree, wanted, nodes, change), LIMIT_S)
            expected = size.nodes * (len(there) + (len(chosen) if count else 0))
            if (living := tree.count_pods()) != expected:
                raise Unfit(f"{name}: {living} pods live in the end, not {expected}")
    return Run(size, heartbeats, other_label, changes)


def _relabel(tree: Tree, wanted: Mapping[str, int], nodes: Sequence[str], change: Mapping[str, Any]) -> float:
    return _settle(tree, wanted, lambda: tree.change_nodes(nodes, change))


def _settle(tree: Tree, wanted: Mapping[str, int], act: Any) -> float:
    """Act. Seconds until the status of every DaemonSet in ``wanted`` says that it has so many pods, and where."""

    def settled(raw: bytes) -> tuple[str, bool]:
        _, found = daemonset_from_json(raw)
        status, count = found.status, wanted.get(found.name, -1)
        counts = (status.desired, status.current, status.available, status.misscheduled)
        return found.name, counts == (count, count, count, 0) and status.observed_generation == found.generation

    return until_settled(tree, DAEMONSETS, wanted, settled, act, LIMIT_S)


def _unheeded(tree: Tree, nodes: Sequence[str], changes: Sequence[tuple[str, Mapping[str, Any]]]) -> float:
    """Change all nodes and wait until the shared cache has passed that."""
    last = ""
    for subresource, change in changes:
        last = tree.change_nodes(nodes, change, subresource)

    def passed() -> bool:
        mark: Any = tree.redis.hget(tree.keys.of("watermark"), "nodes")
        at = mark.decode() if mark else ""
        return (len(at), at) >= (len(last), last)

    tree.await_true(passed, "the nodes' changes to be read", LIMIT_S)
    return 0.0


def _report(options: argparse.Namespace, sizes: Mapping[str, Size], runs: Mapping[str, Sequence[Run]]) -> None:
    rows: list[tuple[str, ...]] = []
    for name in CHANGES:
        for which, size in sizes.items():
            mine = runs[which]
            rows.append(
                (
                    f"{name}: {size.title}",
                    f"{size.pods:,}",
                    report.spread([run.changes[name].seconds for run in mine]),
                    f"{median(run.turns(name, NODE_UPDATES) for run in mine):,.0f}",
                    report.spread([run.turns(name, SETS) for run in mine], 0),
                    *(f"{median(run.cpu_ms(name, role) for run in mine):.3f}" for role in ROLES),
                    f"{median(run.cpu_ms(name) for run in mine):.3f}",
                )
            )
    headings = ("label", "pods", "s", "node turns", "set turns", *ROLES, "all")
    report.show(f"median of {options.rounds} rounds; CPU in ms a pod, by what the process does", headings, rows)
    growth = {which: _growth(runs["full"], runs[which]) for which in ("fewer_sets", "fewer_nodes")}
    times = {
        "fewer_sets": f"{sizes['full'].sets / sizes['fewer_sets'].sets:g} x sets",
        "fewer_nodes": f"{sizes['full'].nodes / sizes['fewer_nodes'].nodes:g} x nodes",
    }
    compared = ("", *(f"{name}, {times[which]}" for which in growth for name in CHANGES))
    ratios = [
        (what.replace("_", " "), *(f"{growth[which][name][what]:.2f}" for which in growth for name in CHANGES))
        for what in growth["fewer_sets"]["set"]
    ]
    report.show("growth, ratios of the same round; 1 is as much as was asked for", compared, ratios)
    unheeded = {
        "heartbeats": max(sum(run.heartbeats.turns.values()) for mine in runs.values() for run in mine),
        "other_label": max(run.other_label.turns.get(SETS, 0) for mine in runs.values() for run in mine),
    }
    counted: list[tuple[str, ...]] = [
        ("annotation, capacity, allocatable of every node", str(unheeded["heartbeats"])),
        ("a label of every node that no DaemonSet asks for: DaemonSets", str(unheeded["other_label"])),
    ]
    report.show("keys queued by what concerns nobody, most of any run", ("", "keys"), counted)
    spent = [
        (size.title, *(f"{median(run.node_turn_us(role) for run in runs[which]):.0f}" for role in ("worker", "redis")))
        for which, size in sizes.items()
    ]
    report.show("CPU of a turn of a node whose change concerns nobody, us", ("", "workers", "redis"), spent)
    facts: dict[str, Any] = {"benchmark": "nodes"}
    for which, size in sizes.items():
        mine = runs[which]
        facts[which] = {
            "nodes": size.nodes,
            "sets": size.sets,
            "pods": size.pods,
            "worker_us_per_node_turn": round(median(run.node_turn_us("worker") for run in mine), 1),
            "redis_us_per_node_turn": round(median(run.node_turn_us("redis") for run in mine), 1),
        } | {
            name: {
                "seconds": round(median(run.changes[name].seconds for run in mine), 2),
                "node_turns": round(median(run.turns(name, NODE_UPDATES) for run in mine)),
                "set_turns": round(median(run.turns(name, SETS) for run in mine)),
                "set_turns_per_node": round(median(run.turns(name, SETS) / size.nodes for run in mine), 3),
                "cpu_ms_per_pod": {role: round(median(run.cpu_ms(name, role) for run in mine), 4) for role in ROLES},
                "cpu_ms_per_pod_all": round(median(run.cpu_ms(name) for run in mine), 4),
            }
            for name in CHANGES
        }
    facts |= {
        "growth_with_sets": growth["fewer_sets"],
        "growth_with_nodes": growth["fewer_nodes"],
        "keys_by_heartbeats": unheeded["heartbeats"],
        "set_keys_by_other_label": unheeded["other_label"],
        "workers": options.workers,
        "rounds": options.rounds,
    }
    report.finish(facts)


def _growth(full: Sequence[Run], smaller: Sequence[Run]) -> dict[str, dict[str, float]]:
    """What the full size took over what the smaller one took in the same round, each for what was asked of it.

    Turns of nodes: a node; everything else: a pod that comes or goes.
    """

    def ratio(of: Any) -> float:
        return round(median(of(large) / of(small) for large, small in zip(full, smaller, strict=True)), 3)

    return {
        name: {
            "node_turns_per_node": ratio(lambda run, name=name: run.turns(name, NODE_UPDATES) / run.size.nodes),
            "set_turns_per_pod": ratio(lambda run, name=name: run.turns(name, SETS) / run.size.pods),
            "seconds_per_pod": ratio(lambda run, name=name: run.changes[name].seconds / run.size.pods),
            "worker_cpu_per_pod": ratio(lambda run, name=name: run.cpu_ms(name, "worker")),
            "redis_cpu_per_pod": ratio(lambda run, name=name: run.cpu_ms(name, "redis")),
            "cpu_per_pod": ratio(lambda run, name=name: run.cpu_ms(name)),
        }
        for name in CHANGES
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nodes", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--workers", type=int, default=2)
    add("--nodes", type=int, default=1_000)
    add("--sets", type=int, default=20, help="DaemonSets; half of them belong where the label is set")
    add("--fewer-sets", type=int, default=5)
    add("--fewer-nodes", type=int, default=250)
    return parser


if __name__ == "__main__":
    report.main(main)
