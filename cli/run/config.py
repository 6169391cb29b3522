"""`oarlock config`: every setting, its value here, and where the value came from."""

from __future__ import annotations

import os
from typing import Any

import click

from oarlock.broker.connection.redis_url import without_password
from oarlock.cli.options.operator_option import with_fleet_of_file
from oarlock.cli.options.options import output_option
from oarlock.cli.options.process_options import check_values
from oarlock.cli.options.setting_options import every_setting_option, flag, given, settings_in_force, told, variable
from oarlock.cli.options.unknown_variables import unknown_variables
from oarlock.cli.problems import say
from oarlock.cli.tables import show
from oarlock.workers.process.settings import Settings, setting_names

COLUMNS = {"setting": "SETTING", "value": "IN FORCE", "from": "FROM", "upstream": "AS KUBE-CONTROLLER-MANAGER"}


@click.command(
    epilog="\b\nExamples:\n  oarlock config\n  oarlock config --kube-api-qps 50 --controllers '*,-daemonset'\n"
    "  kubectl exec oarlock-worker-0 -- oarlock config           # what a worker of a cluster was given\n"
    '  oarlock config -o json | jq -r \'.[] | select(.from != "default") | .setting + "=" + .value\''
)
@every_setting_option
@click.option("--changed", is_flag=True, help="Only settings that differ from their default.")
@output_option
def config(changed: bool, output: str) -> None:
    """Print the settings with which `oarlock worker` and `oarlock ingest` would start here, given these flags.

    A flag overrides its environment variable, which overrides the default. Passwords are not shown.
    A value that they would refuse is refused here too; files and servers are not looked at. Variables that are
    misspelt are told on stderr.

    \b
    JSON: [{setting, value, from (default | the variable | the flag), flag, variable, upstream, help}]
    """
    by_flag = given(click.get_current_context())
    say(unknown_variables())
    settings = with_fleet_of_file(settings_in_force())
    check_values(settings)
    rows = [_row(settings, name, by_flag) for name in setting_names()]
    show([row for row in rows if not changed or row["from"] != "default"], COLUMNS, output)


def _row(settings: Settings, name: str, by_flag: dict[str, Any]) -> dict[str, str]:
    value = settings.value(name)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    source = "default"
    if name in by_flag:
        source = flag(name)
    elif variable(name) in os.environ:
        source = variable(name)
    return {
        "setting": name,
        "value": without_password(text) if name.endswith("redis_url") else text,
        "from": source,
        "flag": flag(name),
        "variable": variable(name),
        "upstream": told(name).upstream,
        "help": told(name).help,
    }
