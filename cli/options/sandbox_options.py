"""Options of the commands that run a cluster on this machine: its size, and the objects to apply."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from oarlock.cli.options.options import Option, together
from oarlock.cli.problems import InputProblem, say
from oarlock.sandbox.nodes.kubelet.images import UNPULLABLE, compiled

if TYPE_CHECKING:
    from oarlock.sandbox.apiserver.kinds.kind import Kind
    from oarlock.sandbox.manifests.checks import Item

_PORT = click.IntRange(0, 65_535)


def size_options(nodes: int = 5) -> Option:
    """The size of the cluster and of the fleet; ``nodes`` is the default of --nodes."""
    return together(
        click.option(
            "--nodes",
            type=click.IntRange(1, 10_000),
            default=nodes,
            show_default=True,
            help="Simulated nodes with room for 110 pods each; 1,000 run on two cores. `oarlock nodes add` adds more.",
        ),
        click.option("--workers", type=click.IntRange(0, 256), default=2, show_default=True, help="RQ workers."),
        click.option("--ingestors", type=click.IntRange(1, 16), default=2, show_default=True, help="Ingestors."),
        click.option("--api-port", type=_PORT, default=0, help="Port of the API server; 0: any free one."),
        click.option("--redis-port", type=_PORT, default=0, help="Port of the Redis; 0: any free one."),
        click.option(
            "--state-dir",
            type=click.Path(path_type=Path),
            envvar="OARLOCK_STATE_DIR",
            help="Keep kubeconfig, redis-url, audit.log, processes.json and logs/ here. Default: a temporary one.",
        ),
    )


input_options = together(
    click.option(
        "--filename",
        "-f",
        "filenames",
        multiple=True,
        metavar="FILE|DIR|-",
        help="Objects to apply, YAML or JSON, several documents a file; can be repeated.",
    ),
    click.option("--namespace", "-n", default="default", show_default=True, help="For objects that name none."),
    click.option("--skip-unknown", is_flag=True, help="Leave out kinds that are not served, with a warning."),
)
"""The objects to apply: the arguments of ``checked_items``."""


def checked_items(
    filenames: Sequence[str],
    namespace: str,
    skip_unknown: bool,
    defined: Mapping[tuple[str, str], Kind] = MappingProxyType({}),
) -> list[Item]:
    """The objects to apply. ``defined``: kinds beside those that are always served.

    Raises InputProblem with a line for each problem, before anything is started.
    """
    if not filenames:
        return []
    # The rules of the API server are 4 MB, which the processes that `up` forks would have in memory, too.
    from oarlock.sandbox.manifests.checks import check  # noqa: PLC0415
    from oarlock.sandbox.manifests.documents import read_all  # noqa: PLC0415

    documents, problems = read_all(filenames)
    found = check(documents, namespace=namespace, skip_unknown=skip_unknown, defined=defined)
    if problems or found.problems:
        raise InputProblem(*problems, *found.problems)
    say(found.notes)
    return found.items


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
