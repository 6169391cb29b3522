"""When and around what a difference was seen: what explanations are made from. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tests.differential import rules
from tests.differential.compare import Difference
from tests.differential.snapshot import Snapshot
from tests.differential.step import Step
from tests.realserver.building import VERSION
from tests.realserver.versions import Version, parse

Obj = dict[str, Any]
BUILT = parse(VERSION) or Version(0, 0, 0)
"""Upstream's version where none is given."""


@dataclass(frozen=True)
class Moment:
    """After the last of these steps, in these snapshots; the one of upstream's side and the fleet's `before` that.
    `version`: of upstream's manager."""

    steps: Sequence[Step]
    upstream: Snapshot
    fleet: Snapshot
    upstream_before: Snapshot
    fleet_before: Snapshot
    version: Version = BUILT

    def sides(self) -> tuple[tuple[str, Snapshot], tuple[str, Snapshot]]:
        return ("upstream", self.upstream), ("fleet", self.fleet)

    def steps_of(self, title: str) -> list[Step]:
        """Those about an owner, since it was created last."""
        found: list[Step] = []
        for step in self.steps:
            if title_of(step) == title:
                found = [] if step.what == "create_owner" else found
                found.append(step)
        return found

    def since_creation(self, title: str) -> list[Step]:
        """All steps since an owner was created last."""
        found: list[Step] = []
        for step in self.steps:
            found = [] if title_of(step) == title and step.what == "create_owner" else [*found, step]
        return found


@dataclass(frozen=True)
class Explanation:
    """`id`: of its line in docs/differences.md. It holds of upstream's versions `since` the one and `until` before the
    other."""

    id: str
    covers: Callable[[Difference, Moment], bool]
    since: rules.Minor = rules.FIRST
    until: rules.Minor = rules.NEVER

    def explains(self, difference: Difference, moment: Moment) -> bool:
        return self.since <= moment.version < self.until and self.covers(difference, moment)


def title_of(step: Step) -> str:
    """Of the owner that a step is about."""
    return f"{step.about.get('kind', '')}/{step.about.get('name', '')}"


def pods(taken: Snapshot, title: str) -> list[Obj]:
    """The pods of an owner, as they are described."""
    return [orjson.loads(text) for text, count in taken["pods"].get(title, {}).items() for _ in range(count)]


def surplus(difference: Difference) -> int:
    """By how much the fleet has more; 0 where a side's value is no number."""
    values = (difference.fleet or 0, difference.upstream or 0)
    return values[0] - values[1] if all(isinstance(each, int) for each in values) else 0
