"""Differences that are meant, each with the id of its line in docs/differences.md. Pure.

An explanation knows the one difference it is about: which field, in which direction, after which steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from differential.compare import Difference
from differential.hands import Step
from differential.snapshot import Snapshot


@dataclass(frozen=True)
class Moment:
    """When a difference was seen: after the last of these steps, in these snapshots."""

    steps: Sequence[Step]
    upstream: Snapshot
    fleet: Snapshot


@dataclass(frozen=True)
class Explanation:
    """`id`: of its line in docs/differences.md."""

    id: str
    covers: Callable[[Difference, Moment], bool]


EXPLANATIONS: tuple[Explanation, ...] = ()


def explain(difference: Difference, moment: Moment) -> str:
    """The id of the first explanation that covers it, or an empty string."""
    return next((each.id for each in EXPLANATIONS if each.covers(difference, moment)), "")
