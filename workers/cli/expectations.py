"""`oarlock expectations`: writes announced and not yet seen in the cache."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from broker.inspect import RecordView
from broker.values import BACK_OFF
from controllers.daemonset.plan import BackOff
from controllers.registry import QUEUES, resource_of
from workers.cli.kind_prefix import without_kind
from workers.cli.options import namespace_option
from workers.cli.tables import show, span
from workers.cli.view import View, controller_option, is_namespaced, key_of, looking, queues_of, view_options
from workers.shards import has_key


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
    shards: int | None,
    output: str,
) -> None:
    """Per KEY (namespace/name, or rs/namespace/name; default: all): writes announced whose answer is not known, deletes
    not yet seen, names that are held or blocked, nodes whose failed pods are left alone for a while ("backoff"), and
    which revision the cache has to pass ("needs").

    \b
    JSON: [{queue, key, owner_uid, ttl_ms, needs, entries: [{what, state, hint, left_ms}]}]; what is "create pods/NAME",
    "delete pods/NAME", "hold pods/NAME", "blocked pods/NAME" or "backoff NODE"; hint: what was said beside a create,
    such as node=n1; left_ms: of a back-off, else null; with --shards of more than one also shard
    """
    if key is not None:
        key, controller = without_kind(key, controller, namespace)
        key_of(resource_of(controller or QUEUES[0]), key, namespace)  # before anything is asked of anybody
    with looking(redis_url, state_dir, shards) as views:
        queues = queues_of(views, controller)
        told = [
            views.told(view, each) for view in views for each in _records(view, views.shards, queues, key, namespace)
        ]
    found = sorted(told, key=lambda each: (each["queue"], each["key"]))
    rows = [
        {**each, **entry, "state": _told(entry), "ttl": span(each["ttl_ms"])}
        for each in found
        for entry in each["entries"]
        or [{"what": "(only read its own writes)", "state": each["needs"], "left_ms": None}]
    ]
    columns = {"queue": "CONTROLLER", "key": "KEY", "what": "WHAT", "state": "STATE", "ttl": "TTL"}
    columns = dict(views.columns(columns))
    show(found if output == "json" else rows, columns, output, empty="nothing is expected: all writes have been seen")


def _records(
    view: View, shards: int, queues: Sequence[str], text: str | None, namespace: str | None
) -> Iterator[dict[str, Any]]:
    now_ms = time.time_ns() // 1_000_000
    for queue in queues:
        if text is not None:
            if not is_namespaced(resource_of(queue)) and ("/" in text or namespace):
                continue
            key = key_of(resource_of(queue), text, namespace)
            if not has_key(key, view.shard, shards):
                continue
            about = view.inspector.key(queue, key)
            if about.record is not None or about.needs:
                yield _row(about.record or RecordView(queue, about.key, {}, -1), about.needs, now_ms)
            continue
        for record in view.inspector.records(queue):
            if not namespace or record.key.startswith(f"{namespace}/"):
                yield _row(record, view.inspector.key(queue, record.key).needs, now_ms)


def _row(record: RecordView, needs: str, now_ms: int) -> dict[str, Any]:
    return {
        "queue": record.queue,
        "key": record.key,
        "owner_uid": record.fields.get("owner", ""),
        "ttl_ms": record.ttl_ms if record.ttl_ms >= 0 else None,
        "needs": needs,
        "entries": _entries(record, now_ms),
    }


def _only_read(needs: str) -> dict[str, Any]:
    return {"what": "(only read its own writes)", "state": needs, "left_ms": None}


def _told(entry: dict[str, Any]) -> str:
    """The state for people: of a back-off how long it lasts."""
    back_off = BackOff.parse(entry["state"]) if entry["left_ms"] is not None else None
    if back_off is None:
        return str(entry["state"])
    left = f"for another {span(entry['left_ms'])}" if entry["left_ms"] else "over"
    return f"{left}, {span(back_off.delay_ms)} in all, generation {back_off.generation}"


def _entries(record: RecordView, now_ms: int) -> list[dict[str, Any]]:
    read = record.record
    hints = read.hints if read is not None else {}
    entries = []
    for name, text in sorted(record.fields.items()):
        verb, _, target = name.partition(" ")
        if name == "owner":
            continue
        back_off = BackOff.parse(text) if verb == BACK_OFF else None
        left_ms = max(0, back_off.at_ms + back_off.delay_ms - now_ms) if back_off is not None else None
        hint = hints.get(target, "") if verb == "create" else ""
        entries.append({"what": name, "state": text, "hint": hint, "left_ms": left_ms})
    return entries
