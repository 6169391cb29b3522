"""Tables for people, JSON for tools: the same rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from oarlock.workers.process.log_line import printable

if TYPE_CHECKING:  # Rich takes 80 ms to load, and sentences and JSON need none of it
    from rich.console import Console
    from rich.table import Table

Row = Mapping[str, Any]


def console() -> Console:
    """A console as wide as the terminal; for a pipe, as wide as the rows."""
    from rich.console import Console  # noqa: PLC0415

    stream = sys.stdout
    return Console(file=stream, width=None if stream.isatty() else 10_000, highlight=False, soft_wrap=True)


def show(rows: Sequence[Row], columns: Mapping[str, str], output: str, *, empty: str = "nothing") -> None:
    """Print rows as a table or as JSON. ``columns``: key of a row -> heading; JSON has all keys. In a table, a key that
    ends in ``_ms`` is shown as ``span`` does.
    """
    if output == "json":
        click.echo(json.dumps(list(rows), indent=2))
        return
    if not rows:
        click.echo(empty)
        return
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for key, heading in columns.items():
        number = all(isinstance(row.get(key), int | float) or row.get(key) is None for row in rows)
        right = number and not key.endswith("_ms")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        cells = (span(row.get(key)) if key.endswith("_ms") else cell(row.get(key)) for key in columns)
        table.add_row(*map(Text, cells))
    print_table(table)


def print_table(table: Table) -> None:
    """Print a table without blanks at the ends of lines."""
    out = console()
    with out.capture() as text:
        out.print(table)
    click.echo("\n".join(line.rstrip() for line in text.get().splitlines()))


def show_json(value: Any) -> None:
    """One JSON document."""
    click.echo(json.dumps(value, indent=2))


def counted(count: int, what: str) -> str:
    """So many of a word whose plural ends in s: "1 key", "2,000 keys"."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def a_second(rate: float, what: str) -> str:
    """So many of a word in a second: "1 turn a second", "0.5 turns a second"."""
    return f"{rate:g} {what}{'' if rate == 1 else 's'} a second"


def cell(value: Any) -> str:
    """A value as text for a table; "-" if it is missing."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(cell(each) for each in value)
    return printable(str(value))


NAMED_MAX = 5


def listed(names: Sequence[str]) -> str:
    """``n1, n2, n3, n4, n5 and 7 more``."""
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


def stamp(ms: int) -> str:
    """A time in unix milliseconds: 2026-11-24T05:12:41Z."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(ms: int | None) -> str:
    """A duration in milliseconds as short text: 850ms, 12.3s, 4m10s, 2h05m, 3d4h."""
    if ms is None:
        return "-"
    if abs(ms) < 1_000:
        return f"{ms}ms"
    seconds = ms / 1000
    if abs(seconds) < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours < 48 else f"{hours // 24}d{hours % 24}h"
