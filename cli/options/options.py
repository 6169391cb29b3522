"""Options that many commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from oarlock.cli.problems import InputProblem
from oarlock.cluster.access import config
from oarlock.cluster.access.credentials import ConfigError
from oarlock.workers.process.shards import SHARDS_MAX

Option = Callable[[Any], Any]
"""Adds an option to a command, or several."""


def together(*options: Option) -> Option:
    """One decorator that adds all of these; `--help` shows them in this order."""

    def with_options(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


state_dir_option = click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    envvar="OARLOCK_STATE_DIR",
    help="The directory of an `oarlock up`.",
)
namespace_option = click.option("--namespace", "-n", help="Only this namespace.")
output_option = click.option(
    "--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print."
)
verbose_option = click.option("-v", "--verbose", count=True, help="More log lines on stderr; -vv: of libraries too.")
log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    envvar="OARLOCK_LOG_FORMAT",
    help="Log lines as key=value or as JSON.",
)
shards_option = click.option(
    "--shards",
    type=click.IntRange(1, SHARDS_MAX),
    metavar="N",
    envvar="OARLOCK_SHARDS",
    help="Into how many parts the namespaces are divided; the same for all processes (docs/shards.md).  [default: 1]",
)
shard_option = click.option(
    "--shard",
    type=click.IntRange(0, SHARDS_MAX - 1),
    metavar="I",
    envvar="OARLOCK_SHARD",
    help="Serve only this shard, 0 to N-1. Default: all, each in its own processes.",
)


def with_shards(shards: int | None, shard: int | None) -> Mapping[str, str]:
    """The environment with the values of the options. Raises InputProblem if there is no such shard."""
    count = shards or 1
    if shard is not None and shard >= count:
        numbers = f"0 to {count - 1}" if count > 1 else "only 0"
        raise InputProblem(f"--shard {shard}: of --shards {count} there are {numbers}")
    given = {"OARLOCK_SHARDS": str(count), "OARLOCK_SHARD": "" if shard is None else str(shard)}
    return {**os.environ, **given}


def check_workers(workers: int, shards: int | None, shard: int | None) -> None:
    """Raises InputProblem unless every shard has a worker."""
    if shards is not None and shard is None and workers < shards:
        raise InputProblem(
            f"--workers {workers}: too few for --shards {shards}: every shard needs a worker; give {shards} or more"
        )


def check_kubeconfig(kubeconfig: str | None) -> config.ClusterConfig:
    """Read the configuration that a worker would use. Raises InputProblem."""
    try:
        return config.load(kubeconfig or None)
    except ConfigError as error:
        raise InputProblem(str(error)) from None
