"""`oarlock locks`: who works on which key."""

from __future__ import annotations

from dataclasses import asdict

import click

from oarlock.cli.explain.history_sentences import queued_facts
from oarlock.cli.look.view import Where, controller_option, looking, view_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.tables import show


@click.command(epilog="\b\nExamples:\n  oarlock locks\n  oarlock locks -o json | jq -r '.[].holder' | sort | uniq -c")
@controller_option()
@namespace_option
@view_options
def locks(controller: str | None, namespace: str | None, where: Where, output: str) -> None:
    """Print every lock: its holder (the name of the RQ worker), its age, and when it ends unless renewed.

    \b
    JSON: [{queue, key, holder, nonce, age_ms, remaining_ms, why}], why as in `oarlock explain`; with
    --shards of more than one also shard
    """
    with looking(where) as views:
        found = [
            views.told(view, {**asdict(each), "why": queued_facts(each.why)})
            for view in views
            for each in view.inspector.locks()
            if (not controller or each.queue == controller) and (not namespace or each.key.startswith(f"{namespace}/"))
        ]
    found.sort(key=lambda each: each["remaining_ms"])
    columns = {"queue": "CONTROLLER", "key": "KEY", "holder": "HOLDER", "age_ms": "HELD FOR", "remaining_ms": "ENDS IN"}
    show(found, views.columns(columns), output, empty="no key is locked")
