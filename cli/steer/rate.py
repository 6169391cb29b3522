"""`oarlock rate`: how many turns of a controller, or of a namespace, may begin in a second, from now on."""

from __future__ import annotations

import click

from oarlock.cli.look.view import Where, where_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.steer.numbers import Number, Told, set_number
from oarlock.cli.steer.scopes import by_option, not_kept_option, reason_option
from oarlock.cli.tables import a_second

RATE = Number(
    "rate",
    "rate",
    "limit",
    0.001,
    1e6,
    "turns a second from 0.001 to 1000000, such as 5",
    lambda rate: f"is limited to {a_second(rate, 'turn')}",
    "is limited no more",
    "was not limited",
    "is not limited",
)


@click.command(
    epilog="\b\nExamples:\n  oarlock rate replicaset 5 --reason 'the API server is slow'\n"
    "  oarlock rate -n shop 10            of one namespace, over all controllers\n  oarlock rate replicaset 0.5\n"
    "  oarlock rate replicaset none\n  oarlock rate -n shop none"
)
@click.argument("words", nargs=-1, metavar="[CONTROLLER] PER_S|none")
@namespace_option
@reason_option
@by_option
@not_kept_option
@where_options
def rate(words: tuple[str, ...], namespace: str | None, reason: str, by: str, not_kept: bool, where: Where) -> int:
    """Let at most PER_S turns of CONTROLLER begin in a second, in the whole fleet (of each shard), whatever rate it
    declares itself; `none` ends that. A second's worth may begin at once.

    With -n: of all keys of that namespace, over all controllers. Keys that have to wait stand in line, and in nobody's
    way; those that are queued already too. They begin one by one, at that pace.

    It is kept, shown and audited as a pause is: `oarlock pause` alone prints it.
    """
    return set_number(RATE, words, namespace, where, Told(by, reason, not_kept))
