"""`oarlock resume`: let turns begin again."""

from __future__ import annotations

import click

from oarlock.broker.pauses import note
from oarlock.cli.look.view import View, Views, Where, looking, where_options
from oarlock.cli.steer.scopes import broker_of, by_option, scope_options, scopes_of


@click.command(
    epilog="\b\nExamples:\n  oarlock resume -n shop\n  oarlock resume rs/shop/cart\n  oarlock resume --all\n"
    "  oarlock resume --redis redis://worker:secret@redis:6379/0"
)
@scope_options
@by_option
@where_options
def resume(
    keys: tuple[str, ...], every: bool, controller: str | None, namespace: str | None, by: str, where: Where
) -> None:
    """End a pause that was asked for with `oarlock pause`, named as there. Each pause ends by itself: what is under two
    of them waits for the end of both.

    Without KEY, --all, -c and -n: let a fleet work again that has paused itself, once upstream's controllers of its
    kinds are switched off. A fleet that sees them create pods for its owners begins no turn; its log says so, and so do
    `oarlock epoch`, `queue`, `status` and `explain`. Harmless if nothing is paused.
    """
    with looking(where) as views:
        scopes = scopes_of(views, keys, every, controller, namespace)
        for scope, concerned in scopes:
            for view in concerned:
                was = broker_of(view).steer("resume", scope, note(by, ""))
                click.echo(f"{views.of_shard(view)}{scope} {'is resumed' if was else 'was not paused'}")
        if not scopes:
            for view in views:
                _end_own_pause(views, view)
        for line in views.pauses():
            click.echo(line)


def _end_own_pause(views: Views, view: View) -> None:
    reason = view.inspector.pause_reason()
    phase = broker_of(view).pause("")
    over = f"resumed, phase {phase}; it was paused: {reason}"
    click.echo(views.of_shard(view) + (over if reason else f"it was not paused, phase {phase}"))
