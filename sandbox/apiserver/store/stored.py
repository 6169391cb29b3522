"""What the store holds: an object at one resourceVersion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Obj = dict[str, Any]


@dataclass(slots=True, eq=False)
class Stored:
    """One object at one resourceVersion, with its JSON."""

    obj: Obj
    raw: bytes
    rv: int
