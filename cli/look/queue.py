"""`oarlock queue`: how many keys of each controller are queued, in work, delayed and parked, or which.

Its subcommands look into a keyed queue of `oarlock.queue` (`cli/look/keyed_queue.py`).
"""

from __future__ import annotations

from dataclasses import asdict

import click

from oarlock.cli.look import keyed_queue
from oarlock.cli.look.view import Where, controller_option, looking, queues_of, view_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.problems import InputProblem
from oarlock.cli.tables import show

COMMANDLINE = click.core.ParameterSource.COMMANDLINE


@click.group(
    invoke_without_command=True,
    subcommand_metavar="[COMMAND --queue NAME [ARGS]...]",
    epilog="\b\nExamples:\n  oarlock queue\n  oarlock queue --keys -n shop\n  oarlock queue -o json | jq '.[].queued'\n"
    "  oarlock queue stats --queue invoices",
)
@controller_option()
@click.option("--keys", "list_keys", is_flag=True, help="List the keys that are not idle.")
@namespace_option
@view_options
@click.pass_context
def queue(
    context: click.Context,
    controller: str | None,
    list_keys: bool,
    namespace: str | None,
    where: Where,
    output: str,
) -> None:
    """Print how many keys of each controller are queued, in work, delayed and parked, and the age of the oldest. The
    commands below look into a keyed queue of `oarlock.queue` instead (docs/keyed-queue.md).

    \b
    JSON: [{name, queued, in_work, delayed, parked, failing, oldest_age_ms, held (by a pause)}]
    with --keys: [{queue, key, state (running | running+ | held | queued | parked | delayed), due_in_ms, crashes, by}];
    crashes: workers it killed in a row, 0 if it is only suspect, else null; by: who parked it, empty if it was the
    fleet;
    with --shards of more than one, each has shard too
    """
    if context.invoked_subcommand:
        if before := [name for name in context.params if context.get_parameter_source(name) is COMMANDLINE]:
            raise InputProblem(
                f"--{before[0].removesuffix('_url')}: write options behind {context.invoked_subcommand!r}"
            )
        return
    with looking(where) as views:
        for line in views.paused():
            click.echo(line, err=True)
        queues = queues_of(views, controller)
        if list_keys or namespace:
            lines = [
                views.told(view, asdict(each))
                for name in queues
                for view in views
                for each in view.inspector.keys_of(name)
                if not namespace or each.key.startswith(f"{namespace}/")
            ]
            rows = [{**each, "crashes": "suspect" if each["crashes"] == 0 else each["crashes"]} for each in lines]
            columns = {
                "queue": "CONTROLLER",
                "key": "KEY",
                "state": "STATE",
                "due_in_ms": "DUE IN",
                "crashes": "CRASHES",
                **({"by": "PARKED BY"} if any(each["by"] for each in lines) else {}),
            }
            show(lines if output == "json" else rows, views.columns(columns), output, empty="all keys are idle")
            return
        lines = [views.told(view, asdict(view.inspector.queue(name))) for name in queues for view in views]
    columns = {
        "name": "CONTROLLER",
        "queued": "QUEUED",
        "in_work": "IN WORK",
        "delayed": "DELAYED",
        "parked": "PARKED",
        **({"held": "HELD"} if any(each["held"] for each in lines) else {}),
        "failing": "FAILING",
        "oldest_age_ms": "OLDEST",
    }
    show(lines, views.columns(columns), output)


for _command in keyed_queue.COMMANDS:
    queue.add_command(_command)
