"""`oarlock nodes run`: simulated nodes for any API server, in a process of their own."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any, Final

import click
import uvloop

from oarlock.cli import logs
from oarlock.cli.nodes.node_api import unusable
from oarlock.cli.nodes.node_text import check_name
from oarlock.cli.options.options import check_kubeconfig, log_format_option, verbose_option
from oarlock.cli.options.sandbox_options import unpullable_option
from oarlock.cli.problems import NotDone, say
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client
from oarlock.cluster.resources import NODES
from oarlock.sandbox.nodes.api.remote_pod_api import CannotRegister, RemotePodApi
from oarlock.sandbox.nodes.lifecycle import readiness, wants_taints
from oarlock.sandbox.nodes.settings import NodeSettings
from oarlock.sandbox.nodes.simulator import Simulator

_LOOK_S: Final = 0.05
_READY_WITHIN_S: Final = 60.0
_TELL_AFTER_S: Final = 1.0


@click.command(
    "run",
    epilog="\b\nExamples:\n"
    "  oarlock nodes run --count 100 --schedule --kubeconfig ~/.kube/config\n"
    "  oarlock nodes run --count 3 --prefix sim- --no-lifecycle --remove --kubeconfig ~/.kube/config\n\n"
    "It serves only nodes with the annotation oarlock.io/simulated=true: its own, and those of `oarlock nodes add`. "
    "Run one such process for a cluster.",
)
@click.option("--count", "nodes", type=click.IntRange(0, 10_000), default=5, show_default=True, help="How many nodes.")
@click.option("--prefix", default="node-", show_default=True, help="The part of their names before the number.")
@click.option(
    "--room",
    "pods_per_node",
    type=click.IntRange(0, 10_000),
    default=110,
    show_default=True,
    help="How many pods each takes.",
)
@click.option(
    "--schedule/--no-schedule",
    "schedules",
    default=False,
    show_default=True,
    help="Assign a node to pods that have none.",
)
@click.option(
    "--lifecycle/--no-lifecycle",
    default=True,
    show_default=True,
    help="Taint nodes by their state, evict by taint, delete orphaned pods.",
)
@click.option("--ready-ms", type=click.FloatRange(0), default=0.0, help="How long a pod takes to become ready.")
@click.option("--ready-jitter-ms", type=click.FloatRange(0), default=0.0, help="Random extra time, at most this.")
@click.option("--terminate-ms", type=click.FloatRange(0), default=0.0, help="How long a pod takes to end.")
@unpullable_option
@click.option(
    "--gone-node-ms",
    type=click.FloatRange(0),
    default=40_000.0,
    show_default=True,
    help="How long pods of a deleted node are kept.",
)
@click.option(
    "--heartbeat-s",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    help="Interval between status updates of a node; 0: never.",
)
@click.option("--seed", type=int, default=0, help="Seed of the jitter.")
@click.option("--remove", "removing", is_flag=True, help="Delete these nodes at the end.")
@click.option("--kubeconfig", metavar="FILE", envvar="OARLOCK_KUBECONFIG", required=True, help="Of the API server.")
@verbose_option
@log_format_option
def nodes_run(kubeconfig: str, removing: bool, heartbeat_s: float, verbose: int, log_format: str, **given: Any) -> int:
    """Run simulated nodes until Ctrl-C, at an API server with or without real nodes.

    The nodes register, report ready, run the pods that are bound to them (one status write makes a pod running and
    ready) and end pods that are deleted. `oarlock up` does not need this: its nodes are simulated already.
    """
    settings = NodeSettings(heartbeat_ms=heartbeat_s * 1000, **given)
    check_name(f"{settings.prefix}0")
    config = check_kubeconfig(kubeconfig)
    logs.set_up(verbose, log_format)
    uvloop.run(_run(config, settings, removing))
    return 0


async def _run(config: ClusterConfig, settings: NodeSettings, removing: bool) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    names = [f"{settings.prefix}{number}" for number in range(settings.nodes)]
    async with Client(config, role="nodes") as client:
        if not (answer := await client.probe()).ok:
            raise unusable(config, answer)
        api = RemotePodApi(client)
        simulator = Simulator(api, settings)
        try:
            await simulator.begin()
        except CannotRegister as error:
            raise NotDone(str(error)) from None
        simulator.start()
        try:
            if await _ready(api, names, settings, stopping):
                click.echo(f"ready: {_told(names)} at {config.address}; Ctrl-C ends")
                await stopping.wait()
        finally:
            await simulator.stop()
        if removing:
            await asyncio.gather(*(client.delete(NODES, "", name) for name in names))
            say([f"removed {len(names)} nodes"])


async def _ready(api: RemotePodApi, names: list[str], settings: NodeSettings, stopping: asyncio.Event) -> bool:
    """Wait until all nodes are ready and have no not-ready taint; False if stopped. Raises NotDone."""
    begun_s = time.monotonic()
    told = False
    while not stopping.is_set():
        nodes = api.nodes
        if all(name in nodes and _is_ready(nodes[name], settings) for name in names):
            return True
        waited_s = time.monotonic() - begun_s
        if waited_s > _READY_WITHIN_S:
            raise NotDone(f"not all of {len(names)} nodes were ready within {_READY_WITHIN_S:g} s")
        if waited_s > _TELL_AFTER_S and not told:
            say([f"waiting until {len(names)} nodes are registered and ready ..."])
            told = True
        await asyncio.sleep(_LOOK_S)
    return False


def _is_ready(node: dict[str, Any], settings: NodeSettings) -> bool:
    """A new node has a not-ready taint until the lifecycle controller removes it."""
    return readiness(node) is not None and not (settings.lifecycle and wants_taints(node))


def _told(names: list[str]) -> str:
    if not names:
        return "no nodes of its own"
    return f"node {names[0]}" if len(names) == 1 else f"{len(names)} nodes, {names[0]} to {names[-1]}"
