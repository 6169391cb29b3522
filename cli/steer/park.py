"""`oarlock park`: put keys aside for a while."""

from __future__ import annotations

import click

from oarlock.broker.pauses import note
from oarlock.cli.look.keys import AskedKey
from oarlock.cli.look.view import Where, controller_option, looking, where_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.steer.pause import begin
from oarlock.cli.steer.scopes import broker_of, by_option, for_option, not_kept_option, reason_option, say_missing
from oarlock.cli.tables import span


@click.command(
    epilog="\b\nExamples:\n  oarlock park shop/cart --reason 'its webhook is being repaired'\n"
    "  oarlock park rs/shop/cart ds/kube-system/proxy --for 1d\n  oarlock replay shop/cart     queue it again, now"
)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@controller_option("Whose keys. Default: of the kind that has an object of that name in the cache.")
@for_option("1h.", default="1h")
@reason_option
@by_option
@not_kept_option
@namespace_option
@where_options
def park(
    keys: tuple[str, ...],
    controller: str | None,
    for_ms: int,
    reason: str,
    by: str,
    not_kept: bool,
    namespace: str | None,
    where: Where,
) -> int:
    """Put each KEY (namespace/name, or rs/namespace/name) aside: no turn of it begins for an hour, or for so long. A
    turn under way comes to its end. After that time, or after `oarlock replay`, the key is queued.

    It is a pause of the key with an end (`oarlock pause KEY --for 1h` is the same), so it outlives a loss of Redis; and
    lists show the key as parked, as one that crashes its workers.
    """
    asked = [AskedKey.parse(key, controller, namespace) for key in keys]
    with looking(where) as views:
        for queue, key in [task for each in asked for task in each.tasks(views)]:
            for view in views.having(key):
                begun = begin(view, f"key {queue}:{key}", note(by, reason), for_ms, not_kept)
                if begun is None:
                    return 1
                say_missing(views, view, queue, key)
                # So that the key has a look when the pause ends, though nothing asks for one meanwhile.
                broker_of(view).add(queue, [key])
                again = "" if begun else " from now on"
                mend = f"`oarlock replay {key} -c {queue}` ends that"
                click.echo(f"{key} of {queue} is parked for {span(for_ms)}{again}; {mend}")
    return 0
