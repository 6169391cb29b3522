"""`oarlock pause`: let no turn of some keys begin."""

from __future__ import annotations

import click

from oarlock.broker.pauses import SCOPES_MAX, note
from oarlock.cli.look.view import View, Where, looking, where_options
from oarlock.cli.problems import InputProblem, say
from oarlock.cli.steer.scopes import (
    broker_of,
    by_option,
    for_option,
    is_kept,
    not_kept_option,
    reason_option,
    say_missing,
    scope_options,
    scopes_of,
    words_of,
)
from oarlock.cli.tables import span

NOT_KEPT = "no ingestor has written it into the Lease within 15 s, so a loss of Redis would end it"


@click.command(
    epilog="\b\nExamples:\n  oarlock pause -n shop --reason 'quota is being raised'\n"
    "  oarlock pause rs/shop/cart --reason 'debugging'\n  oarlock pause -c daemonset\n  oarlock pause --all --for 10m\n"
    "  oarlock pause                  which pauses there are"
)
@scope_options
@for_option("Until it is resumed.")
@reason_option
@by_option
@not_kept_option
@where_options
def pause(
    keys: tuple[str, ...],
    every: bool,
    controller: str | None,
    namespace: str | None,
    for_ms: int | None,
    reason: str,
    by: str,
    not_kept: bool,
    where: Where,
) -> int:
    """Let no turn begin: of each KEY (namespace/name, or rs/namespace/name), of a namespace, of a controller, or at
    all. Turns under way come to their end. Without any of these: print what is paused.

    Events go on to be queued, and nothing is lost: with `oarlock resume` the turns begin. A pause outlives a loss of
    Redis, because an ingestor writes it into the fleet's Lease; where none does so within 15 s, the pause is taken
    back and the exit code is 1. `oarlock explain`, `queue`, `top` and `epoch` tell it.
    """
    with looking(where) as views:
        scopes = scopes_of(views, keys, every, controller, namespace)
        if not scopes:
            lines = views.pauses()
            click.echo("\n".join(lines) if lines else "nothing is paused")
        for scope, concerned in scopes:
            for view in concerned:
                begun = begin(view, scope, note(by, reason), for_ms, not_kept)
                if begun is None:
                    return 1
                if scope.startswith("key "):
                    say_missing(views, view, *scope.removeprefix("key ").split(":", 1))
                now = "" if begun else " (it was paused already; the reason is the new one)"
                until = "" if for_ms is None else f" for {span(for_ms)}"
                mend = f"`oarlock resume {words_of(scope)}` ends it"
                click.echo(f"{views.of_shard(view)}{scope} is paused{until}{now}; {mend}")
    return 0


def begin(view: View, scope: str, told: str, for_ms: int | None, not_kept: bool) -> bool | None:
    """Begin a pause. Returns whether there was none; None, after a line on stderr, where no Lease came to have it, and
    so it was taken back. Raises InputProblem.
    """
    broker = broker_of(view)
    changed = broker.steer("pause", scope, told, for_ms=for_ms)
    if changed is None:
        raise InputProblem(f"{scope}: {SCOPES_MAX} scopes are paused, which is all there may be; resume some")
    if not_kept or is_kept(view):
        return changed
    if changed:
        broker.steer("resume", scope, f"{told.split(maxsplit=1)[0]} not kept")
    say([f"{scope} is not paused: {NOT_KEPT}; start an ingestor, or add --not-kept"])
    return None
