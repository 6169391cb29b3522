"""A script's header is its contract, so it is compared with the text; as the broker's are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oarlock.queue import keys, script_texts
from tests import ROOT
from tests.broker.lua_reading import code_of
from tests.broker.test_script_headers import COMMANDS
from tests.docs.tables import first_cells

FOLDER = script_texts.FOLDER
every_script = pytest.mark.parametrize("name", script_texts.NAMES)
PARTS = ("prelude", "queue", "failures", "locks")
PATTERNS = {spec.pattern.replace("<", "").replace(">", "") for spec in keys.TABLE}


def head(name: str) -> str:
    return FOLDER.source(name).partition("\nlocal")[0].partition("\nreturn")[0]


def functions(part: str) -> dict[str, str]:
    """Each function at the margin of a part, with its text."""
    text = code_of(FOLDER.source(f"lib/{part}"))
    one_line = re.compile(r"^local function (\w+)(\(.*\bend)$", re.MULTILINE)
    others = re.findall(r"^local function (\w+)(\([^\n]*\n.*?^end)$", one_line.sub("", text), re.MULTILINE | re.DOTALL)
    return dict(one_line.findall(text) + others)


def reached(name: str) -> str:
    """The text of a script and of every function of its parts that it calls, but for the check of types."""
    known = {each: text for part in ("prelude", *FOLDER.parts_of(name)) for each, text in functions(part).items()}
    todo, seen, text = [code_of(FOLDER.source(name))], {"check"}, ""
    while todo:
        body = todo.pop()
        text += body + "\n"
        for each in set(re.findall(r"\b(\w+)\(", body)) & set(known) - seen:
            seen.add(each)
            todo.append(known[each])
    return text


def keys_used(text: str) -> set[str]:
    named = set(re.findall(r"base \.\. '(\w+:?)'", text))
    return {each + "group" if each.endswith(":") else each for each in named}


def test_every_file_is_a_script_or_a_part() -> None:
    folder = Path(script_texts.__file__).parent / "scripts"
    assert {path.stem for path in folder.glob("*.lua")} == set(script_texts.NAMES)
    assert {path.stem for path in folder.glob("lib/*.lua")} == set(PARTS)


@pytest.mark.parametrize("name", [*script_texts.NAMES, *(f"lib/{part}" for part in PARTS)])
def test_the_last_line_ends(name: str) -> None:
    """The next file is put behind it, without its comments."""
    assert FOLDER.source(name).endswith("\n")


@every_script
def test_the_header_is_complete(name: str) -> None:
    lines = head(name).splitlines()
    assert lines[0].startswith(f"-- {name}: ")
    assert lines[1] == "-- KEYS[1] base"
    for word in ("DERIVED", "Returns:", "Invariant:"):
        assert sum(line.startswith(f"-- {word}") for line in lines) == 1, word


@every_script
def test_every_argument_is_listed(name: str) -> None:
    listed = {int(each) for each in re.findall(r"ARGV\[(\d+)(?:\.\.)?\]", head(name))}
    used = {int(each) for each in re.findall(r"ARGV\[(\d+)\]", reached(name))}
    policy = re.search(r"policy_at\((\d)\)", code_of(FOLDER.source(name)))
    used |= set(range(int(policy[1]), int(policy[1]) + 3)) if policy else set()
    assert used <= listed
    assert listed == set(range(1, len(listed) + 1))


@every_script
def test_derived_keys_are_those_used_and_in_the_table(name: str) -> None:
    derived = re.search(r"^-- DERIVED (.+)$", head(name), re.MULTILINE)
    assert derived
    assert set(derived[1].split()) == keys_used(reached(name)) <= PATTERNS


def test_every_key_of_the_table_is_used_and_documented() -> None:
    assert set().union(*(keys_used(reached(name)) for name in script_texts.NAMES)) == PATTERNS
    page = (ROOT / "docs" / "redis-keys.md").read_text().partition("\n## Of a keyed queue\n")[2]
    assert first_cells(page.partition("\n## ")[0]) == [spec.pattern for spec in keys.TABLE]


@every_script
def test_types_are_checked_before_the_first_write(name: str) -> None:
    body = code_of(FOLDER.source(name))
    first = re.search(
        r"redis\.call\('(?:HSET|HDEL|ZADD|ZREM|XADD|DEL|SET|LPOP)'|\b(?:seen|unlock|steady|add_after)\(", body
    )
    assert first is None or "check()" in body[: first.start()]


@every_script
def test_only_commands_of_old_servers(name: str) -> None:
    commands = set(re.findall(r"redis\.p?call\('([A-Z]+)'", reached(name)))
    assert commands <= COMMANDS | {"ZSCORE", "LRANGE", "ZREMRANGEBYSCORE"}
    assert not re.search(r"#!|\bgoto\b|redis\.setresp|cjson|cmsgpack", FOLDER.source(name))


@every_script
def test_the_released_text(name: str) -> None:
    text = script_texts.text(name)
    assert ("redis.call('TIME')" in text) == ("now_ms()" in text)
    assert "@" not in text
    assert not re.search(r"^\s*--", text, re.MULTILINE)
