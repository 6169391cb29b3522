"""compose.yaml: valid, without default passwords, and its services, run as it says, do the job."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oarlock.broker.connection.acl import USERS
from tests import ROOT
from tests.image.composing import config, prepare, services


def test_without_passwords_it_says_what_to_do(project: Path) -> None:
    told = config(project)
    assert told.returncode == 1
    assert "run ./prepare.sh first" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "profiles", "names"),
    [
        ((), (), {"redis", "ingestor", "worker"}),
        (("--tls",), (), {"redis-tls", "ingestor", "worker"}),
        ((), ("plain", "try"), {"redis", "ingestor", "worker", "cluster"}),
        ((), ("plain", "watch"), {"redis", "ingestor", "worker", "board", "prometheus", "grafana"}),
    ],
)
def test_each_profile_is_valid(
    project: Path, arguments: tuple[str, ...], profiles: tuple[str, ...], names: set[str]
) -> None:
    assert prepare(project, *arguments).returncode == 0
    environment = dict(line.split("=", 1) for line in (project / ".env").read_text().splitlines())
    active = set(profiles) or set(environment["COMPOSE_PROFILES"].split(","))
    found = services(project, *profiles)
    assert {name for name, service in found.items() if set(service.get("profiles", active)) & active} == names


def test_every_service_is_hardened_and_looked_after(project: Path) -> None:
    prepare(project)
    for name, service in services(project, "plain", "tls", "try", "watch").items():
        assert service["restart"] == "unless-stopped", name
        assert service["healthcheck"]["test"], name
        if name not in ("prometheus", "grafana"):
            assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name
            assert service["security_opt"] == ["no-new-privileges:true"], name
            assert ("ports" in service) is (name == "board"), name
        assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", ())), name
    assert services(project)["ingestor"]["deploy"]["replicas"] == 2


def test_preparing_twice_keeps_what_there_is(project: Path) -> None:
    prepare(project)
    before = (project / ".env").read_text()
    assert "kept" in prepare(project).stdout
    assert (project / ".env").read_text() == before
    other = prepare(project, "--tls")
    assert other.returncode == 2
    assert "--new" in other.stderr
    assert prepare(project, "--new", "--tls").returncode == 0
    assert not set(re.findall(r"PASSWORD=(\w+)", before)) & set(
        re.findall(r"PASSWORD=(\w+)", (project / ".env").read_text())
    )
    assert (project / ".env").stat().st_mode & 0o077 == 0


def test_secrets_without_their_passwords_are_not_taken_for_new_ones(project: Path) -> None:
    """Somebody has removed .env, or the first run was stopped between the two: Redis would have other passwords."""
    prepare(project)
    (project / ".env").unlink()
    told = prepare(project)
    assert (told.returncode, "--new makes both" in told.stderr) == (2, True)
    assert not (project / ".env").exists()
    assert prepare(project, "--new").returncode == 0
    assert sorted(path.name for path in (project / "secrets").iterdir()) == ["signing.key", "users.acl"]


def test_the_users_are_those_of_the_fleet() -> None:
    told = (ROOT / "compose/redis/users.acl.template").read_text().splitlines()
    assert told[0].startswith("user default off")
    assert told[1:] == [f"user {user} on #<{user}> {rules}" for user, rules in USERS.items()]
