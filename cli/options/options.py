"""Options that many commands share."""

from __future__ import annotations

from pathlib import Path

import click

from oarlock.cli.problems import InputProblem
from oarlock.cluster.access import config
from oarlock.cluster.access.credentials import ConfigError

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


def check_kubeconfig(kubeconfig: str | None) -> config.ClusterConfig:
    """Read the configuration that a worker would use. Raises InputProblem."""
    try:
        return config.load(kubeconfig or None)
    except ConfigError as error:
        raise InputProblem(str(error)) from None
