"""One step of a scenario, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass(frozen=True)
class Step:
    """`what`: name of a method of Hands; `about`: its arguments, as JSON would have them."""

    what: str
    about: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.what} {orjson.dumps(self.about).decode()}"


class StepRefused(Exception):
    """The server did not do what a step asks for."""
