"""Misspelt environment variables are told, with the nearest that there is; those of others are left alone."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from oarlock.broker.connection.acl import SERVERS, USERS
from oarlock.cli import COMMANDS, cli
from oarlock.cli.options.unknown_variables import known_variables, unknown_variables
from tests.cli.cli_helpers import call, problems

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: a, user: {}}]
"""


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("OARLOCK_KUBE_APIQPS", "OARLOCK_KUBE_API_QPS"),
        ("OARLOCK_REDISURL", "OARLOCK_REDIS_URL"),
        ("OARLOCK_LEASEMS", "OARLOCK_LEASE_MS"),
        ("OARLOCK_SIGNING_KEYFILE", "OARLOCK_SIGNING_KEY_FILE"),
        ("OARLOCK_WORKER", "OARLOCK_WORKERS"),
    ],
)
def test_the_nearest_is_named(name: str, nearest: str) -> None:
    (told,) = unknown_variables({name: "1"})
    assert told == (
        f"warning: the environment variable {name} is ignored, there is no such setting: did you mean {nearest}?"
    )


def test_what_is_near_to_none_is_told_too() -> None:
    (told,) = unknown_variables({"OARLOCK_XYZZY": "1"})
    assert "OARLOCK_XYZZY is ignored" in told
    assert "`oarlock config -o json` names those" in told


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "OARLOCKED", "OARLOCK_TEST_REDIS", "OARLOCK_CHAOS_SEED", "OARLOCK_BENCH_REDIS_URL"),
        *("OARLOCK_REDIS_SERVICE_HOST", "OARLOCK_REDIS_SERVICE_PORT_REDIS", "OARLOCK_REDIS_PORT"),
        *("OARLOCK_REDIS_PORT_6379_TCP", "OARLOCK_REDIS_PORT_6379_TCP_ADDR", "OARLOCK_SERVICE_HOST", "OARLOCK_PORT"),
    ],
)
def test_others_are_left_alone(name: str) -> None:
    assert not unknown_variables({name: "1"})


def test_every_variable_that_a_command_reads_is_known() -> None:
    read = {f"OARLOCK_{user.upper()}_PASSWORD" for user in (*USERS, *SERVERS)}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        read |= {str(option.envvar) for option in command.params if option.envvar}
    assert read <= set(known_variables())


def test_config_tells_on_stderr() -> None:
    told = call("config", "-o", "json", env={"OARLOCK_REDISURL": "redis://a"})
    assert told.exit_code == 0
    assert told.stdout.startswith("[")
    assert [line.split("did you mean ")[1] for line in problems(told)] == ["OARLOCK_REDIS_URL?"]


def test_up_tells(tmp_path: Path) -> None:
    told = call("up", "-f", str(tmp_path / "nothing.yaml"), env={"OARLOCK_LEASEMS": "6000"})
    assert told.exit_code == 2
    first, *_, last = problems(told)
    assert "OARLOCK_LEASEMS is ignored" in first
    assert "nothing.yaml" in last


@pytest.mark.parametrize("command", ["worker", "ingest"])
def test_processes_of_the_fleet_tell(command: str, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    where = ("--kubeconfig", str(tmp_path / "kubeconfig"), "--redis", "redis://127.0.0.1:1/0")
    told = call(command, *where, env={"OARLOCK_LEASEMS": "6000"})
    assert told.exit_code == 2
    assert "OARLOCK_LEASEMS is ignored" in problems(told)[0]
    assert "no Redis answers" in problems(told)[1]
