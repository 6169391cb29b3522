"""`oarlock drain`: let a worker leave, or all workers of a supervisor."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import click

from oarlock.broker.looks.inspect import raw_answers
from oarlock.broker.pauses import note
from oarlock.cli.look.view import View, Views, Where, looking, view_options
from oarlock.cli.problems import InputProblem, NotDone
from oarlock.cli.steer.scopes import Span, broker_of, by_option, reason_option
from oarlock.cli.tables import Row, listed, show, span

LOOK_S = 0.2
_MS = re.compile(r"[0-9]{1,15}")


@click.command(
    epilog="\b\nExamples:\n  oarlock drain                          which workers there are\n"
    "  oarlock drain w-host-1-4f9a2c01-3 --wait\n  oarlock drain host-1-4f9a2c01 --wait 5m --reason 'a new kernel'\n"
    "  oarlock undrain host-1-4f9a2c01"
)
@click.argument("name", required=False, metavar="[WORKER|SUPERVISOR]")
@click.option(
    "--wait",
    "wait_ms",
    type=Span(),
    is_flag=False,
    flag_value="10m",
    metavar="[SPAN]",
    help="Until they have left, at most so long; alone: 10m.",
)
@reason_option
@by_option
@view_options
def drain(name: str | None, wait_ms: int | None, reason: str, by: str, where: Where, output: str) -> None:
    """Let a worker end its batch, take no more keys and leave; its supervisor starts another in its place. Of a
    supervisor: let all its workers leave, and start no others until `oarlock undrain` or until the supervisor itself is
    restarted. Without a name: print the workers.

    No key is lost: other workers take what is queued. The workers learn it from Redis with their next claim. A
    supervisor with no workers goes on running, so that nothing that watches it starts it again. A drain does not
    outlive a loss of Redis. With --wait the exit code is 1 if some are still there after that time.

    \b
    JSON: [{worker, supervisor, age_ms, drained}], of all workers or of those that are to leave; a supervisor that is
    drained and has no worker has worker ""; with --shards of more than one, each has shard
    """
    with looking(where) as views:
        if name is None:
            _show(views, _rows(views), output)
            return
        concerned = [(view, leaving) for view in views if (leaving := _drain(view, name, note(by, reason))) is not None]
        if not concerned:
            raise InputProblem(unknown(views, name))
        if output == "json":
            _show(views, [row for row in _rows(views) if name in (row["worker"], row["supervisor"])], output)
        for _, leaving in concerned if output != "json" else ():
            click.echo(f"{len(leaving)} are to leave: {listed(leaving)}" if leaving else f"{name} has no worker")
        if wait_ms is not None:
            _wait(concerned, wait_ms)
            if output != "json":
                click.echo(f"{name} is drained")


def _drain(view: View, name: str, told: str) -> list[str] | None:
    return broker_of(view).drain("drain", name, told)


def unknown(views: Views, name: str) -> str:
    """Says that there is no such worker or supervisor, and which there are."""
    rows = _rows(views)
    names = sorted({row["supervisor"] for row in rows}) + sorted(row["worker"] for row in rows if row["worker"])
    return f"{name}: no such worker or supervisor is at work; there are: {listed(names) if names else 'none'}"


def _wait(concerned: Sequence[tuple[View, list[str]]], wait_ms: int) -> None:
    """Raises NotDone."""
    until_s = time.monotonic() + wait_ms / 1_000
    while left := [each for view, leaving in concerned for each in leaving if each in _holders(view)]:
        if time.monotonic() > until_s:
            raise NotDone(f"after {span(wait_ms)} {len(left)} are still at work, and leave later: {listed(left)}")
        time.sleep(LOOK_S)


def _holders(view: View) -> dict[str, str]:
    """Worker -> what Redis says of it."""
    (flat,) = raw_answers(view.client, [("HGETALL", view.inspector.keys.of("holders"))])
    texts = [each.decode(errors="replace") for each in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _rows(views: Views) -> list[Row]:
    rows: list[Row] = []
    for view in views:
        now_ms = view.inspector.now_ms()
        (drained,) = raw_answers(view.client, [("ZRANGE", view.inspector.keys.of("drains"), 0, -1)])
        idle = {each.decode(errors="replace") for each in drained}
        for worker, text in sorted(_holders(view).items()):
            words = dict(word.split("=", 1) for word in text.split() if "=" in word)
            supervisor = words.get("supervisor", "")
            idle.discard(supervisor)
            since_ms = words.get("since_ms", "")
            age_ms = max(0, now_ms - int(since_ms)) if _MS.fullmatch(since_ms) else None
            leaves = text.endswith(" drain")
            facts = {"worker": worker, "supervisor": supervisor, "age_ms": age_ms, "drained": leaves}
            rows.append(views.told(view, facts))
        rows += [
            views.told(view, {"worker": "", "supervisor": each, "age_ms": None, "drained": True})
            for each in sorted(idle)
        ]
    return rows


def _show(views: Views, rows: Sequence[Row], output: str) -> None:
    columns = {"worker": "WORKER", "supervisor": "SUPERVISOR", "age_ms": "AGE", "drained": "DRAINED"}
    show(rows, views.columns(columns), output, empty="no worker is registered")
