"""A number that people set for a controller or a namespace: the rate of its turns, its weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import click

from oarlock.broker.pauses import SCOPES_MAX, note
from oarlock.cli.look.view import QueueName, Where, looking
from oarlock.cli.problems import InputProblem, say
from oarlock.cli.steer.pause import NOT_KEPT
from oarlock.cli.steer.scopes import broker_of, is_kept, namespace_scope


class Number(NamedTuple):
    """What can be set. ``word``: the command, and the beginning of its scope; ``of_controller``: a controller's;
    ``act``: as the audit names it; ``what``: the range, for whoever gave a wrong one; ``is_set``: the end of the line
    that says so, from the number; ``ended``, ``was_none``, ``is_not``: the same without a number.
    """

    word: str
    of_controller: str
    act: str
    least: float
    most: float
    what: str
    is_set: Callable[[float], str]
    ended: str
    was_none: str
    is_not: str

    def parse(self, text: str) -> str:
        """As it is stored; "" for none. Raises InputProblem."""
        if text == "none":
            return ""
        try:
            found = float(text)
        except ValueError:
            found = 0.0
        if not self.least <= found <= self.most:
            raise InputProblem(f"{text!r} is no {self.word}; write {self.what}, or none")
        return f"{found:.10f}".rstrip("0").rstrip(".")


class Told(NamedTuple):
    """Who sets it, why, and whether also where no Lease comes to have it."""

    by: str
    reason: str
    not_kept: bool


def set_number(number: Number, words: tuple[str, ...], namespace: str | None, where: Where, told: Told) -> int:
    """``words``: the number, and before it the controller if no namespace is given. Returns the exit code."""
    if len(words) != (1 if namespace else 2):
        raise InputProblem(
            f"{' '.join(words) or 'nothing'!r}: write `oarlock {number.word} CONTROLLER NUMBER`"
            f" or `oarlock {number.word} -n NAMESPACE NUMBER`"
        )
    whose = namespace_scope(namespace) if namespace else str(QueueName().convert(words[0], None, None))
    scope = f"{number.word} {whose}" if namespace else f"{number.of_controller} {whose}"
    text = number.parse(words[-1])
    with looking(where) as views:
        for view in views.having(f"{namespace}/") if namespace else views:
            broker = broker_of(view)
            if not text:
                was = broker.steer("resume", scope, note(told.by, told.reason))
                click.echo(f"{views.of_shard(view)}{whose} {number.ended if was else number.was_none}")
                continue
            changed = broker.steer(number.act, scope, note(told.by, f"{number.word}={text} {told.reason}"))
            if changed is None:
                raise InputProblem(
                    f"{scope}: {SCOPES_MAX} pauses, rates and weights are there, which is all there may be"
                )
            if not told.not_kept and not is_kept(view):
                if changed:
                    broker.steer("resume", scope, note(told.by, "not kept"))
                say([f"{whose} {number.is_not}: {NOT_KEPT}; start an ingestor, or add --not-kept"])
                return 1
            click.echo(f"{views.of_shard(view)}{whose} {number.is_set(float(text))}")
    return 0
