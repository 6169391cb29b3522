"""`oarlock weight`: how large the share of a namespace or of a controller is, from now on."""

from __future__ import annotations

import click

from oarlock.broker.pauses import WEIGHT_MAX, WEIGHT_MIN
from oarlock.cli.look.view import Where, where_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.steer.numbers import Number, Told, set_number
from oarlock.cli.steer.scopes import by_option, not_kept_option, reason_option

WEIGHT = Number(
    "weight",
    "weight queue",
    "set",
    WEIGHT_MIN,
    WEIGHT_MAX,
    f"a number from {WEIGHT_MIN:g} to {WEIGHT_MAX:g}, such as 4",
    lambda weight: f"has weight {weight:g}",
    "has weight 1 again",
    "had no weight of its own",
    "has no weight",
)


@click.command(
    epilog="\b\nExamples:\n  oarlock weight -n shop 4 --reason 'it pays for it'\n"
    "  oarlock weight -n batch 0.2            a fifth of what another namespace gets\n"
    "  oarlock weight deployment 2            of one controller\n  oarlock weight -n shop none"
)
@click.argument("words", nargs=-1, metavar="[CONTROLLER] WEIGHT|none")
@namespace_option
@reason_option
@by_option
@not_kept_option
@where_options
def weight(words: tuple[str, ...], namespace: str | None, reason: str, by: str, not_kept: bool, where: Where) -> int:
    """Let WEIGHT keys of a namespace be taken for one of another, while both have keys that wait; `none` ends that.
    Where nobody waits, it changes nothing. Keys that wait already keep their places.

    With CONTROLLER: WEIGHT keys of that controller for one of each other controller.

    It is kept, shown and audited as a pause is: `oarlock pause` alone prints it.
    """
    return set_number(WEIGHT, words, namespace, where, Told(by, reason, not_kept))
