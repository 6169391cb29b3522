"""What a printer of one kind consists of: columns, and a row of cells for each object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

Obj = dict[str, Any]
Cell = str | int
NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Printer:
    """`row(object, now_s)` gives one cell for each of `columns`."""

    columns: tuple[Column, ...]
    row: Callable[[Obj, float], list[Cell]]


def columns(shown: str, wide: str = "", integers: str = "") -> tuple[Column, ...]:
    """Columns from two lists of names separated by `|`; `Name` is marked as such, `integers` as numbers."""
    numbers = integers.split("|")
    return tuple(
        Column(
            name,
            type="integer" if name in numbers else "string",
            format="name" if name == "Name" else "",
            priority=priority,
        )
        for priority, names in ((0, shown), (1, wide))
        for name in names.split("|")
        if name
    )


def name_of(obj: Obj) -> str:
    """The cell that names the object."""
    return str(obj["metadata"]["name"])
