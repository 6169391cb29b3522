"""How custom resources look in `kubectl get`: the columns that their definition adds.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from oarlock.sandbox.apiserver.custom import json_path
from oarlock.sandbox.apiserver.printing.columns import Cell, Column, Printer
from oarlock.sandbox.apiserver.printing.printers import NAME_AND_AGE
from oarlock.sandbox.apiserver.text.times import since

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CustomPrinter(Printer):
    """Every cell but the name comes from a JSON path, also one that is called Name or Age."""

    def row(self, obj: Obj, now_s: float) -> list[Cell]:
        return [str(obj["metadata"]["name"]), *self.cells(obj, now_s)]


def custom_printer(added: list[Obj]) -> Printer:
    """The printer of `additionalPrinterColumns`; name and age where there are none."""
    if not added:
        return NAME_AND_AGE
    shown = tuple(
        Column(
            column["name"],
            type=column["type"],
            format=column.get("format") or "",
            priority=column.get("priority") or 0,
            description=column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
        )
        for column in added
    )
    paths = [(column["type"], column["jsonPath"]) for column in added]

    def cells(obj: Obj, now_s: float) -> list[Cell]:
        return [_cell(type_, json_path.first(path, obj), now_s) for type_, path in paths]

    return CustomPrinter((Column("Name", format="name"), *shown), cells)


def _cell(type_: str, value: Any, now_s: float) -> Cell:
    """The value as the column's type has it; nothing where it is of another one."""
    if value is None:
        return None
    if type_ == "date":
        return since(value, now_s) if isinstance(value, str) else None
    if type_ == "string":
        return _text(value)
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if type_ == "integer" else value


def _text(value: Any) -> str:
    """As Go prints it: true, 3, and JSON for what has parts."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
