"""One look, printed: for scripts, and for terminals that cannot draw."""

from __future__ import annotations

import click

from oarlock.cli.tables import show, show_json
from oarlock.cli.top.heading import fleet_figures, key_figures, problems_of
from oarlock.cli.top.tabs import TABS
from oarlock.cli.watch.fleet_look import FleetLook, plain
from oarlock.cli.watch.rates import Rates
from oarlock.workers.process.log_line import printable

ROWS_MAX = 10


def print_look(look: FleetLook, output: str) -> None:
    """As JSON, all of it; else the head, and the first rows of each tab. One look has no rates."""
    if output == "json":
        show_json(plain(look))
        return
    for figures in (fleet_figures(look, Rates()), key_figures(look)):
        click.echo("  ".join(f"{name} {value}" for name, value in figures.items()))
    for problem in problems_of(look):
        click.echo(printable(problem))
    for tab in TABS:
        rows = list(tab.rows(look))
        click.echo(f"\n{tab.title}: {tab.caption(look)}")
        if rows:
            named = {str(at): heading for at, heading in enumerate(tab.columns)}
            show([dict(zip(named, row.cells, strict=True)) for row in rows[:ROWS_MAX]], named, "table")
        if len(rows) > ROWS_MAX:
            click.echo(f"and {len(rows) - ROWS_MAX:,} more; -o json has them")
