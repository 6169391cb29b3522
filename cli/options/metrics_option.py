"""Where a process serves its metrics and its health."""

from __future__ import annotations

import socket

import click

from oarlock.cli.problems import InputProblem
from oarlock.workers.process.bind_address import BadBindAddress, given, listen
from oarlock.workers.process.settings import Settings

metrics_option = click.option(
    "--metrics-bind-address",
    metavar="HOST:PORT",
    envvar="OARLOCK_METRICS_BIND_ADDRESS",
    default="0",
    show_default=True,
    help="Serve /metrics, /livez and /readyz there; :PORT on all addresses, 0 nowhere. A second shard: the next port.",
)


def open_metrics(text: str, settings: Settings) -> list[socket.socket]:
    """Listening sockets, one for each shard that this process serves, or none. Raises InputProblem."""
    try:
        return given() or listen(text, 1 if settings.shard else settings.shards)
    except BadBindAddress as error:
        raise InputProblem(str(error)) from None
