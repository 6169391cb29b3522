"""--unpullable, of the commands that run simulated nodes."""

from __future__ import annotations

import re

import click

from oarlock.cli.problems import InputProblem
from oarlock.sandbox.nodes.kubelet.images import UNPULLABLE, compiled


def _pattern(_: click.Context, option: click.Parameter, text: str) -> re.Pattern[str] | None:
    try:
        return compiled(text)
    except ValueError as error:
        raise InputProblem(f"--{option.name}: {error}") from None


unpullable_option = click.option(
    "--unpullable",
    metavar="REGEX",
    default=UNPULLABLE,
    show_default=True,
    callback=_pattern,
    help="Images that no node can pull; '': none.",
)
