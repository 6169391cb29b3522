"""How a benchmark speaks: lines while it goes on, a table at its end, one JSON object as the last line."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table


class Unfit(Exception):
    """A run that must not count: something else happened than what was to be measured. One line says what."""


def say(text: str) -> None:
    """A line of progress."""
    print(text, flush=True)


def show(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table: the first column is text, the others are numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="right" if at else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    print(f"\n{title}", flush=True)
    Console(width=max(160, Console().width)).print(table)


def finish(facts: dict[str, Any]) -> None:
    """The last line."""
    print()
    print(json.dumps({**facts, "machine": machine()}), flush=True)


def median(values: Iterable[float]) -> float:
    return statistics.median(list(values))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of the values do not exceed (nearest rank)."""
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * share // 1).__int__() - 1)]


def spread(values: Sequence[float], digits: int = 1) -> str:
    """median [least-most]."""
    return f"{median(values):,.{digits}f} [{min(values):,.{digits}f}-{max(values):,.{digits}f}]"


def machine() -> dict[str, Any]:
    """Cores, load before the end, versions: what a figure depends on."""
    return {
        "cores": os.cpu_count(),
        "load_1m": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def main(run: Any) -> None:
    """Run a benchmark's ``main``; a run that must not count is exit code 1 with one line."""
    try:
        run()
    except Unfit as error:
        print(f"benchmark: {error}", file=sys.stderr)
        sys.exit(1)
