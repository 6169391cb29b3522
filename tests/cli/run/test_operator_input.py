"""Input of `oarlock operator`, `oarlock dev` and --operator that cannot be used: exit 2 and one line."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from oarlock.cli.options.operator_option import know
from oarlock.cli.options.setting_options import given
from oarlock.controllers.registry import CONTROLLERS, all_queues, as_before
from tests import ROOT
from tests.cli.cli_helpers import call, problems

SITE = ROOT / "tests" / "sdk" / "website.py"
NO_REDIS = "redis://127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def no_other_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An `oarlock up` that its user has running would be asked, and would be said to be so."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(autouse=True)
def the_same_kinds_afterwards() -> Iterator[None]:
    before = all_queues()
    yield
    assert all_queues() == before


FILES = {
    "syntax": ("def site(:\n", ":1: SyntaxError: invalid syntax"),
    "nothing in it": ("import oarlock\n", ": no controllers in it; put @oarlock.desired or @oarlock.steps above"),
    "two versions of a kind": (
        "import oarlock\n"
        "a = oarlock.desired('a.example.com/v1 Thing', name='a')(lambda obj, children: None)\n"
        "b = oarlock.desired('a.example.com/v2 Thing', name='b')(lambda obj, children: None)\n",
        "a.example.com/v1 Thing (things, namespaced) and a.example.com/v2 Thing (things, namespaced) are both used",
    ),
    "two plurals of a kind": (
        "import oarlock\n"
        "truss = oarlock.Kind('example.com/v1', 'Truss', plural='truss', namespaced=False)\n"
        "a = oarlock.desired(truss, name='a')(lambda obj, children: None)\n"
        "watched = [oarlock.watch('example.com/v1 Truss', names=lambda obj: [])]\n"
        "b = oarlock.desired('v1 Secret', name='b', watches=watched)(lambda obj, children: None)\n",
        "example.com/v1 Truss (truss, without namespaces) and example.com/v1 Truss (trusses, namespaced) are both used",
    ),
}


@pytest.mark.parametrize(
    ("command", "text", "line"),
    [
        *((command, *FILES[name]) for name in FILES for command in (("operator",), ("queue", "--operator"))),
        *((command, *FILES["syntax"]) for command in (("dev",), ("worker", "--operator"))),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, command: tuple[str, ...], text: str, line: str) -> None:
    file = tmp_path / f"bad_{abs(hash((command, text)))}.py"
    file.write_text(text)
    result = call(*command, str(file))
    assert result.exit_code == 2
    (said,) = problems(result)
    assert said.startswith("oarlock: ")
    assert line in said


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("operator", "nothing.py"), "nothing.py: no such file; give one with your controllers"),
        (("operator", "nowhere.site"), "nowhere.site: no such file, and no such module here or installed"),
        (("operator",), "Missing argument 'FILE|MODULE'; see oarlock operator --help"),
        (("dev", "nothing.py"), "nothing.py: no such file; give one with your controllers"),
        (("operator", str(SITE), "--workers", "0"), "Invalid value for '--workers'"),
        (("operator", str(SITE), "--kubeconfig", "/nowhere"), "kubeconfig"),
        (("operator", str(SITE), "--fleet-id", "7"), "--fleet-id=7 cannot name the fleet of an operator"),
        (("worker", "--operator", str(SITE), "--shards", "2"), "OARLOCK_SHARDS=2: the fleet of an operator is not"),
        (("queue", "--operator", str(SITE), "--fleet-id", ""), "--fleet-id= cannot name the fleet of an operator"),
        (("queue", "--fleet-id", "sites"), "--fleet-id sites: whose controllers? name their file too: --operator FILE"),
        (
            ("worker", "--operator", str(SITE), "--concurrent-rc-syncs", "1"),
            "--concurrent-rc-syncs=1: none of these controllers has this setting",
        ),
        (("queue", "--operator", str(SITE), "-c", "replicaset"), "'replicaset' is not 'website'"),
        (("get", "pods", "--operator", str(SITE)), "KIND 'pods' is not in the cache; there are: websites.example.com"),
        (("queue", "--operator", str(SITE), "--redis", NO_REDIS), "--redis: no Redis answers at 127.0.0.1:1"),
    ],
    ids=lambda each: " ".join(each[:2]) if isinstance(each, tuple) else "",
)
def test_arguments_that_cannot_be_used(arguments: tuple[str, ...], line: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    (said,) = problems(result)
    assert line in said


def test_a_check_tells_what_is_in_a_file() -> None:
    result = call("operator", str(SITE), "--check")
    assert result.exit_code == 0
    for word in ('"name": "website"', '"resource": "websites.example.com"', '"plural": "configmaps"', str(SITE)):
        assert word in result.stdout


def test_a_check_refuses_what_a_start_would_refuse(tmp_path: Path) -> None:
    file = tmp_path / "threaded.py"
    started = "threading.Thread(target=threading.Event().wait, args=(9,), name='mine', daemon=True).start()"
    file.write_text(f"{SITE.read_text()}\nimport threading\n{started}\n")
    result = call("operator", str(file), "--check")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "threaded.py: importing it started a thread (mine)" in problems(result)[0]


@pytest.mark.parametrize("command", ["operator", "worker", "ingest"])
def test_help_says_what_the_fleet_is_called(command: str) -> None:
    said = " ".join(call(command, "--help").stdout.split())
    assert "[default: oarlock; with controllers of your own the name of their file]" in said


@pytest.mark.parametrize(
    ("arguments", "env", "fleet"),
    [
        ([], {}, "oarlock"),
        (["--operator", str(SITE)], {}, "website"),
        (["--operator", str(SITE), "--fleet-id", "oarlock"], {}, "oarlock"),
        ([], {"OARLOCK_OPERATOR": str(SITE)}, "website"),
        ([], {"OARLOCK_OPERATOR": str(SITE), "OARLOCK_FLEET_ID": "sites"}, "sites"),
    ],
)
def test_the_fleet_in_force(arguments: list[str], env: dict[str, str], fleet: str) -> None:
    found = call("config", *arguments, "-o", "json", env=env)
    assert {each["setting"]: each["value"] for each in json.loads(found.stdout)}["fleet_id"] == fleet


@pytest.mark.parametrize(("flags", "fleet"), [([], "website"), (["--fleet-id", "oarlock"], "oarlock")])
def test_a_fleet_that_is_named_has_that_name(flags: list[str], fleet: str) -> None:
    with click.Context(click.Command("operator")) as context, as_before():
        given(context).update(zip(["fleet_id"], flags[1:], strict=False))
        know(context, str(SITE))
        assert given(context)["fleet_id"] == fleet


def test_the_kinds_of_the_file_are_known_while_the_command_runs() -> None:
    result = call("worker", "--help")
    assert "--concurrent-replicaset-syncs" in result.stdout
    assert "--concurrent-replicaset-syncs" not in call("operator", "--help").stdout or CONTROLLERS
