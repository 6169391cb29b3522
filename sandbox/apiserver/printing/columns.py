"""What a printer of one kind consists of: columns, and a row of cells for each object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from oarlock.sandbox.apiserver.text.times import age

Obj = dict[str, Any]
Cell = str | int | float | None
NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class Printer:
    """`cells(object, now_s)` gives one cell for each of `columns` but Name and Age, which all kinds have alike."""

    columns: tuple[Column, ...]
    cells: Callable[[Obj, float], list[Cell]]

    def row(self, obj: Obj, now_s: float) -> list[Cell]:
        """One cell for each of `columns`."""
        cells = iter(self.cells(obj, now_s))
        shared = {"Name": str(obj["metadata"]["name"]), "Age": age(obj, now_s)}
        return [shared[column.name] if column.name in shared else next(cells) for column in self.columns]


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
