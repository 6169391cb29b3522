"""What the commands of `oarlock nodes` share: options, the connection, how results are printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import uvloop

from oarlock.cli.nodes.node_api import Nodes, Written, cluster_config
from oarlock.cli.nodes.node_text import as_cells, as_row, told
from oarlock.cli.options.options import output_option, state_dir_option, together
from oarlock.cli.tables import show

T = TypeVar("T")
Obj = dict[str, Any]

selector_option = click.option(
    "--selector", "-l", default="", metavar="SELECTOR", help="Nodes with these labels: zone=a."
)
names_argument = click.argument("names", nargs=-1, metavar="[NODE...]")


connection_options = together(
    click.option(
        "--kubeconfig",
        metavar="FILE",
        envvar="OARLOCK_KUBECONFIG",
        help="Another cluster than that of the `oarlock up` that runs.",
    ),
    state_dir_option,
    output_option,
)


def run(work: Callable[[Nodes], Coroutine[Any, Any, T]], *, kubeconfig: str | None, state_dir: Path | None) -> T:
    """Call ``work`` with the nodes of the chosen cluster. Raises InputProblem."""
    config = cluster_config(kubeconfig, state_dir)

    async def connected() -> T:
        async with Nodes(config) as api:
            return await work(api)

    done: T = uvloop.run(connected())
    return done


def tell(what: str, written: Sequence[Written], output: str) -> None:
    """Print what was done to which nodes; as JSON the nodes as they are now, each with `changed`."""
    if output == "json":
        rows = [{"name": done.name} if done.node is None else as_row(done.node) for done in written]
        show_nodes([{**row, "changed": done.changed} for row, done in zip(rows, written, strict=True)], output)
        return
    for now, changed in ((what, True), ("as it was", False)):
        for line in told(now, [done.name for done in written if done.changed is changed]):
            click.echo(line)


def show_nodes(rows: Sequence[Obj], output: str, *, with_pods: bool = False) -> None:
    """A table or JSON."""
    columns = {"name": "NAME", "status": "STATUS", "pods": "PODS", "taints": "TAINTS", "labels": "LABELS", "age": "AGE"}
    if not with_pods:
        del columns["pods"]
    now_ms = time.time_ns() // 1_000_000
    show(rows if output == "json" else [as_cells(row, now_ms) for row in rows], columns, output, empty="no nodes")
