"""What the documentation names exists: pages, commands, flags, targets of make."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from oarlock.cli import cli
from oarlock.controllers.registry import all_queues
from oarlock.workers.process.kinds import controller_names
from tests import ROOT
from tests.docs.flag_table import PAGE, page

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_the_table_of_settings() -> None:
    assert PAGE.read_text() == page(), "python -m tests.docs.flag_table writes it anew"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("folder", ["docs", "docs/design"])
def test_every_page_is_in_the_index(folder: str) -> None:
    index = (ROOT / folder / "README.md").read_text()
    missing = [path.name for path in (ROOT / folder).glob("*.md") if f"({path.name})" not in index]
    assert set(missing) <= {"README.md"}


def calls() -> Iterator[tuple[str, str]]:
    """Every call of oarlock in an example or in code quotes, with the page it stands on."""
    for path in PAGES:
        for line in re.findall(r"^ {4,}(.*)$", path.read_text(), flags=re.MULTILINE):
            words = line.partition(" # ")[0].strip()
            found = re.search(r"(?:^|/|-- |&& |; |\.\.\. )oarlock ([a-z].*)", words)
            if found:
                yield path.name, found[1]
        for text in re.findall(r"`oarlock ([a-z][^`]*)`", path.read_text()):
            yield path.name, text


@pytest.mark.parametrize(("page_name", "text"), sorted(set(calls())))
def test_commands_and_their_flags_exist(page_name: str, text: str) -> None:
    text = re.split(r"\s(?:[|>;&]|\\$)|;", text.replace("...", "x"))[0]
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    command: click.Command | None = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        command = command.get_command(context, name)
        assert command is not None, f"{page_name}: there is no `oarlock {name}`"
    assert command is not None
    known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)} | {"--help", "-h"}
    flags = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    flags = {flag for flag in flags if not re.fullmatch(r"-v+", flag)}
    assert flags <= known, f"{page_name}: oarlock {text}"


@pytest.mark.parametrize("name", ["take-over.md", "conformance.md"])
def test_pages_switch_off_every_controller_of_ours(name: str) -> None:
    flag = ",".join(("--controllers=*", *(f"-{each}" for each in controller_names())))
    assert flag in (ROOT / "docs" / name).read_text()


def test_the_metrics_page_names_every_queue() -> None:
    text = (ROOT / "docs/metrics.md").read_text()
    assert [queue for queue in all_queues() if f"`{queue}`" not in text] == []


def test_targets_of_make_exist() -> None:
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for path in PAGES:
        for name in re.findall(r"(?:^ {4,}|`)make ([a-z][a-z-]+)", path.read_text(), flags=re.MULTILINE):
            assert name in made, f"{path.name}: make {name}"
