"""`oarlock expectations`: writes announced and not yet seen in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from broker.inspect import RecordView
from workers.cli.options import namespace_option
from workers.cli.tables import show, span
from workers.cli.view import View, controller_option, full_key, looking, queues_of, view_options


@click.command(epilog="\b\nExamples:\n  oarlock expectations\n  oarlock expectations shop/cart -o json")
@click.argument("key", required=False)
@controller_option
@namespace_option
@view_options
def expectations(
    key: str | None,
    controller: str | None,
    namespace: str | None,
    redis_url: str | None,
    state_dir: Path | None,
    output: str,
) -> None:
    """Per KEY (namespace/name; default: all): writes announced whose answer is not known, deletes not yet seen, names
    that are held or blocked, and which revision the cache has to pass ("needs").

    \b
    JSON: [{queue, key, owner_uid, ttl_ms, needs, entries: [{what, state}]}]; what is "create pods/NAME",
    "delete pods/NAME", "hold pods/NAME" or "blocked pods/NAME"
    """
    wanted = full_key(key, namespace) if key else None
    with looking(redis_url, state_dir) as view:
        found = sorted(_records(view, wanted, controller, namespace), key=lambda each: (each["queue"], each["key"]))
    rows = [
        {**each, **entry, "ttl": span(each["ttl_ms"])}
        for each in found
        for entry in each["entries"] or [{"what": "(only read its own writes)", "state": each["needs"]}]
    ]
    columns = {"queue": "CONTROLLER", "key": "KEY", "what": "WHAT", "state": "STATE", "ttl": "TTL"}
    show(found if output == "json" else rows, columns, output, empty="nothing is expected: all writes have been seen")


def _records(view: View, key: str | None, controller: str | None, namespace: str | None) -> Iterator[dict[str, Any]]:
    for queue in queues_of(view, controller):
        if key is not None:
            about = view.inspector.key(queue, key)
            if about.record is not None or about.needs:
                yield _row(about.record or RecordView(queue, key, {}, -1), about.needs)
            continue
        for record in view.inspector.records(queue):
            if not namespace or record.key.startswith(f"{namespace}/"):
                yield _row(record, view.inspector.key(queue, record.key).needs)


def _row(record: RecordView, needs: str) -> dict[str, Any]:
    entries = [{"what": name, "state": text} for name, text in sorted(record.fields.items()) if name != "owner"]
    return {
        "queue": record.queue,
        "key": record.key,
        "owner_uid": record.fields.get("owner", ""),
        "ttl_ms": record.ttl_ms if record.ttl_ms >= 0 else None,
        "needs": needs,
        "entries": entries,
    }
