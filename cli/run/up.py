"""`oarlock up`: everything on this machine, until Ctrl-C."""

from __future__ import annotations

import gc
import logging
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from oarlock.cli import logs
from oarlock.cli.options.options import check_workers, log_format_option, shards_option, verbose_option
from oarlock.cli.options.sandbox_options import checked_items, input_options, size_options, unpullable_option
from oarlock.cli.options.unknown_variables import unknown_variables
from oarlock.cli.problems import InputProblem, NotDone, say
from oarlock.sandbox.up.start import NotStarted, Options, RunHere, Up
from oarlock.sandbox.up.state_dir import StateDir, StateDirUnusable
from oarlock.sandbox.up.tree import ApiServerEnded, Stopped


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
    help="Let the API server serve everybody. Without this flag each request needs the kubeconfig's token.",
)
@shards_option
@verbose_option
@log_format_option
def up(
    filenames: tuple[str, ...],
    namespace: str,
    skip_unknown: bool,
    state_dir: Path | None,
    unpullable: re.Pattern[str] | None,
    no_api_token: bool,
    shards: int | None,
    verbose: int,
    log_format: str,
    workers: int,
    **given: Any,
) -> None:
    """Start a private Redis, an API server with simulated nodes, ingestors and supervised workers; stay until ^C.

    Processes that end are started again, except the API server, which keeps the cluster's state in memory. At the end
    nothing is left behind; a --state-dir keeps the audit log and the logs.
    """
    say(unknown_variables())  # its processes tell theirs in their logs only
    items = checked_items(filenames, namespace, skip_unknown)
    if workers:
        check_workers(workers, shards, None)
    options = Options(
        **given,
        workers=workers,
        unpullable=unpullable.pattern if unpullable else "",
        shards=shards or 1,
        api_token=not no_api_token,
        metrics=True,
    )
    logs.set_up(verbose, log_format, least=logging.WARNING)
    try:
        state = StateDir.take(state_dir)
    except StateDirUnusable as error:
        raise InputProblem(str(error)) from None
    running = Up(state, options, _loaded())
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


def _loaded() -> RunHere:
    """Load what ingestors and workers need, once for all of them: they share its pages."""
    from oarlock.cli import cli  # noqa: PLC0415  # it loads this module
    from oarlock.workers.supervisor import ingest_command, worker_command  # noqa: F401, PLC0415  # none but `up` forks

    for command in ("ingest", "worker"):
        cli.get_command(click.get_current_context(), command)
    gc.collect()
    gc.freeze()  # a collection would write to every page

    def run_here(arguments: Sequence[str]) -> int:
        code: int = cli.main(arguments, "oarlock")  # raises SystemExit
        return code

    return run_here


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
