"""`oarlock undrain`: let a supervisor start workers again."""

from __future__ import annotations

import click

from oarlock.broker.pauses import note
from oarlock.cli.look.view import Where, looking, where_options
from oarlock.cli.problems import InputProblem
from oarlock.cli.steer.drain import unknown
from oarlock.cli.steer.scopes import broker_of, by_option


@click.command(epilog="\b\nExample:\n  oarlock undrain host-1-4f9a2c01")
@click.argument("supervisor")
@by_option
@where_options
def undrain(supervisor: str, by: str, where: Where) -> None:
    """Let a SUPERVISOR that was drained start its workers again; it does so within a second. A worker that is to leave
    leaves all the same, and is replaced.
    """
    with looking(where) as views:
        done = [broker_of(view).drain("undrain", supervisor, note(by, "")) is not None for view in views]
        if not any(done):
            known = unknown(views, supervisor).partition("; ")[2]
            raise InputProblem(f"{supervisor} is not drained; {known}")
        click.echo(f"{supervisor} may start workers again")
