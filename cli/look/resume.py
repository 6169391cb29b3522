"""`oarlock resume`: let a paused fleet work again."""

from __future__ import annotations

import click

from oarlock.broker.redis_broker import RedisBroker
from oarlock.cli.look.view import Where, looking, where_options


@click.command(epilog="\b\nExample:\n  oarlock resume --redis redis://worker:secret@redis:6379/0")
@where_options
def resume(where: Where) -> None:
    """Let a paused fleet work again, once upstream's controllers of its kinds are switched off.

    A fleet that sees upstream's controllers create pods for its owners pauses: it begins no turn. Its log says so, and
    so do `oarlock epoch`, `queue`, `status` and `explain`. Harmless if the fleet is not paused.
    """
    with looking(where) as views:
        for view in views:
            reason = view.inspector.pause_reason()
            phase = RedisBroker(view.client, view.seen.epoch, shard=view.shard).pause("")
            over = f"resumed, phase {phase}; it was paused: {reason}"
            click.echo(views.of_shard(view) + (over if reason else f"it was not paused, phase {phase}"))
