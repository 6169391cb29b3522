"""docs/sdk.md has every public name, every option and every word of ctx, and no others."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import oarlock
from tests import ROOT

PAGE = (ROOT / "docs" / "sdk.md").read_text()


def first_cells(heading: str) -> set[str]:
    """The code quotes in the first column of the table with this head, without arguments."""
    table = PAGE[PAGE.index(f"\n{heading}") :].lstrip("\n").partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    return {name.partition("(")[0] for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def options(function: Any) -> set[str]:
    return {each.name for each in inspect.signature(function).parameters.values() if each.kind is each.KEYWORD_ONLY}


def words(cls: type) -> set[str]:
    """What a ctx offers: its methods, properties, and what it is given at its birth."""
    own = {name for each in cls.__mro__ for name in vars(each) if not name.startswith("_")}
    return own | set(re.findall(r"self\.([a-z]\w*)(?:: \w+)? =", inspect.getsource(cls.__mro__[1].__init__)))  # type: ignore[misc]


def test_every_public_name_is_there() -> None:
    assert set(re.findall(r"^\| `oarlock\.(\w+)` \|", PAGE, flags=re.MULTILINE)) == set(oarlock.__all__)
    assert all(hasattr(oarlock, name) for name in oarlock.__all__)


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("| `@oarlock.resource(api_version, ...)`", options(oarlock.resource)),
        ("| `@oarlock.desired(kind, ...)`, `@oarlock.steps(kind, ...)`", options(oarlock.steps)),
        ("| `oarlock.watch(kind, ...)`", options(oarlock.watch)),
        ("| `ctx.`", words(oarlock.Context)),
        ("| `ctx.`", words(oarlock.AsyncContext)),
    ],
    ids=["resource", "controllers", "watch", "ctx", "async ctx"],
)
def test_every_option_is_there(heading: str, known: set[str]) -> None:
    assert first_cells(heading) == known


def test_what_only_steps_have() -> None:
    assert options(oarlock.steps) - options(oarlock.desired) == {"finalizer"}
    assert options(oarlock.desired) <= options(oarlock.steps)


@pytest.mark.parametrize(("cls", "row"), [(oarlock.Meta, "Meta"), (oarlock.Result, "Result")], ids=["Meta", "Result"])
def test_fields_of_types_are_there(cls: Any, row: str) -> None:
    (line,) = re.findall(rf"^\| `oarlock\.{row}` \|.*$", PAGE, flags=re.MULTILINE)
    assert set(cls.__struct_fields__) <= set(re.findall(r"`(\w+)`", line))


def test_methods_of_children_are_there() -> None:
    (line,) = re.findall(r"^\| `oarlock\.Children` \|.*$", PAGE, flags=re.MULTILINE)
    assert set(re.findall(r"`(\w+)\(", line)) == {name for name in vars(oarlock.Children) if not name.startswith("_")}
