"""`oarlock requeue`: queue a key again, now."""

from __future__ import annotations

import click

from oarlock.broker.pauses import note
from oarlock.cli.look.keys import AskedKey
from oarlock.cli.look.view import Views, Where, controller_option, looking, where_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.problems import InputProblem
from oarlock.cli.steer.scopes import broker_of, by_option
from oarlock.controllers.registry import resource_of


@click.command(
    epilog="\b\nExamples:\n  oarlock requeue shop/cart\n  oarlock requeue web -n default --force\n"
    "  oarlock requeue -c daemonset-node-updates node-3"
)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@controller_option("Whose queue. Default: of the kind that has an object of that name in the cache.")
@click.option("--force", is_flag=True, help="Also queue a key whose object is not in the cache.")
@namespace_option
@by_option
@where_options
def requeue(
    keys: tuple[str, ...], controller: str | None, force: bool, namespace: str | None, by: str, where: Where
) -> None:
    """Queue each KEY (namespace/name, or rs/namespace/name; of a node its name) again, now. A key in work is queued
    once its turn ends. Of a kind with several controllers it is queued for each.

    Harmless at any time: a turn changes nothing if nothing differs.
    """
    asked = [AskedKey.parse(key, controller, namespace) for key in keys]
    with looking(where) as views:
        wanted = [task for each in asked for task in each.tasks(views)]
        if not force:
            missing = [task for task in wanted if _is_missing(views, *task)]
            for queue in dict.fromkeys(queue for queue, _ in missing):
                resource, named = resource_of(queue), ", ".join(key for each, key in missing if each == queue)
                raise InputProblem(
                    f"{named}: not among the cached {resource}; see `oarlock get {resource}`, or --force"
                )
        for queue, key in wanted:
            for view in views.having(key):
                broker = broker_of(view)
                added = broker.add(queue, [key], unpark=True)
                broker.steer("note", f"requeue {queue}:{key}", note(by, ""))
                state = view.inspector.key(queue, key).state
                of = "" if "/" in key else views.of_shard(view)
                whose = f" of {queue}" if len(wanted) > len(asked) else ""
                click.echo(f"{of}{key}{whose}: {'queued' if added else f'nothing to add, it is {state} already'}")


def _is_missing(views: Views, queue: str, key: str) -> bool:
    return views.of(key).inspector.object(resource_of(queue), key) is None
