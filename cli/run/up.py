"""`oarlock up`: everything on this machine, until Ctrl-C."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from oarlock.cli import logs
from oarlock.cli.nodes.unpullable_option import unpullable_option
from oarlock.cli.options.options import log_format_option, verbose_option
from oarlock.cli.options.shard_options import check_workers, shards_option
from oarlock.cli.problems import InputProblem, NotDone, say
from oarlock.sandbox.manifests.checks import Item, check
from oarlock.sandbox.manifests.documents import read_all
from oarlock.sandbox.up.start import NotStarted, Options, Up
from oarlock.sandbox.up.state_dir import StateDir, StateDirUnusable
from oarlock.sandbox.up.tree import ApiServerEnded, Stopped

_PORT = click.IntRange(0, 65_535)


def size_options(nodes: int = 5) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """How much of everything, with so many nodes where none are asked for; `oarlock run` has the same."""
    options = (
        click.option(
            "--nodes",
            type=click.IntRange(1, 5_000),
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

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What to apply."""
    for option in reversed(
        (
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
    ):
        command = option(command)
    return command


def checked_items(filenames: Sequence[str], namespace: str, skip_unknown: bool) -> list[Item]:
    """The objects to apply; notes are said. Raises InputProblem with a line for each problem; nothing is started."""
    documents, problems = read_all(filenames)
    found = check(documents, namespace=namespace, skip_unknown=skip_unknown)
    if problems or found.problems:
        raise InputProblem(*problems, *found.problems)
    say(found.notes)
    return found.items


@click.command(
    epilog="\b\nExamples:\n  oarlock up\n  oarlock up -f shop.yaml -f more/ --workers 4 --nodes 100\n"
    "  oarlock up --state-dir /tmp/o &  ...  oarlock down --state-dir /tmp/o"
)
@size_options()
@input_options
@unpullable_option
@click.option("--faults", is_flag=True, help="Open the API server's endpoint for faults on demand (/_oarlock/).")
@click.option(
    "--no-api-token",
    is_flag=True,
    help="Let the API server serve whoever reaches it. Without it each request needs the kubeconfig's token.",
)
@shards_option
@verbose_option
@log_format_option
def up(
    nodes: int,
    workers: int,
    ingestors: int,
    api_port: int,
    redis_port: int,
    state_dir: Path | None,
    filenames: tuple[str, ...],
    namespace: str,
    skip_unknown: bool,
    unpullable: re.Pattern[str] | None,
    faults: bool,
    no_api_token: bool,
    shards: int | None,
    verbose: int,
    log_format: str,
) -> None:
    """Start a private Redis, an API server with simulated nodes, ingestors and supervised workers; stay until ^C.

    Processes that end are started again, all but the API server, which holds the cluster's state. Nothing is left
    behind in the end; of a --state-dir the audit log and the logs are kept.
    """
    items = checked_items(filenames, namespace, skip_unknown)
    if workers:
        check_workers(workers, shards, None)
    options = Options(
        *(nodes, workers, ingestors, api_port, redis_port),
        unpullable=unpullable.pattern if unpullable else "",
        faults=faults,
        shards=shards or 1,
        api_token=not no_api_token,
        metrics=True,
    )
    logs.set_up(verbose, log_format, least=logging.WARNING)
    try:
        state = StateDir.take(state_dir)
    except StateDirUnusable as error:
        raise InputProblem(str(error)) from None
    running = Up(state, options)
    try:
        running.start(items)
        click.echo(_greeting(state, running, options, len(items)))
        running.stay()
    except Stopped:
        click.echo("stopping ...")
    except NotStarted as error:
        raise InputProblem(str(error)) from None
    except ApiServerEnded as error:
        raise NotDone(f"the API server ended ({error}), and the cluster's state with it; all is stopped") from None
    finally:
        running.stop()


def _greeting(state: StateDir, running: Up, options: Options, objects: int) -> str:
    kubeconfig, redis_url = shlex.quote(str(state.kubeconfig)), shlex.quote(str(state.redis_url))
    applied = f", {objects} objects applied" if objects else ""
    shards = ""
    if options.shards > 1:
        applied, shards = f" in {options.shards} shards{applied}", f"OARLOCK_SHARDS={options.shards} "
    return "\n".join(
        [
            f"oarlock is up: {options.nodes} nodes, {options.ingestors} ingestors, {options.workers} workers{applied}.",
            "",
            f"  kubeconfig  {state.kubeconfig}",
            f"  Redis       {running.redis_url}",
            f"  state       {state.root}",
            *(f"  metrics     {address}/metrics  ({name})" for name, address in running.metrics_urls.items()),
            "",
            "In another terminal:",
            f"  export KUBECONFIG={kubeconfig}; kubectl get pods -A -w",
            f'  redis-cli -u "$(cat {redis_url})" --scan',
            f'  {shards}rq info -u "$(cat {redis_url})" --queue-class oarlock.workers.rq_queue.KeyQueue',
            "  oarlock queue; oarlock locks; oarlock explain NAMESPACE/NAME",
            "  oarlock nodes add --count 100; oarlock nodes taint node-3 maintenance:NoExecute",
            "",
            "Ctrl-C stops it and leaves nothing behind.",
        ]
    )
