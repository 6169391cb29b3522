"""`oarlock epoch`: the epoch of the Redis data, its phase, the age of the cache, and what the ingestors hear."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from oarlock.broker.looks.hearing import Hearing
from oarlock.broker.pauses import Pause
from oarlock.cli.look.budget import budget_facts, budget_line
from oarlock.cli.look.hearings import hearing_lines
from oarlock.cli.look.view import View, Where, asked_pause_line, looking, paused_line, view_options
from oarlock.cli.tables import show, show_json, span
from oarlock.workers.process.log_line import printable


@click.command(epilog="\b\nExample:\n  oarlock epoch -o json | jq -r .phase")
@view_options
def epoch(where: Where, output: str) -> None:
    """Print the epoch (one life of the Redis data), its phase, the revision of each resource's cache, and what each
    ingestor hears of the API.

    \b
    JSON: epoch, phase (OPEN | DRAIN | HELD), paused (why the fleet is; held: its old name), pauses (that people
    asked for: [{scope, since_ms, by, reason, until_ms}]), intact (false: the
    server lost or changed its data), run, bootstrapped_on (minted_on: its old name), resources: [{resource, rv,
    age_ms, generation, objects}], ingestors: [{ingestor, age_ms (since it said so), deaf (the resources that it hears
    nothing of), silent_ms (resource: for how long nothing was heard of it)}], budget (null, or {qps, qps_most, cut_ms
    (since the last cut), cut_why (429 | slow), wait_ms, in_flight, in_flight_most, workers, lanes: {queue: {wanted,
    lent}}}; docs/api-budget.md); with --shards of more than one a list of
    these, each with its shard
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
        for problem in hearing_lines([Hearing(**each) for each in facts["ingestors"]]):
            click.echo(views.of_shard(view) + printable(problem))
        for pause in facts["pauses"]:
            click.echo(views.of_shard(view) + asked_pause_line(Pause(**pause), view.inspector.now_ms()))
        if (budget := view.inspector.budget()) is not None:
            click.echo(views.of_shard(view) + budget_line(budget))
    rows = [views.told(view, each) for view, facts in found for each in facts["resources"]]
    columns = {"resource": "RESOURCE", "objects": "OBJECTS", "rv": "AT REVISION", "age_ms": "CONFIRMED"}
    show(rows, views.columns(columns), "table")
    heard = [views.told(view, _row(each)) for view, facts in found for each in facts["ingestors"]]
    if heard:
        click.echo()
        columns = {"ingestor": "INGESTOR", "age_ms": "SAID", "deaf": "DEAF TO", "longest": "SILENT LONGEST"}
        show(heard, views.columns(columns), "table")


def _row(hearing: dict[str, Any]) -> dict[str, Any]:
    """An ingestor, with the resource that it has heard nothing of for longest."""
    silent_ms, resource = max(((ms, name) for name, ms in hearing["silent_ms"].items()), default=(0, ""))
    return {**hearing, "longest": f"{resource} {span(silent_ms)}" if resource else ""}


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
        "ingestors": [asdict(each) for each in view.inspector.hearings()],
        "budget": budget_facts(view.inspector.budget()),
    }
