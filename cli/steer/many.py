"""Acts on many keys: counted first, asked for, and queued no faster than the workers take them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence

import click

from oarlock.cli.look.view import View
from oarlock.cli.problems import InputProblem, NotDone
from oarlock.cli.steer.selection import PAGE, Picked
from oarlock.cli.tables import listed, show_json

MANY = 20
"""More keys than this are asked for."""
BACKLOG = 1_000
"""Queued keys of a queue beyond which no more are added: an event that comes meanwhile waits for so many at most."""
STUCK_S, LOOK_S = 30.0, 0.1
"""How long the queue may not get shorter, and how often is looked."""


def count_of(picked: Iterable[Picked]) -> int:
    return sum(len(each.keys) for each in picked)


def by_queue(picked: Iterable[Picked]) -> dict[str, list[str]]:
    """Queue -> its keys, of all shards."""
    found: dict[str, list[str]] = {}
    for each in picked:
        found.setdefault(each.queue, []).extend(each.keys)
    return found


def told(picked: Iterable[Picked]) -> str:
    """``3 of replicaset (shop/a, shop/b, shop/c), 1 of daemonset (shop/d)``."""
    return ", ".join(f"{len(keys)} of {queue} ({listed(keys)})" for queue, keys in by_queue(picked).items())


def tell_picked(picked: Sequence[Picked], added: int, preview: bool, output: str) -> None:
    """Print how many keys were picked, and how many of them entered the queue."""
    count, of = count_of(picked), by_queue(picked)
    if output == "json":
        facts = {"selected": count, "queued": added, "queues": {queue: len(keys) for queue, keys in of.items()}}
        show_json({**facts, "keys": of} if preview else facts)
    elif not count:
        click.echo("no key is picked")
    else:
        rest = f"; {count - added} are in work, or wait already" if count > added else ""
        click.echo(f"{told(picked)}: {'would be queued' if preview else f'{added} queued{rest}'}")


def ask(verb: str, picked: Sequence[Picked], yes: bool) -> None:
    """Let the user agree to what is many. Raises InputProblem where nobody can, click.Abort where he does not."""
    count = count_of(picked)
    if yes or count <= MANY:
        return
    if not _may_answer():
        raise InputProblem(f"{count} keys would be {verb}: add --yes, or see which with --preview")
    click.confirm(f"{told(picked)}: {verb}?", abort=True, err=True)


def _may_answer() -> bool:
    return sys.stdin.isatty()


def queue_all(picked: Sequence[Picked], act: Callable[[View, str, list[str]], int]) -> int:
    """Call ``act`` with pages of keys, while the queue has room. Returns the sum of what it returned, how many entered
    the queue. Raises NotDone where the workers take none: what was queued stays so.
    """
    added = done = 0
    for view, queue, keys in picked:
        for start in range(0, len(keys), PAGE):
            if not _has_room(view, queue):
                raise NotDone(
                    f"{queue}: {BACKLOG} keys are queued and none is taken (see `oarlock pause` and `oarlock top`);"
                    f" {done} of {count_of(picked)} are done"
                )
            page = keys[start : start + PAGE]
            added += act(view, queue, page)
            done += len(page)
    return added


def _has_room(view: View, queue: str) -> bool:
    """Wait for it. False: the queue does not get shorter."""
    least = queued = view.inspector.queue(queue).queued
    until_s = time.monotonic() + STUCK_S
    while queued >= BACKLOG:
        if queued < least:
            least, until_s = queued, time.monotonic() + STUCK_S
        if time.monotonic() > until_s:
            return False
        time.sleep(LOOK_S)
        queued = view.inspector.queue(queue).queued
    return True
