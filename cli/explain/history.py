"""`oarlock history`: the last turns of a key."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

import click

from oarlock.broker.looks.history import PastTurn, Triggers
from oarlock.cli.explain.history_sentences import did_text, triggers_text, turn_facts
from oarlock.cli.look.keys import AskedKey
from oarlock.cli.look.view import View, Views, Where, controller_option, looking, view_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.tables import show, span
from oarlock.workers.process.log_line import printable

LOOK_S = 1.0
"""How often --watch looks."""
COLUMNS = {
    "ended": "ENDED",
    "verdict": "OUTCOME",
    "turns": "TURNS",
    "waited_ms": "WAITED",
    "took_ms": "TOOK",
    "holder": "WORKER",
    "did": "DID",
    "why": "BECAUSE",
}

Task = tuple[View, str, str]


@click.command(
    epilog="\b\nExamples:\n  oarlock history shop/cart\n  oarlock history deployment/shop/web -w\n"
    "  oarlock history rs/shop/cart -o json | jq -r '.[] | select(.verdict == \"retry\") | .did'"
)
@click.argument("key")
@controller_option("Whose key. Default: of the kind that has an object of that name in the cache.")
@namespace_option
@click.option("--watch", "-w", is_flag=True, help="Go on: a line for each turn that ends, until Ctrl-C.")
@view_options
def history(key: str, controller: str | None, namespace: str | None, watch: bool, where: Where, output: str) -> None:
    """The last turns of KEY (namespace/name, or rs/namespace/name; of a node its name), the newest last: when each
    ended and how, how long it was queued and took, on which worker, what it did, and what had queued it.

    OUTCOME is ok, retry (it failed, and is tried again), gone (the object is) or lost (its worker was). Turns that
    ended alike one after another are a line, which says when the last of them ended, and the rest of one of the last
    ten, or of the last ten seconds. A key remembers some twenty turns (1,000 bytes of text) for a day. When room is
    short, turns that wrote nothing but a status are told together.

    \b
    JSON: [{queue, key, verdict, did, turns, ended_ms, waited_ms, took_ms, holder, triggers {events, first}}]; with -w
    such an object a line. ended_ms is Redis's clock. With --shards of more than one also shard
    """
    asked = AskedKey.parse(key, controller, namespace)
    with looking(where) as views:
        tasks = [(view, queue, name) for queue, name in asked.tasks(views) for view in views.having(name)]
        found = [_rows(views, task) for task in tasks]
        rows = sorted(chain(*map(reversed, found)), key=lambda row: row["ended_ms"])
        if watch and output == "json":
            _print_lines(rows)
        else:
            _print_table(views, rows, output, len({queue for _, queue, _ in tasks}) > 1)
        for row in _following(views, tasks, found) if watch else ():
            _print_lines([row]) if output == "json" else click.echo(_line(row))


def _rows(views: Views, task: Task) -> list[dict[str, Any]]:
    view, queue, key = task
    found = view.inspector.key(queue, key)
    return [
        views.told(view, {"queue": queue, "key": key, "now_ms": found.now_ms, **facts})
        for facts in turn_facts(found.turns)
    ]


def _following(views: Views, tasks: list[Task], known: list[list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Each turn that ends from now on, once. ``known``: of each task, what was shown of it."""
    while True:
        time.sleep(LOOK_S)
        for i, task in enumerate(tasks):
            rows, shown = _rows(views, task), [_told(row) for row in known[i]]
            yield from (row for row in reversed(rows) if _told(row) not in shown)
            known[i] = rows


def _print_table(views: Views, rows: list[dict[str, Any]], output: str, several: bool) -> None:
    if output == "json":
        show([_told(row) for row in rows], {}, output)
        return
    told = [
        {
            **row,
            "ended": f"{span(max(0, row['now_ms'] - row['ended_ms']))} ago",
            "did": did_text(row["did"]),
            "why": _why(row),
        }
        for row in rows
    ]
    columns = {**({"queue": "CONTROLLER"} if several else {}), **COLUMNS}
    show(told, views.columns(columns), output, empty="no turn of this key is remembered")


def _print_lines(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        click.echo(json.dumps(_told(row)))


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "now_ms"}


def _line(row: dict[str, Any]) -> str:
    turn = PastTurn(**{name: row[name] for name in PastTurn._fields})
    many = f" x{turn.turns}" if turn.turns > 1 else ""
    times = f"waited {span(turn.waited_ms)}, took {span(turn.took_ms)} on {turn.holder}"
    return printable(
        f"{row['queue']} {row['key']} {turn.verdict}{many}: {did_text(turn.did)} ({times}), because {_why(row)}"
    )


def _why(row: dict[str, Any]) -> str:
    return triggers_text(Triggers(**row["triggers"]))
