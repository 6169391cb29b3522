"""`oarlock resume`: end a hold."""

from __future__ import annotations

import click

from oarlock.broker.redis_broker import RedisBroker
from oarlock.cli.look.view import Where, looking, where_options


@click.command(epilog="\b\nExample:\n  oarlock resume --redis redis://worker:secret@redis:6379/0")
@where_options
def resume(where: Where) -> None:
    """End a hold: let the fleet work again, once upstream's controllers of its kinds are switched off.

    A fleet that sees upstream's controllers create pods for its owners begins no turn any more; it says so in its log
    and in `oarlock epoch`, `queue`, `status` and `explain`. Harmless where there is no hold.
    """
    with looking(where) as views:
        for view in views:
            reason = view.inspector.pause_reason()
            phase = RedisBroker(view.client, view.seen.epoch, shard=view.shard).pause("")
            over = f"the hold is over, phase {phase}; it was: {reason}"
            click.echo(views.of_shard(view) + (over if reason else f"there is no hold, phase {phase}"))
