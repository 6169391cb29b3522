"""`oarlock epoch`: the life of the Redis data, and how far the cache is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from workers.cli.tables import show, show_json, span
from workers.cli.view import held_line, looking, view_options


@click.command(epilog="\b\nExample:\n  oarlock epoch -o json | jq -r .phase")
@view_options
def epoch(redis_url: str | None, state_dir: Path | None, output: str) -> None:
    """The epoch (one life of the Redis data), its phase, and how far the cache of each resource is.

    \b
    JSON: epoch, phase (OPEN | DRAIN | HELD), held (why it is), intact (false: the server lost or changed its
    data), run, minted_on, resources: [{resource, rv, age_ms, generation, objects}]
    """
    with looking(redis_url, state_dir) as view:
        held = view.inspector.held()
        seen, resources = view.seen, [asdict(each) for each in view.inspector.resources()]
    facts = {
        "epoch": seen.epoch,
        "phase": seen.phase,
        "held": held,
        "intact": seen.intact,
        "run": seen.run,
        "minted_on": seen.minted_on,
        "resources": resources,
    }
    if output == "json":
        show_json(facts)
        return
    lost = "" if seen.intact else "; the server has lost or changed its data since: an ingestor will begin a new epoch"
    click.echo(f"epoch {seen.epoch}, {seen.phase}{lost}")
    if held:
        click.echo(held_line(held))
    rows = [{**each, "age": span(each["age_ms"])} for each in resources]
    show(rows, {"resource": "RESOURCE", "objects": "OBJECTS", "rv": "AT REVISION", "age": "CONFIRMED"}, "table")
