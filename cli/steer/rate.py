"""`oarlock rate`: how many turns of a controller may begin in a second, from now on."""

from __future__ import annotations

import click

from oarlock.broker.pauses import SCOPES_MAX, note
from oarlock.cli.look.view import QueueName, Where, looking, where_options
from oarlock.cli.problems import InputProblem, say
from oarlock.cli.steer.pause import NOT_KEPT
from oarlock.cli.steer.scopes import broker_of, by_option, is_kept, not_kept_option, reason_option
from oarlock.cli.tables import a_second


@click.command(
    epilog="\b\nExamples:\n  oarlock rate replicaset 5 --reason 'the API server is slow'\n"
    "  oarlock rate replicaset 0.5\n  oarlock rate replicaset none"
)
@click.argument("controller", type=QueueName())
@click.argument("per_s", metavar="PER_S|none")
@reason_option
@by_option
@not_kept_option
@where_options
def rate(controller: str, per_s: str, reason: str, by: str, not_kept: bool, where: Where) -> int:
    """Let at most PER_S turns of CONTROLLER begin in a second, in the whole fleet (of each shard), whatever rate it
    declares itself; `none` ends that. A second's worth may begin at once.

    It is kept, shown and audited as a pause is: `oarlock pause` alone prints it.
    """
    scope, limit = f"rate {controller}", "" if per_s == "none" else f"{_number(per_s):g}"
    with looking(where) as views:
        for view in views:
            broker = broker_of(view)
            if not limit:
                was = broker.steer("resume", scope, note(by, reason))
                click.echo(f"{views.of_shard(view)}{controller} {'is limited no more' if was else 'was not limited'}")
                continue
            changed = broker.steer("limit", scope, note(by, f"rate={limit} {reason}"))
            if changed is None:
                raise InputProblem(f"{scope}: {SCOPES_MAX} pauses and rates are there, which is all there may be")
            if not not_kept and not is_kept(view):
                if changed:
                    broker.steer("resume", scope, note(by, "not kept"))
                say([f"{controller} is not limited: {NOT_KEPT}; start an ingestor, or add --not-kept"])
                return 1
            click.echo(f"{views.of_shard(view)}{controller} is limited to {a_second(float(limit), 'turn')}")
    return 0


def _number(text: str) -> float:
    """Raises InputProblem."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.001 <= found <= 1e6:
        raise InputProblem(f"{text!r} is no rate; write turns a second from 0.001 to 1000000, such as 5, or none")
    return found
