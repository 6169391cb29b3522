"""`oarlock pause`: let no turn of some keys begin."""

from __future__ import annotations

import click

from oarlock.broker.pauses import SCOPES_MAX, note
from oarlock.cli.look.view import Where, looking, where_options
from oarlock.cli.problems import InputProblem, say
from oarlock.cli.steer.scopes import broker_of, by_option, is_kept, scope_options, scopes_of

REASON_MAX = 200
NOT_KEPT = "no ingestor has written it into the Lease within 15 s, so a loss of Redis would end it"


@click.command(
    epilog="\b\nExamples:\n  oarlock pause -n shop --reason 'quota is being raised'\n"
    "  oarlock pause rs/shop/cart --reason 'debugging'\n  oarlock pause -c daemonset\n  oarlock pause --all\n"
    "  oarlock pause                  which pauses there are"
)
@scope_options
@click.option("--reason", default="", help="Why, for those who ask.")
@by_option
@click.option("--not-kept", is_flag=True, help="Also where no ingestor writes it into the Lease.")
@where_options
def pause(
    keys: tuple[str, ...],
    every: bool,
    controller: str | None,
    namespace: str | None,
    reason: str,
    by: str,
    not_kept: bool,
    where: Where,
) -> int:
    """Let no turn begin: of each KEY (namespace/name, or rs/namespace/name), of a namespace, of a controller, or at
    all. Turns under way come to their end. Without any of these: print what is paused.

    Events go on to be queued, and nothing is lost: with `oarlock resume` the turns begin. A pause outlives a loss of
    Redis, because an ingestor writes it into the fleet's Lease; where none does so within 15 s, the pause is taken
    back and the exit code is 1. `oarlock explain`, `queue`, `status` and `epoch` tell it.
    """
    if len(reason) > REASON_MAX:
        raise InputProblem(f"--reason has {len(reason)} characters; {REASON_MAX} are kept")
    with looking(where) as views:
        scopes = scopes_of(views, keys, every, controller, namespace)
        if not scopes:
            lines = views.pauses()
            click.echo("\n".join(lines) if lines else "nothing is paused")
        for scope, concerned in scopes:
            for view in concerned:
                broker = broker_of(view)
                changed = broker.steer("pause", scope, note(by, reason))
                if changed is None:
                    raise InputProblem(
                        f"{scope}: {SCOPES_MAX} scopes are paused, which is all there may be; resume some"
                    )
                if not not_kept and not is_kept(view):
                    if changed:
                        broker.steer("resume", scope, note(by, "not kept"))
                    say([f"{scope} is not paused: {NOT_KEPT}; start an ingestor, or pause with --not-kept"])
                    return 1
                now = "" if changed else " (it was paused already; the reason is the new one)"
                click.echo(f"{views.of_shard(view)}{scope} is paused{now}; `oarlock resume` ends it")
    return 0
