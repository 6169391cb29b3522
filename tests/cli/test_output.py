"""Help, tables, logs: what people and tools read."""

from __future__ import annotations

import json
import logging

import pytest

from oarlock.cli import COMMANDS, cli
from oarlock.cli.logs import JsonFormatter, TextFormatter
from oarlock.cli.tables import cell, counted, span
from oarlock.workers.process.log_line import line
from tests.cli.cli_helpers import call


@pytest.mark.parametrize("name", [name for name in COMMANDS if name in cli.list_commands(None)])  # type: ignore[arg-type]
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = call(name, "--help")
    assert result.exit_code == 0
    assert f"oarlock {name}" in result.stdout
    assert "Example" in result.stdout


def test_the_commands_that_print_rows_say_what_their_json_has() -> None:
    for name in ("status", "queue", "locks", "expectations", "get", "explain", "epoch", "run"):
        assert "JSON" in call(name, "--help").stdout, name


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "-"),
        (0, "0ms"),
        (999, "999ms"),
        (1_500, "1.5s"),
        (61_000, "1m01s"),
        (3_660_000, "1h01m"),
        (180_000_000, "2d2h"),
    ],
)
def test_span(ms: int | None, text: str) -> None:
    assert span(ms) == text


def test_cells() -> None:
    assert [cell(value) for value in (None, "", 0, True, False, ["a", "b"])] == ["-", "-", "0", "yes", "no", "a,b"]


def test_one_of_a_thing_has_no_s() -> None:
    assert [counted(count, "key") for count in (0, 1, 2_000)] == ["0 keys", "1 key", "2,000 keys"]


def record(message: str) -> logging.LogRecord:
    made = logging.LogRecord("oarlock.fleet", logging.WARNING, "f", 1, message, None, None)
    made.created, made.msecs = 0.0, 7.0
    return made


def test_log_lines() -> None:
    message = line("ended", worker="w-1", reason='says "no" to a=b')
    head = "time=1970-01-01T00:00:00.007Z level=warning logger=oarlock.fleet "
    assert TextFormatter().format(record(message)) == head + message
    assert json.loads(JsonFormatter().format(record(message))) == {
        "time": "1970-01-01T00:00:00.007Z",
        "level": "warning",
        "logger": "oarlock.fleet",
        "event": "ended",
        "worker": "w-1",
        "reason": 'says "no" to a=b',
    }


def test_what_a_users_function_logs_says_of_what() -> None:
    made = record("made it")
    made.name, made.controller, made.key = "oarlock.controller.site", "site", "shop/a b"  # type: ignore[attr-defined]
    assert 'event=message controller=site key="shop/a b" text="made it"' in TextFormatter().format(made)
    told = json.loads(JsonFormatter().format(made))
    assert (told["controller"], told["key"], told["text"]) == ("site", "shop/a b", "made it")
    made.name = "of.a.library"
    assert "key" not in TextFormatter().format(made)


def test_what_others_wrote_neither_forges_a_line_nor_speaks_to_a_terminal() -> None:
    assert line("x", why="a\rb\x1b[2Jc\x85d\u2028e") == 'event=x why="a\\u000db\\u001b[2Jc\\u0085d\\u2028e"'
    assert line("x", why="\x1b[2J") == 'event=x why="\\u001b[2J"'
    assert line("x", why="naïve") == "event=x why=naïve"


def test_log_lines_of_libraries_are_one_line_too() -> None:
    text = TextFormatter().format(record("two\nlines"))
    assert "\n" not in text
    assert 'event=message text="two\\nlines"' in text
    assert json.loads(JsonFormatter().format(record("two\nlines")))["text"] == "two\nlines"
