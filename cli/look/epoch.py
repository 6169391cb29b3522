"""`oarlock epoch`: the epoch of the Redis data, its phase, and the age of the cache."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from oarlock.broker.pauses import Pause
from oarlock.cli.look.view import View, Where, asked_pause_line, looking, paused_line, view_options
from oarlock.cli.tables import show, show_json


@click.command(epilog="\b\nExample:\n  oarlock epoch -o json | jq -r .phase")
@view_options
def epoch(where: Where, output: str) -> None:
    """Print the epoch (one life of the Redis data), its phase, and the revision of each resource's cache.

    \b
    JSON: epoch, phase (OPEN | DRAIN | HELD), paused (why the fleet is; held: its old name), pauses (that people
    asked for: [{scope, since_ms, by, reason, until_ms}]), intact (false: the
    server lost or changed its data), run, bootstrapped_on (minted_on: its old name), resources: [{resource, rv,
    age_ms, generation, objects}]; with --shards of more than one a list of these, each with its shard
    """
    with looking(where) as views:
        found = [(view, views.told(view, _facts(view))) for view in views]
    if output == "json":
        told = [facts for _, facts in found]
        show_json(told if views.shards > 1 else told[0])
        return
    for view, facts in found:
        lost = "; the server has lost or changed its data since: an ingestor will begin a new epoch"
        click.echo(f"{views.of_shard(view)}epoch {facts['epoch']}, {facts['phase']}{'' if facts['intact'] else lost}")
        if facts["paused"]:
            click.echo(views.of_shard(view) + paused_line(facts["paused"]))
        for pause in facts["pauses"]:
            click.echo(views.of_shard(view) + asked_pause_line(Pause(**pause), view.inspector.now_ms()))
    rows = [views.told(view, each) for view, facts in found for each in facts["resources"]]
    columns = {"resource": "RESOURCE", "objects": "OBJECTS", "rv": "AT REVISION", "age_ms": "CONFIRMED"}
    show(rows, views.columns(columns), "table")


def _facts(view: View) -> dict[str, Any]:
    seen, reason = view.seen, view.inspector.pause_reason()
    return {
        "epoch": seen.epoch,
        "phase": seen.phase,
        "paused": reason,
        "held": reason,
        "pauses": [each._asdict() for each in view.inspector.pauses()],
        "intact": seen.intact,
        "run": seen.run,
        "bootstrapped_on": seen.bootstrapped_on,
        "minted_on": seen.bootstrapped_on,
        "resources": [asdict(each) for each in view.inspector.resources()],
    }
