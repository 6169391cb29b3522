"""`oarlock requeue`: have a key looked at again, now."""

from __future__ import annotations

from pathlib import Path

import click

from broker.redis_broker import RedisBroker
from controllers.registry import QUEUES, resource_of
from workers.cli.options import namespace_option, redis_option, state_dir_option
from workers.cli.problems import InputProblem
from workers.cli.view import full_key, looking


@click.command(epilog="\b\nExamples:\n  oarlock requeue shop/cart\n  oarlock requeue web -n default --force")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option(
    "--controller",
    "-c",
    type=click.Choice(QUEUES),
    default="replicaset",
    show_default=True,
    help="Whose queue.",
)
@click.option("--force", is_flag=True, help="Also for a key whose object is not in the cache.")
@namespace_option
@redis_option
@state_dir_option
def requeue(
    keys: tuple[str, ...],
    controller: str,
    force: bool,
    namespace: str | None,
    redis_url: str | None,
    state_dir: Path | None,
) -> None:
    """Have each KEY (namespace/name) looked at again, now: queued if it was idle or parked, once more if it is in work.

    Harmless at any time: a look at an object that is as it should be changes nothing.
    """
    wanted = [full_key(key, namespace) for key in keys]
    resource = resource_of(controller)
    with looking(redis_url, state_dir) as view:
        if not force:
            missing = [key for key in wanted if view.inspector.object(resource, key) is None]
            if missing:
                raise InputProblem(
                    f"{', '.join(missing)}: not among the cached {resource}; see `oarlock get {resource}`, or --force"
                )
        broker = RedisBroker(view.client, view.seen.epoch)
        for key in wanted:
            added = broker.add(controller, [key], unpark=True)
            state = view.inspector.key(controller, key).state
            click.echo(f"{key}: {'queued' if added else f'nothing to add, it is {state} already'}")
