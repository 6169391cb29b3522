"""What courses of events yield between steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rest:
    """A point between two steps at which another course may go on. Within a plot that concerns the whole namespace
    there is none."""

    may_switch: bool = True


REST = Rest()
