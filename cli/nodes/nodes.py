"""`oarlock nodes`: list and add nodes of the embedded cluster. `node_edits` changes them.

Each command writes Node objects, as `kubectl` would. The cluster does what follows: taints, evictions, pods that come
and go.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import click

from oarlock.cli.nodes.node_api import Nodes, Written, refuse, write_each
from oarlock.cli.nodes.node_edits import EDITS
from oarlock.cli.nodes.node_options import connection_options, names_argument, run, selector_option, show_nodes, tell
from oarlock.cli.nodes.node_text import (
    UNKNOWN,
    as_row,
    check_name,
    chosen,
    numbered,
    parse_label,
    parse_taint,
    with_taints,
)
from oarlock.cli.nodes.nodes_run import nodes_run
from oarlock.cli.problems import InputProblem, NotDone
from oarlock.sandbox.nodes.lifecycle import readiness
from oarlock.sandbox.nodes.settings import SIMULATED

Obj = dict[str, Any]

SERVED_WITHIN_S = 10.0
LOOK_S = 0.05


@click.group(
    epilog="\b\nExamples:\n"
    "  oarlock nodes list\n"
    "  oarlock nodes add --count 100 --label zone=a --taint dedicated=gpu:NoSchedule\n"
    "  oarlock nodes taint node-3 maintenance:NoExecute     its pods go\n"
    "  oarlock nodes taint node-3 maintenance-              and come back\n"
    "  oarlock nodes not-ready 'node-1*'; oarlock nodes ready --all\n"
    "  oarlock nodes remove -l zone=a\n\n"
    "It finds an `oarlock up` of yours by itself. kubectl does the same: label, taint, cordon, drain, delete node."
)
def nodes() -> None:
    """Add, remove, label, taint and cordon nodes of the embedded cluster, or make them fail."""


for _edit in EDITS:
    nodes.add_command(_edit)
nodes.add_command(nodes_run)


@nodes.command(
    "list", epilog="\b\nExamples:\n  oarlock nodes list --pods\n  oarlock nodes list 'node-1*' -l zone=a -o json"
)
@names_argument
@selector_option
@click.option("--pods", "with_pods", is_flag=True, help="Count the pods of each.")
@connection_options
def list_(names: tuple[str, ...], selector: str, with_pods: bool, output: str, **where: Any) -> None:
    """Nodes with their state, taints and labels. NODE is a name or a pattern.

    \b
    JSON: [{name, ready (True | False | Unknown), cordoned, taints, labels, room, created}], with --pods also pods
    """

    async def look(api: Nodes) -> tuple[list[Obj], dict[str, int]]:
        found = chosen(await api.all(selector), names)
        return found, await api.pods_by_node() if with_pods else {}

    found, pods = run(look, **where)
    rows = [as_row(node, pods.get(node["metadata"]["name"], 0) if with_pods else None) for node in found]
    show_nodes(rows, output, with_pods=with_pods)


@nodes.command(
    epilog="\b\nExamples:\n"
    "  oarlock nodes add\n"
    "  oarlock nodes add --count 100 --label zone=a --taint key=value:NoSchedule\n"
    "  oarlock nodes add gpu-1 gpu-2 --label accelerator=a100 --room 10\n"
    "  oarlock nodes add win-1 --label kubernetes.io/os=windows\n\n"
    "Without NODE the numbers go on: node-5 after node-4."
)
@names_argument
@click.option("--count", type=click.IntRange(1, 10_000), help="How many; their names are numbered.  [default: 1]")
@click.option("--prefix", default="node-", show_default=True, help="What stands before the number.")
@click.option("--label", "-l", "labels", multiple=True, metavar="KEY=VALUE", help="Can be repeated.")
@click.option("--taint", "-t", "taints", multiple=True, metavar="KEY[=VALUE]:EFFECT", help="Can be repeated.")
@click.option("--room", type=click.IntRange(0, 10_000), help="How many pods each takes.  [default: as the others]")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until a kubelet serves them.")
@connection_options
def add(
    names: tuple[str, ...],
    count: int | None,
    prefix: str,
    labels: tuple[str, ...],
    taints: tuple[str, ...],
    room: int | None,
    wait: bool,
    output: str,
    **where: Any,
) -> None:
    """Add nodes: those named, or --count of them.

    \b
    JSON: [{name, ready (True | False | Unknown), cordoned, taints, labels, room, created, changed}]
    """
    if names and count is not None:
        raise InputProblem("NODE and --count exclude each other; leave one out")
    for name in names or (f"{prefix}0",):
        check_name(name)
    own = dict(parse_label(text) for text in labels)
    spec = {"taints": with_taints([], [(parse_taint(text), True) for text in taints])} if taints else {}
    status = {} if room is None else {"capacity": {"pods": str(room)}}

    async def work(api: Nodes) -> list[Written]:
        there = {node["metadata"]["name"] for node in await api.all()}
        if taken := [name for name in names if name in there]:
            raise InputProblem(*(f"node {name!r}: there is one already; give another name" for name in taken))
        wanted = names or numbered(there, prefix, count or 1)
        written = await write_each([_node(name, own, spec, status) for name in dict.fromkeys(wanted)], api.create)
        refuse(written)
        return await _await_served(api, written) if wait else written

    tell("added", run(work, **where), output)


# -- inside ----------------------------------------------------------------------------------------------------------


def _node(name: str, labels: Obj, spec: Obj, status: Obj) -> Obj:
    """A Node with the labels that a kubelet sets, so that nobody sees it without them."""
    given = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    metadata = {"name": name, "labels": {**given, **labels}, "annotations": {SIMULATED: "true"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


async def _await_served(api: Nodes, written: Sequence[Written]) -> list[Written]:
    """Wait until a kubelet reports each node. Raises NotDone if none does."""
    ends_s = time.monotonic() + SERVED_WITHIN_S
    while True:
        found = {node["metadata"]["name"]: node for node in await api.all()}
        unheard = [
            done.name for done in written if done.name in found and readiness(found[done.name]) in (None, UNKNOWN)
        ]
        if not unheard:
            return [Written(done.name, found.get(done.name), True) for done in written]
        if time.monotonic() > ends_s:
            raise NotDone(
                f"nobody serves {len(unheard)} of the {len(written)} nodes added ({unheard[0]}):"
                " does this cluster simulate nodes?"
            )
        await asyncio.sleep(LOOK_S)
