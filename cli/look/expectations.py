"""`oarlock expectations`: writes announced and not yet seen in the cache."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from oarlock.broker.looks.views import ExpectationsView
from oarlock.cli.explain.expectation_entries import EntryView, entries_of, said_of, state_told
from oarlock.cli.look.keys import AskedKey
from oarlock.cli.look.view import View, Where, controller_option, looking, queues_of, view_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.tables import show


@click.command(epilog="\b\nExamples:\n  oarlock expectations\n  oarlock expectations shop/cart -o json")
@click.argument("key", required=False)
@controller_option()
@namespace_option
@view_options
def expectations(key: str | None, controller: str | None, namespace: str | None, where: Where, output: str) -> None:
    """Per KEY (namespace/name, or rs/namespace/name; default: all): writes announced whose answer is not known, deletes
    not yet seen, names that are reserved, passed over, resting or blocked, nodes whose failed pods are left alone for a
    while ("backoff"), the last answer that proved nothing ("said"), and which revision the cache has to pass ("needs").

    \b
    JSON: [{queue, key, owner_uid, ttl_ms, needs, said, entries: [{what, state, hint, left_ms, age_ms, sent_ago_ms,
    tries}]}]; what is "create", "delete", "reserved", "passed", "rest" or "blocked" and "pods/NAME", or "backoff NODE";
    state: as stored (docs/redis-keys.md); hint: what was said beside a create, such as node=n1; age_ms, sent_ago_ms,
    tries: of a write without an answer, since it was sent first and last, and how often; left_ms: how long that may
    still land, a name is not used, or a failed pod is left alone: 0 when that is over, null where no time is set;
    with --shards of more than one also shard
    """
    asked = AskedKey.parse(key, controller, namespace) if key is not None else None
    with looking(where) as views:
        if asked is not None:
            queues = filter(asked.fits, asked.queues or queues_of(views, None))
            tasks = [(queue, asked.of(queue)) for queue in queues]
            views_of = [(view, queue, key) for queue, key in tasks for view in views.having(key)]
            told = [views.told(view, row) for view, queue, key in views_of for row in _of_key(view, queue, key)]
        else:
            told = [
                views.told(view, _row(each, view.inspector.key(queue, each.key).min_rv))
                for queue in queues_of(views, controller)
                for view in views
                for each in view.inspector.expectations(queue)
                if not namespace or each.key.startswith(f"{namespace}/")
            ]
    found = sorted(told, key=lambda each: (each["queue"], each["key"]))
    rows = [row for each in found for row in _lines(each)]
    columns = {"queue": "CONTROLLER", "key": "KEY", "what": "WHAT", "state": "STATE", "ttl_ms": "TTL"}
    told = found if output == "json" else rows
    show(told, views.columns(columns), output, empty="nothing is expected: all writes have been seen")


def _of_key(view: View, queue: str, key: str) -> Iterator[dict[str, Any]]:
    """The row of a key, if anything is expected of it."""
    about = view.inspector.key(queue, key)
    if about.expectations is not None or about.min_rv:
        yield _row(about.expectations or ExpectationsView(queue, about.key, {}, -1), about.min_rv)


def _row(found: ExpectationsView, needs: str) -> dict[str, Any]:
    return {
        "queue": found.queue,
        "key": found.key,
        "owner_uid": found.fields.get("owner", ""),
        "ttl_ms": found.ttl_ms if found.ttl_ms >= 0 else None,
        "needs": needs,
        "said": said_of(found),
        "entries": [asdict(each) for each in entries_of(found, time.time_ns() // 1_000_000)],
    }


def _lines(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of a row in the table: one for each entry, and one for the last answer."""
    lines = [{"what": each["what"], "state": state_told(EntryView(**each))} for each in row["entries"]]
    if row["said"]:
        lines.append({"what": "said", "state": row["said"]})
    if not lines:
        lines.append({"what": "(only read its own writes)", "state": row["needs"]})
    return [{**row, **line} for line in lines]
