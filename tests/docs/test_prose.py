"""Pages are short, plain and true to the tree: sentences, lines, and the files that they name."""

from __future__ import annotations

import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.prose import files_named, mean_words, sentences

WORDS = 20
WORDS_OF_REPORTS = 25
"""Of pages that are mostly figures and the conditions under which they were measured."""
REPORTS = ("docs/acceptance.md", "docs/conformance.md", "docs/rbac.md", "docs/redis.md", "docs/design/tried.md")
REPORTS += tuple(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/benchmarks/*.md"))
COLUMNS = 100
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.fixture(scope="module")
def tree() -> frozenset[str]:
    """Every file that is tracked, or is about to be, and every folder with one."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    files = [Path(line) for line in listed.stdout.splitlines()]
    if not files:  # a source archive
        files = [path.relative_to(ROOT) for path in ROOT.rglob("*") if ".venv" not in path.parts]
    return frozenset(str(each) for path in files for each in (path, *path.parents))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_are_short(path: Path) -> None:
    text = path.read_text()
    longest = sorted(sentences(text), key=lambda each: -len(each.split()))[:3]
    most = WORDS_OF_REPORTS if str(path.relative_to(ROOT)) in REPORTS else WORDS
    assert mean_words(text) < most, longest


def test_the_map_fits_a_screen_or_two() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 120


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_lines_end_where_an_eye_does(path: Path) -> None:
    """Tables, links and examples excepted: they cannot be broken."""
    inside_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        inside_code ^= line.startswith("```")
        excepted = inside_code or line.startswith(("|", "    ", "<")) or "](" in line or "`" in line
        assert excepted or len(line) <= COLUMNS, f"{path.name}:{number}"
        assert len(line) <= COLUMNS + 20 or line.startswith(("|", "    ", "<")) or inside_code, f"{path.name}:{number}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_a_page_names_exist(path: Path, tree: frozenset[str]) -> None:
    top = frozenset(name for name in tree if "/" not in name and name != "." and (ROOT / name).is_dir())
    for name in files_named(path.read_text(), top):
        named = name.rstrip("/")
        assert any(fnmatch(each, named) or fnmatch(each, f"*/{named}") for each in tree), f"{path.name}: {name}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Head\n\nOne two. Three `a b c` four!\n\n| a. | b. |\n", ["One two.", "Three X four!"]),
        ("- an item\n  goes on. Ends.\n- another\n\n    code. Code.\n", ["an item goes on.", "Ends.", "another"]),
        ("```\nNo. No.\n```\n[a link](x.md) is read.", ["a link is read."]),
    ],
)
def test_what_counts_as_a_sentence(text: str, found: list[str]) -> None:
    assert sentences(text) == found


def test_what_counts_as_a_file() -> None:
    text = "`tests/docs` `shop/cart` `claim.lua` `broker/scripts/*.lua` `make run` `a/b.py::test_x` `kube-system`"
    assert list(files_named(text, frozenset(("tests", "broker")))) == [
        "tests/docs",
        "claim.lua",
        "broker/scripts/*.lua",
        "a/b.py",
    ]
