"""`oarlock audit`: what people did to the fleet."""

from __future__ import annotations

import click

from oarlock.cli.look.view import Where, looking, view_options
from oarlock.cli.tables import show, stamp


@click.command(epilog="\b\nExamples:\n  oarlock audit\n  oarlock audit --last 5 -o json")
@click.option("--last", type=click.IntRange(1, 1_000), default=50, show_default=True, help="So many acts.")
@view_options
def audit(last: int, where: Where, output: str) -> None:
    """What people did: pauses, their ends, requeues; who, when and why. The newest comes last. The last 1,000 are kept,
    as long as the data in Redis.

    \b
    JSON: [{at_ms, act}], at_ms is Redis's clock; with --shards of more than one also shard
    """
    with looking(where) as views:
        found = [
            views.told(view, {"at_ms": at_ms, "act": act})
            for view in views
            for at_ms, act in view.inspector.audit(last)
        ]
    found.sort(key=lambda each: each["at_ms"])
    rows = found if output == "json" else [{**each, "at": stamp(each["at_ms"])} for each in found]
    show(rows, views.columns({"at": "AT", "act": "ACT"}), output, empty="nobody did anything")
