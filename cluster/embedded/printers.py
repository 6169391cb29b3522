"""How each kind looks in `kubectl get`: columns and one row of cells per object.

Columns of priority 1 appear only with `-o wide`. Wording follows upstream's
pkg/printers/internalversion/printers.go. Pure: the moment is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Obj = dict[str, Any]
Cell = str | int | bool | None


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Printer:
    """`row(object, now_s)` gives one cell for each of `columns`; `now_s` is unix seconds."""

    columns: tuple[Column, ...]
    row: Callable[[Obj, float], list[Cell]]


_NAME = Column("Name", format="name", description="Name must be unique within a namespace.")
_AGE = Column("Age")

NAME_AND_AGE = Printer((_NAME, _AGE), lambda obj, now_s: [obj["metadata"]["name"], ""])

PRINTERS: Mapping[str, Printer] = {
    name: NAME_AND_AGE
    for name in (
        "Namespace",
        "Node",
        "Pod",
        "ReplicaSet",
        "Event",
        "Lease",
        "ResourceQuota",
        "ServiceAccount",
        "ConfigMap",
        "Secret",
        "Service",
    )
}
