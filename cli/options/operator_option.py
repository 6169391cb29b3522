"""--operator: the user's own controllers that a command is about, instead of the built-in ones."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import click

from oarlock.cli.options.setting_options import given
from oarlock.cli.problems import InputProblem
from oarlock.controllers.registry import replace
from oarlock.workers.process.settings import Settings

if TYPE_CHECKING:
    from oarlock.sdk.definitions import Definition

# The functions here import the SDK where they need it: every command has the options, and few are given one.


def know(context: click.Context, what: str) -> list[Definition]:
    """Load the controllers of a file or a dotted module. For the rest of the command their kinds are the ones that
    there are, and the fleet is theirs. Raises InputProblem.
    """
    from oarlock.sdk.entries import entries_of  # noqa: PLC0415
    from oarlock.sdk.kinds import BadDefinition  # noqa: PLC0415
    from oarlock.sdk.loading import fleet_of, load  # noqa: PLC0415

    try:
        definitions = load(what)
        entries = entries_of(definitions)
        by_flag = given(context)
        by_flag["operator"] = what
        if not _is_fleet_named(by_flag):
            by_flag["fleet_id"] = fleet_of(what)
        replace(entries)
    except (BadDefinition, ValueError) as error:
        raise InputProblem(str(error)) from None
    return definitions


def _is_fleet_named(by_flag: Mapping[str, Any]) -> bool:
    return "fleet_id" in by_flag or "OARLOCK_FLEET_ID" in os.environ


def with_fleet_of_file(settings: Settings) -> Settings:
    """The settings with the fleet of their operator, named after its file unless it is named. Raises InputProblem."""
    if not settings.operator or _is_fleet_named(given(click.get_current_context())):
        return settings
    from oarlock.sdk.kinds import BadDefinition  # noqa: PLC0415
    from oarlock.sdk.loading import fleet_of  # noqa: PLC0415

    try:
        return dataclasses.replace(settings, fleet_id=fleet_of(settings.operator))
    except BadDefinition as error:
        raise InputProblem(str(error)) from None


def check_no_threads(what: str, before: Collection[threading.Thread] = ()) -> None:
    """A process with threads must not fork workers. ``before``: those that were there. Raises InputProblem."""
    own = threading.current_thread()
    others = [each.name for each in threading.enumerate() if each is not own and each not in before]
    if others:
        raise InputProblem(
            f"{what}: importing it started a thread ({', '.join(others)}); start it in the function that uses it:"
            " workers are forked after the import"
        )


def check_fleet_has_file(settings: Settings) -> None:
    """Raises InputProblem where --fleet-id names the fleet of an operator, and nothing says which kinds it has."""
    fleet = given(click.get_current_context()).get("fleet_id")
    if fleet is not None and not settings.operator and not settings.dry_run:
        raise InputProblem(
            f"--fleet-id {fleet}: whose controllers? name their file too: --operator FILE; or is it a --dry-run?"
        )


def _know(context: click.Context, _: click.Parameter, what: str | None) -> None:
    if what:
        know(context, what)


operator_option = click.option(
    "--operator",
    metavar="FILE|MODULE",
    envvar="OARLOCK_OPERATOR",
    is_eager=True,  # the values of other options are looked up among its kinds
    expose_value=False,
    callback=_know,
    help="The fleet of an `oarlock operator`: the file or dotted module of its controllers, such as website.py.",
)

dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    envvar="OARLOCK_DRY_RUN",
    expose_value=False,
    callback=lambda context, _, value: given(context).update(dry_run=True) if value else None,
    help="A fleet that decides and records, and writes nothing (docs/shadow.md); --fleet-id names it.",
)

fleet_option = click.option(
    "--fleet-id",
    expose_value=False,
    callback=lambda context, _, value: None if value is None else given(context).update(fleet_id=value),
    help="The name of that fleet, if it is not the file's.",
)
